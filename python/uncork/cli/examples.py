"""Examples in the help of each verb: commands to copy, the most common first."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "run": (
        "uncork run question.toml",
        "uncork run question.toml --set rows=10000 --budget 10min",
        "uncork run question.toml --json --html report.html > result.json",
        "uncork run question.toml --hosts 8 --cluster auto",
        "uncork run --resume last",
    ),
    "rerun": ("uncork rerun last --budget 10min",),
    "plan": ("uncork plan question.toml", "uncork plan question.toml --dsn service=staging --budget 10min"),
    "new": (
        "uncork new question.toml",
        "uncork new slow.toml --from last --dsn postgresql:///shop",
        'uncork new slow.toml --from last --template "from orders" '
        '--change index="CREATE INDEX ON orders (customer_id)"',
    ),
    "cure": (
        'uncork cure "dbname=shop host=/run/postgresql"',
        'uncork cure last "dbname=shop" --budget 5min -o cure/',
        'uncork cure "dbname=shop" --logs "/var/log/postgresql/*.log" --only missing-index',
    ),
    "demo": ("uncork demo", "uncork demo --budget 5min --html demo.html"),
    "advise": (
        "uncork advise postgresql:///shop --for 60s",
        "uncork advise postgresql:///shop /var/log/postgresql/ --html advice.html",
        "uncork advise last --experiment 1 > question.toml",
    ),
    "capture": (
        "uncork capture postgresql:///shop --for 5min -o workload",
        "uncork capture last postgresql:///shop -o workload",
        "uncork capture --sessions /var/log/postgresql/ -o sessions",
    ),
    "profile service": (
        "uncork profile service http://127.0.0.1:8080/ --postgres postgresql:///shop",
        'uncork profile service http://127.0.0.1:8080/items/{id} /search --var "id=1..1000" -c 16 --for 30s',
        "uncork profile service http://127.0.0.1:8080/ --postgres postgresql:///shop --watch-only --for 60s",
    ),
    "profile logs": (
        "uncork profile logs /var/log/postgresql/",
        "uncork profile logs today.log --against yesterday.log --html changes.html",
        "uncork profile logs /var/log/postgresql/postgresql.log --follow",
    ),
    "profile db": (
        "uncork profile db postgresql:///shop --for 60s",
        'uncork profile db "host=db.example dbname=shop user=watcher" --for 5min --html shop.html',
    ),
    "profile cpu": (
        "uncork profile cpu --postgres postgresql:///shop --for 30s",
        "uncork profile cpu --command ./app --fast",
        "uncork profile cpu --import cpu.pb.gz --against last --flame changes.svg",
    ),
    "load sql": (
        "uncork load sql --embedded -s 10 -c 4 -T 20",
        "uncork load sql -R 2000 -c 8 -T 60 -f orders.sql postgresql:///shop",
        'uncork load sql --sweep clients --objective "p99<20ms, errors<0.1%" postgresql:///shop',
    ),
    "load together": (
        'uncork load together --sql "-c 4 -T 30 bench" --http "-c 6 -D 30 http://127.0.0.1:8080/"',
        'uncork load together --sql "-R 200 -T 60 bench" --http "-R 500 -c 20 -D 60 http://127.0.0.1:8080/"',
    ),
    "load http": (
        "uncork load http -D 30 -c 6 http://127.0.0.1:8080/",
        "uncork load http -D 60 -c 20 -R 500 http://127.0.0.1:8080/items/{id} --var id=1..100000",
        'uncork load http --sweep clients --objective "p99<250ms" --postgres postgresql:///shop '
        "http://127.0.0.1:8080/",
    ),
    "report": ("uncork report last --open", "uncork report last --markdown"),
    "compare": (
        "uncork compare last",
        "uncork compare load-tpcb-like-20260301-100000 last --html changes.html",
        "uncork compare last --against release-7 --markdown",
    ),
    "history": (
        "uncork history p99",
        'uncork history mean --of "SELECT abalance" --html mean.html',
        "uncork history p99 --branch main --since 90d --window 20 --junit history.xml",
    ),
    "runs": ("uncork runs --kind load --last 10", "uncork runs --search shop --tag release-7"),
    "runs name": ("uncork runs name last baseline",),
    "runs tag": ("uncork runs tag last release-7", "uncork runs tag last release-7 --remove"),
    "runs prune": ("uncork runs prune --keep 20 --older-than 30d",),
    "runs push": ("uncork runs push s3://bench/team",),
    "runs pull": ("uncork runs pull s3://bench/team baseline",),
    "merge": (
        "uncork merge part-1 part-2 part-3 part-4",
        "uncork merge parts/*/load-* --html load.html",
        "uncork merge hosts/*/question-*",
    ),
    "import": (
        "uncork import wrk.txt --as checkout --at 2026-05-31T08:30 --commit v1.4",
        "uncork import pgbench_log.* --as nightly",
        "uncork import nightly.csv",
    ),
    "export": (
        "uncork export last --otlp load.jsonl",
        "uncork export last --otlp http://127.0.0.1:4318 --service checkout",
    ),
    "sql": (
        "uncork sql last",
        'uncork sql "FROM comparisons"',
        'uncork sql last "SELECT variant, median(p50_ns) / 1e3 AS p50_us FROM trials GROUP BY variant"',
        'uncork sql all "SELECT run, kind, status FROM runs ORDER BY started_at DESC LIMIT 10" --csv',
    ),
    "serve": (
        "uncork serve --open",
        "uncork serve --host 0.0.0.0 --token-file /etc/uncork/token --name bench.example.org",
    ),
    "mcp": ("uncork mcp", "uncork mcp --runs s3://bench/team", "uncork mcp --allow-run"),
    "case list": ("uncork case list",),
    "case run": ("uncork case run cluster-names", "uncork case run cluster-names --full"),
    "guard": (
        'uncork guard question.toml --baseline commit=main --candidate commit=HEAD --gate "p99 < +5%"',
        "uncork guard question.toml --candidate setting=work_mem:8MB --junit guard.xml --summary guard.md",
        "uncork guard last --times 5",
    ),
    "acknowledge": (
        'uncork acknowledge last "p99 < +5%" --reason "each order is now checked against the stock"',
    ),
    "doctor": ("uncork doctor", "uncork doctor --self-test"),
    "observe-cost": ("uncork observe-cost", "uncork observe-cost --only agent"),
}
"""The examples of each verb, by its words behind ``uncork``."""


def examples_of(verb: str) -> str:
    """Return the examples of a verb as Markdown, for the end of its help."""
    listed = "\n".join(f"- `{example}`" for example in EXAMPLES[verb])
    return f"{'Example' if len(EXAMPLES[verb]) == 1 else 'Examples'}:\n\n{listed}"
