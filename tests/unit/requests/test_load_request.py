"""What the words after `uncork load sql` ask for; and pgbench's own table of option errors."""

import shlex

import pytest
from typer.testing import CliRunner

from uncork.cli.app import app
from uncork.cli.load import sql as verbs
from uncork.errors import UsageError
from uncork.model.load import Arrivals, LoadLog, Recorded
from uncork.requests.jobs import LoadJob, ServerOptions, TablesJob, TablesOptions
from uncork.requests.sql import read_request
from uncork.requests.sql_options import SqlOptions

FILES = {
    "a.sql": "SELECT 1;\n",
    "b.sql": "SELECT 2;\n",
    "trace.txt": "0\n0.5\n1\n",
    "mix/a.sql": "-- weight: 37\nSELECT 3;\n",
    "mix/b.sql": "SELECT 4; -- weight: 5\n",
    "wrong/a.sql": "-- weight: 2147483648\n",
    "rec/t.sql": "-- weight: 2\n-- often\nBEGIN;\n\\sleep :w2 us\nSELECT :p1_1;\n\\sleep :w3 us\nEND;\n",
    "rec/transactions.jsonl": "".join(
        f'{{"at_us": {at}, "took_us": 5, "session": {session}, "script": "t.sql", '
        '"values": {"p1_1": "7"}}\n'
        for at, session in ((0, 0), (4, 1), (20, 0))
    ),
}
FOLDERS = {
    "mix": ["mix/a.sql", "mix/b.sql"],
    "empty": [],
    "wrong": ["wrong/a.sql"],
    "rec": ["rec/t.sql", "rec/transactions.jsonl"],
}


@pytest.fixture
def request_of(monkeypatch):
    """Return the job that a command line asks for, through the command line itself."""

    def read(words: str) -> LoadJob | TablesJob:
        seen: list[SqlOptions] = []
        monkeypatch.setattr(verbs, "load_sql", seen.append)
        done = CliRunner().invoke(app, ["load", "sql", *shlex.split(words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return understood(seen[0])

    return read


def understood(options: SqlOptions) -> LoadJob | TablesJob:
    def read(name: str) -> str:
        if name not in FILES:
            raise UsageError(f'could not open file "{name}": No such file or directory')
        return FILES[name]

    return read_request(
        options,
        read=read,
        files=FOLDERS.get,
        draw_seed=lambda: 11,
        now_seed=22,
        log_id="99",
        command="uncork load sql",
    )


def test_without_words_it_is_pgbench_without_words(request_of):
    job = request_of("")
    spec = job.spec
    assert [(script.name, script.weight) for script in spec.scripts] == [("tpcb-like", 1)]
    assert (spec.clients, spec.threads, spec.protocol, spec.operations_each) == (1, 1, "simple", 10)
    assert spec.duration_ns is spec.arrivals is spec.latency_limit_ns is spec.log is spec.progress_s is None
    assert (spec.max_tries, spec.pipeline_depth, spec.seed) == (1, 1, 11)
    assert job.server == ServerOptions()
    assert (job.needs_tables, job.vacuum, job.tables, job.scale) == (True, "usual", None, None)


def test_pgbench_s_words_keep_their_meaning(request_of):
    job = request_of(
        "-h db -p 5433 -U me -c 8 -j 16 -T 30 -M prepared -D x=1 -D y=a=b -L 2.5 -P 5 -C -n "
        "--random-seed 42 --max-tries 3 -l --log-prefix pre --sampling-rate 0.25 bench"
    )
    spec = job.spec
    assert job.server == ServerOptions(host="db", port=5433, user="me", database="bench")
    assert (spec.clients, spec.threads, spec.protocol) == (8, 8, "prepared")
    assert (spec.duration_ns, spec.operations_each) == (30_000_000_000, None)
    assert spec.variables == {"x": "1", "y": "a=b"}
    assert (spec.latency_limit_ns, spec.progress_s, spec.connect_each) == (2_500_000, 5, True)
    assert (spec.seed, spec.max_tries) == (42, 3)
    assert spec.log == LoadLog("pre.99", 0.25, None)
    assert job.vacuum == "none"


def test_errors_can_end_a_load_and_be_printed(request_of):
    assert (request_of("").spec.exit_on_abort, request_of("").spec.verbosity) == (False, "quiet")
    assert request_of("--exit-on-abort").spec.exit_on_abort
    assert request_of("--verbose-errors").spec.verbosity == "errors"
    assert request_of("--verbose-errors --debug").spec.verbosity == "steps"


def test_scripts_are_built_in_from_files_and_weighted(request_of):
    spec = request_of("-b se@3 -b simple -S -N -f a.sql@0 -f b.sql -f b.sql").spec
    assert [(script.name, script.weight, script.builtin) for script in spec.scripts] == [
        ("select-only", 3, True),
        ("simple-update", 1, True),
        ("select-only#2", 1, True),
        ("simple-update#2", 1, True),
        ("a.sql", 0, False),
        ("b.sql", 1, False),
        ("b.sql#2", 1, False),
    ]
    assert spec.scripts[4].text == "SELECT 1;\n"


def test_a_folder_adds_its_scripts_with_their_own_weights(request_of):
    spec = request_of("-f mix -f a.sql@2").spec
    assert [(script.name, script.weight) for script in spec.scripts] == [
        ("a.sql", 37),
        ("b.sql", 1),
        ("a.sql#2", 2),
    ]
    assert spec.scripts[0].text == FILES["mix/a.sql"]


def test_a_recording_is_replayed_by_its_sessions(request_of):
    spec = request_of("--replay rec --speed 2 -j 4 -T 9").spec
    assert spec.recorded == Recorded((0, 0, 0), {"p1_1": ("'7'",) * 3}, (0, 1, 0), 2, 2.0)
    assert spec.arrivals == Arrivals("trace", offsets_ns=(0, 2_000, 10_000))
    assert (spec.clients, spec.most_clients, spec.threads) == (2, 2, 2)
    assert (spec.operations_each, spec.duration_ns) == (None, 9_000_000_000)


def test_a_recording_is_also_a_mix(request_of):
    spec = request_of("-f rec -R 50 -T 9 -M prepared").spec
    assert spec.recorded == Recorded((0, 0, 0), {"p1_1": ("7",) * 3})
    assert (spec.arrivals, spec.most_clients) == (Arrivals("poisson", 50.0), 64)
    assert request_of("-f rec -c 3").spec.operations_each == 10


@pytest.mark.parametrize("words", ["-f rec", "--replay rec"])
def test_clients_can_pause_before_transactions_instead_of_within_them(request_of, words):
    (script,) = request_of(words).spec.scripts
    assert script.text == FILES["rec/t.sql"]
    (script,) = request_of(f"{words} --short-transactions").spec.scripts
    assert script.text == (
        "-- weight: 2\n-- often\n\\sleep :w2 us\n\\sleep :w3 us\nBEGIN;\nSELECT :p1_1;\nEND;\n"
    )


def test_scripts_of_one_s_own_need_no_tables(request_of):
    job = request_of("-f a.sql -s 7")
    assert (job.needs_tables, job.vacuum, job.scale) == (False, "none", 7)
    assert request_of("-f a.sql -v").vacuum == "all"


@pytest.mark.parametrize(("words", "arrivals", "most"), [
    ("-R 100", Arrivals("poisson", 100.0), 64),
    ("-R 100 -c 80", Arrivals("poisson", 100.0), 80),
    ("-R 0.5 --arrivals poisson --max-clients 5", Arrivals("poisson", 0.5), 5),
    ("-R 100 --arrivals constant", Arrivals("constant", 100.0), 64),
    ("-R 100 --arrivals bursts:20", Arrivals("bursts", 100.0, 20), 64),
    ("--arrivals trace:trace.txt", Arrivals("trace", offsets_ns=(0, 500_000_000, 1_000_000_000)), 64),
])  # fmt: skip
def test_an_open_loop_has_arrivals_and_room_to_grow(request_of, words, arrivals, most):
    spec = request_of(words).spec
    assert spec.arrivals == arrivals
    assert spec.max_clients == most
    assert (spec.operations_each is None) == (arrivals.kind == "trace")


@pytest.mark.parametrize(
    "words", ["--warmup 2", "--warm-up-time 2s -t 5", "--warmup 2000ms -R 9 --shard 1/1"]
)
def test_a_warm_up_lasts_for_a_time_whatever_ends_the_load(request_of, words):
    assert request_of(f"{words} --random-seed 1").spec.warmup_ns == 2 * 10**9


def test_making_tables_is_a_job_of_its_own(request_of):
    job = request_of(
        "-i -s 20 -I dtGvp -F 90 --foreign-keys --unlogged-tables --tablespace fast "
        "--index-tablespace faster --partitions 4 --partition-method hash -q bench"
    )
    assert job == TablesJob(
        ServerOptions(database="bench"),
        TablesOptions(20, "dtGvp", 90, True, True, "fast", "faster", 4, "hash"),
    )
    assert request_of("-i -n").tables.steps == "dtgp"


def test_a_server_of_our_own_gets_its_tables_where_a_script_needs_them(request_of):
    assert request_of("--embedded -s 3 -F 80").tables == TablesOptions(scale=3, fillfactor=80)
    assert request_of("--embedded -f a.sql").tables is None
    assert request_of("--embedded -f a.sql -i -s 2").tables == TablesOptions(scale=2)


@pytest.mark.parametrize(("word", "seed"), [("time", 22), ("rand", 11), ("7", 7)])
def test_a_seed_may_be_named_drawn_or_the_time(request_of, word, seed):
    assert request_of(f"--random-seed {word}").spec.seed == seed


PGBENCH = [
    ("-f empty", "-f empty: the folder has no .sql files; name a script, or a folder of scripts"),
    ("-f mix@2", '-f mix@2: a folder has no weight of its own; write "-- weight: 2" in the first line'),
    ("-f wrong", "wrong/a.sql:1: weight 2147483648 is above the largest, 2147483647"),
    ("-f no-such-file", 'could not open file "no-such-file":'),
    ("-b no-such-builtin", 'no built-?in script .*"no-such-builtin"'),
    ("--builtin=select-only@one", "weight"),
    ("-b select-only@-1", "weight"),
    ("-b se " * 129, "at most 128 SQL scripts"),
    ("-c three", 'invalid value "three" for option -c/--client'),
    ("-j eleven", 'invalid value "eleven" for option -j/--jobs'),
    ("-i -s two", 'invalid value "two" for option -s/--scale'),
    ("-t zil", 'invalid value "zil" for option -t/--transactions'),
    ("-T ten", 'invalid value "ten" for option -T/--time'),
    ("-N -l --aggregate-interval=5 --log-prefix=notused -t 1000 -T 1", "specify either "),
    ("-P 1 --progress-timestamp -l --sampling-rate=0.001 -T 10 -t 1000", "specify either "),
    ("--define foobla", "invalid variable definition"),
    ("-i -F 1", "-F/--fillfactor must be in range"),
    ("-M no-such-mode", "invalid query mode"),
    ("--progress=0", "-P/--progress must be in range"),
    ("--rate=0.0", "invalid rate limit"),
    ("--latency-limit=0.0", "invalid latency limit"),
    ("-l --sampling-rate=0", "invalid sampling rate"),
    ("-l --aggregate-interval=-3", "--aggregate-interval must be in range"),
    ("-b se@0 -b si@0 -b tpcb@0", "weight must not be zero"),
    ("-i -S", "cannot be used in initialization"),
    ("-S -F 90", "cannot be used in benchmarking"),
    ("-b s", "matches several built-in scripts"),
    ("--progress-timestamp", "allowed only under"),
    ("-I dtg", "cannot be used in benchmarking mode"),
    ("-i -I dta", 'unrecognized initialization step "a".*Allowed step characters are'),
    ("--random-seed=one", 'unrecognized random seed option "one".*Expecting an unsigned integer'),
    ("-i --partition-method=BAD", '"range".*"hash".*"BAD"'),
    ("-i --partitions -1", "--partitions must be in range"),
    ("-i --partition-method=hash", "partition-method requires greater than zero --partitions"),
    ("--max-tries -10", 'invalid number of maximum tries: "-10"'),
    ("--max-tries 0", "an unlimited number of transaction tries can only be used with --latency-limit or"),
    ("--sampling-rate=0.01", "log sampling .* only when"),
    (
        "-l --sampling-rate=0.1 --aggregate-interval=3",
        "sampling .* aggregation .* cannot be used at the same",
    ),
    ("--aggregate-interval=3", "aggregation .* only when"),
    ("--log-prefix=x", "prefix .* only when"),
    ("-l -T 1 --aggregate-interval=3", "aggr.* not be higher"),
    ("-l -T 5 --aggregate-interval=3", "multiple"),
]
"""pgbench's own tests of its options (t/002_pgbench_no_server.pl), with what its messages have to hold."""

OURS = [
    ("-c 0", r"-c/--client must be in range 1\.\.2147483647; found 0"),
    ("-T 0", "-T/--time must be above 0"),
    ("-T inf", 'invalid value "inf"'),
    ("--rate=nan", 'invalid value "nan"'),
    ("--arrivals constant", "needs a rate: add -R/--rate"),
    ("-R 5 --arrivals trace:trace.txt", "has its own times: leave out -R"),
    ("-R 5 --arrivals sometimes", "expecting poisson, constant, bursts:SIZE or trace:FILE"),
    ("-R 5 --arrivals bursts", "expecting poisson, constant, bursts:SIZE or trace:FILE"),
    ("-R 5 --arrivals bursts:0", "--arrivals bursts must be in range"),
    ("--arrivals trace:a.sql", 'a.sql:1: expected seconds .*found "SELECT 1;"'),
    ("--max-clients 9", "--max-clients requires an open loop"),
    ("-R 5 -c 9 --max-clients 8", "--max-clients 8 is below the 9 clients of -c"),
    ("--pipeline 4", "--pipeline requires -M extended or -M prepared"),
    ("--pipeline 4 -M prepared --max-tries 2", "cannot retry"),
    ("--pipeline 4 -M prepared -C", "keeps its connections"),
    ("--json --go-bench", "choose one"),
    ("--embedded -h x", "--embedded starts a temporary server: leave out -h/--host"),
    ("--embedded -W", "-W/--password asks for the password of a running server, but none is named"),
    ("-W -w", "leave one out"),
    ("--embedded --dsn x", "leave out --dsn"),
    ("--dsn service=x -p 5432", "--dsn already gives the connection: put -p/--port into it"),
    ("--pg-bin /", "--pg-bin requires --embedded"),
    ("--embedded --pg-bin /no/such/folder", "no such directory"),
    ("-d one two", "two databases are named"),
    ("-p 99999", "-p/--port must be in range"),
    ("--random-seed=-1", "unrecognized random seed option"),
    ("--advise --sweep clients", "which watches the database anyway"),
    ("--advise --shard 1/2 --random-seed 1 -c 2", "cannot be combined with --shard"),
    ("--advise --nodes 2 -c 2", "cannot be combined with --nodes"),
    ("-i --advise", "--advise cannot be used in initialization"),
    ("--advise --pooler dbname=pgbouncer", "--pooler requires --postgres"),
    ("--pooler dbname=pgbouncer --postgres dbname=shop", "add --advise"),
    ("--logs server.log", "--logs is a source of --advise"),
    ("--advise --logs s3://logs/server.log", "writes during the load"),
    ("--embedded --advise --logs server.log", "leave out --logs"),
    ("--warmup 0", "--warmup/--warm-up-time must be above 0"),
    ("--warmup 1 --arrivals trace:trace.txt", "--warmup cannot be combined with --arrivals trace"),
    ("-i --warmup 1", "--warmup/--warm-up-time cannot be used in initialization"),
    ("-i --json", "--json cannot be used in initialization"),
    ("--replay mix", "--replay mix: no folder with a recording"),
    ("--replay nowhere", "--replay nowhere: no folder with a recording"),
    ("--speed 2", "--speed requires --replay"),
    ("-S --short-transactions", "--short-transactions requires a recording"),
    ("--replay rec --speed 0", "invalid speed"),
    ("--replay rec -S", "rec is a recording, which is sent without other scripts"),
    ("-f rec -f a.sql", "rec is a recording, which is sent without other scripts"),
    ("--replay rec -R 5", "--replay cannot be combined with -R/--rate: it has the recorded pace"),
    ("--replay rec -c 5", "--replay cannot be combined with -c/--client"),
    ("--replay rec -t 5", "use -T to end it early"),
    ("--replay rec --sweep clients", "use -f to send the mix"),
    ("-f rec --nodes 2 -c 2", "cannot be sent from --nodes"),
]


@pytest.mark.parametrize(("words", "expected"), [*PGBENCH, *OURS], ids=lambda value: value[:40])
def test_what_makes_no_sense_is_refused_as_pgbench_refuses_it(request_of, words, expected):
    with pytest.raises(UsageError, match=expected):
        request_of(words)


def test_built_in_scripts_are_listed_and_shown():
    listed = CliRunner().invoke(app, ["load", "sql", "-b", "list"])
    assert [name in listed.stdout for name in ("tpcb-like", "simple-update", "select-only")] == [True] * 3
    shown = CliRunner().invoke(app, ["load", "sql", "--show-script", "se"])
    assert "select-only" in shown.stdout
    assert "SELECT abalance FROM pgbench_accounts WHERE" in shown.stdout
    assert "UPDATE" not in shown.stdout
