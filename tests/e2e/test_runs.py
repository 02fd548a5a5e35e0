"""Stored runs from the command line: listed, compared, imported, exported, at an address."""

from __future__ import annotations

import json
import random
import re
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import jsonschema
import pytest
from bench.servers.s3_server import s3_server

from fakes.experiments import QUICK
from fakes.load_results import ENVIRONMENT
from fakes.logs import line
from fakes.stored_loads import store_load
from uncork.analysis.runs.telemetry import measured_from, run_telemetry
from uncork.report.write.schemas import result_schema
from uncork.store.tables import append_rows
from uncork.workbench.documents.loads import read_load
from unit.store.test_layout import make_run


@pytest.fixture
def runs(uncork):
    root = uncork.folder / "runs"
    for month in (1, 2, 3):
        run = make_run(root, f"types-2026030{month}-100000", started_at=f"2026-0{month}-01T10:00:00+00:00")
        append_rows(run, "overheads", [{"engine": "sqlite", "operations": month}])
    make_run(root, "other-20260301-120000", status="failed", question="\x1b[31mred\x1b[0m\nnext")
    return root


def ids(done):
    return [line.split()[0] for line in done.stdout.splitlines()[1:]]


def test_runs_are_listed_and_chosen(uncork, runs):
    done = uncork("runs")
    assert len(ids(done)) == 4 and done.stderr == ""
    assert "\x1b" not in done.stdout and len(done.stdout.splitlines()) == 5
    assert ids(uncork("runs", "--status", "failed")) == ["other-20260301-120000"]
    assert ids(uncork("runs", "--search", "TYPES which", "--last", "2")) == [
        "types-20260302-100000",
        "types-20260303-100000",
    ]
    none = uncork("runs", "--kind", "load")
    assert none.returncode == 0 and none.stdout == "" and "none of the 4 runs" in none.stderr


def test_a_damaged_run_is_told_and_the_others_stay_readable(uncork, runs):
    (runs / "types-20260301-100000" / "manifest.json").write_text('{"version": 1')
    path = runs / "types-20260302-100000" / "overheads" / "000001.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    listed = uncork("runs")
    assert len(ids(listed)) == 3 and "types-20260301-100000" in listed.stderr
    done = uncork("sql", "all", "SELECT run, operations FROM overheads ORDER BY run", "--csv")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["run,operations", "types-20260303-100000,3"]
    assert (
        "manifest.json: damaged" in done.stderr and f"{path}: damaged; its rows are left out" in done.stderr
    )


def test_all_runs_are_asked_together(uncork, runs):
    assert (
        uncork("runs", "tag", "types-20260301", "nightly", "x").stdout
        == "types-20260301-100000: nightly, x\n"
    )
    query = "SELECT run, tags, year(started_at) AS year FROM runs WHERE len(tags) > 0"
    done = uncork("sql", "all", query, "--json")
    assert json.loads(done.stdout) == {"run": "types-20260301-100000", "tags": ["nightly", "x"], "year": 2026}
    assert (
        uncork("runs", "tag", "types-20260301", "x", "--remove").stdout == "types-20260301-100000: nightly\n"
    )
    wrong = uncork("sql", "all", "SELECT nothing FROM runs")
    assert wrong.returncode == 1 and "nothing" in wrong.stderr and "Traceback" not in wrong.stderr


def test_pruning_shows_what_would_go_and_removes_only_that(uncork, runs):
    uncork("runs", "tag", "types-20260301", "release")
    uncork("runs", "name", "types-20260303", "baseline")
    shown = uncork("runs", "prune", "--older-than", "1d")
    assert shown.returncode == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == [
        "types-20260302-100000",
        "other-20260301-120000",
    ]
    assert "2 of 4 runs" in shown.stderr and "--yes" in shown.stderr
    assert len(ids(uncork("runs"))) == 4
    assert "nothing to prune" in uncork("runs", "prune", "--older-than", "1d", "--keep", "3").stderr
    done = uncork("runs", "prune", "--older-than", "1d", "--kind", "experiment", "--yes")
    assert done.returncode == 0 and "were removed" in done.stderr
    assert ids(uncork("runs")) == ["types-20260301-100000", "types-20260303-100000"]
    assert sorted(path.name for path in runs.iterdir()) == [
        ".names",
        "types-20260301-100000",
        "types-20260303-100000",
    ]


def test_nothing_is_pruned_while_the_names_cannot_be_read(uncork, runs):
    (runs / ".names").mkdir()
    (runs / ".names" / "baseline").write_bytes(b"\xff")
    done = uncork("runs", "prune", "--keep", "0", "--yes")
    assert done.returncode == 1 and ".names" in done.stderr
    assert len(list(runs.glob("*-2026*"))) == 4


@pytest.mark.parametrize("query", [["SELECT * FROM overheads"], ["SHOW TABLES"], []])
def test_sql_of_a_damaged_run_says_so(uncork, runs, query):
    folder = sorted(runs.glob("types-*"))[-1]
    (table,) = (folder / "overheads").iterdir()
    table.write_bytes(b"x")
    done = uncork("sql", folder.name, *query)
    assert done.returncode == 2
    assert done.stderr.startswith(f"uncork: {folder}: damaged: ")
    assert "Traceback" not in done.stderr


class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def hello():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def s3():
    with s3_server() as server:
        yield server


@pytest.fixture
def machine(uncork, s3):
    """Run the command as on a machine of that name: with a cache of its own."""

    def run(name, *arguments, runs="s3://bench/team"):
        cache = str(uncork.folder / name)
        return uncork(*arguments, env={**s3.environment, "UNCORK_CACHE": cache, "UNCORK_RUNS": runs})

    return run


def load(machine, name, hello, **options):
    return machine(name, "load", "http", "-c", "1", "-D", "0.3", hello, "--json", **options)


def test_a_team_stores_lists_opens_asks_tags_and_prunes(machine, uncork):
    results = uncork.write(json.dumps({"results": [{"command": "true", "times": [0.1, 0.2]}]}), "result.json")
    done = machine("one", "import", results, "--at", "2026-03-01")
    assert done.returncode == 0
    id = done.stdout.split(":")[0]
    assert done.stderr == f"uncork: stored at s3://bench/team: {id}\n"
    listed = machine("two", "runs")
    assert listed.stderr == "" and [line.split()[0] for line in listed.stdout.splitlines()[1:]] == [id]
    assert (
        machine("two", "sql", "last", "SELECT subject FROM figures LIMIT 1", "--csv").stdout
        == "subject\ntrue\n"
    )
    assert machine("two", "runs", "tag", "last", "nightly").stdout == f"{id}: nightly\n"
    assert machine("two", "import", results, "--at", "2026-03-02").returncode == 0
    shown = machine("one", "runs", "prune", "--keep", "0", "--yes")
    assert "1 of 2 runs" in shown.stderr and "removed" in shown.stderr
    query = "SELECT run, tags, count(*) > 0 AS some FROM runs JOIN figures USING (run) GROUP BY ALL"
    asked = machine("two", "sql", "all", query, "--json")
    assert json.loads(asked.stdout) == {"run": id, "tags": ["nightly"], "some": True}


@pytest.mark.thorough
def test_what_cannot_be_sent_is_kept_and_pushed_later(machine, s3, hello, uncork):
    process = Thread(target=s3.stop)

    class Last(Hello):
        """Stops the store with the first request: the run goes on, and cannot be sent."""

        def do_GET(self):
            if process.ident is None:
                process.start()
            super().do_GET()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Last)
    Thread(target=server.serve_forever, daemon=True).start()
    done = load(machine, "one", f"http://127.0.0.1:{server.server_port}/")
    server.shutdown()
    server.server_close()
    process.join()
    store = next((uncork.folder / "one" / "stores").iterdir())
    assert done.returncode == 0 and json.loads(done.stdout)["answer"]
    said = [line for line in done.stderr.splitlines() if "s3://" in line]
    assert len(said) == 1 and "Could not connect" in said[0]
    assert said[0].endswith(
        f"; 1 run is not stored at s3://bench/team yet; kept in {store}; upload with "
        "`uncork runs push --runs s3://bench/team`"
    )
    assert "Traceback" not in done.stderr
    gone = machine("one", "runs")
    assert gone.returncode == 1 and "s3://bench/team: cannot list it" in gone.stderr
    s3.start()
    waiting = machine("one", "runs")
    assert "1 run is not stored at s3://bench/team yet" in waiting.stderr
    pushed = machine("one", "runs", "push")
    assert pushed.returncode == 0 and "stored at s3://bench/team: load-127.0.0.1-" in pushed.stderr
    assert len(machine("two", "runs").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ("s3://", "names no bucket or host"),
        ("nobody://x/y", 'unknown scheme "nobody"'),
        ("s3://nosuch/x", "s3://nosuch/x: does not exist"),
    ],
)
def test_a_wrong_address_is_told_before_anything_is_measured(machine, hello, runs, said):
    done = load(machine, "one", hello, runs=runs)
    assert done.returncode == 1 and said in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


RESULTS = Path(__file__).parents[1] / "fixtures" / "results"


def test_results_of_all_tools_are_imported_and_reported(uncork):
    files = [path for path in sorted(RESULTS.glob("*.*")) if path.suffix != ".md"]
    done = uncork("import", *files, "--as", "past", "--commit", "abc")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(files)
    assert "used the age of the file" in done.stderr
    again = uncork("import", *files, "--as", "past", "--commit", "abc")
    assert again.stdout.count("(imported before)") == len(files)
    listed = uncork("runs").stdout
    assert listed.count(" import ") == len(files)
    done = uncork("report", done.stdout.split(":")[0])
    assert done.returncode == 0, done.stderr
    assert "report: " in done.stdout
    assert uncork("sql", "last", "SELECT name FROM figures", "--csv").returncode == 0
    assert uncork("sql", "last", "--csv").stdout.startswith("table,rows\nfigures,")
    assert "filename" not in uncork("sql", "last", "SELECT * FROM figures", "--csv").stdout.splitlines()[0]
    ids = {line.split(": ")[1].split(",")[0]: line.split(":")[0] for line in again.stdout.splitlines()}
    unlike = uncork("compare", ids["wrk"], ids["h2load"])
    assert unlike.returncode == 1
    assert "the tools define metrics of the same name differently" in unlike.stderr


def test_what_was_imported_before_a_file_that_cannot_be_is_kept(uncork):
    (uncork.folder / "own.txt").write_text("hello\n")
    (uncork.folder / "wrk.txt").write_text((RESULTS / "wrk.txt").read_text())
    done = uncork("import", "wrk.txt", "own.txt")
    assert done.returncode == 1
    assert "the file before it is imported" in done.stderr
    assert len(uncork.runs) == 1


def test_a_table_becomes_a_history_whose_newest_run_is_judged(uncork):
    rows = [f"2026-05-{day:02d}T03:00,{day:07x},main,p99,{10 + day % 3 / 10},ms" for day in range(1, 29)]
    table = uncork.folder / "nightly.csv"
    table.write_text("\n".join(["time,commit,branch,metric,value,unit", *rows]))
    done = uncork("import", "nightly.csv")
    assert done.returncode == 0, done.stderr
    first, last = "import-nightly-20260501-030000", "import-nightly-20260528-030000"
    assert done.stdout == f"nightly.csv: 28 runs from {first} to {last}\n"
    assert uncork("history", "p99", "--branch", "main", "--window", "20").returncode == 0
    with table.open("a") as file:
        file.write("\n2026-05-29T03:00,abcdef0,main,p99,14,ms")
    assert "(28 imported before)" in uncork("import", "nightly.csv").stdout
    done = uncork("history", "p99", "--branch", "main", "--window", "20", "--json")
    assert done.returncode == 3
    newest = json.loads(done.stdout)["newest"]
    assert (newest["outcome"], newest["runs"], newest["value"]) == ("broken", 20, 14e6)
    report = " ".join(uncork("report", "last").stdout.split())
    assert "One run decides nothing" in report
    guard = uncork("guard", "last", "--stored", "--gate", "p99 < +5%")
    assert guard.returncode == 1
    assert "uncork history METRIC --window 20" in guard.stderr


@pytest.fixture
def exports_load(uncork):
    return store_load(uncork.folder / "runs", 1, failed=3, commit="1f2e3d4c" * 5, seconds=12)


@contextmanager
def collector(status=200, answer=b"{}"):
    """A collector that takes metrics as they come; yields its address and what it was sent."""
    seen = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["content-length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen.append((self.path, headers, self.rfile.read(length)))
            self.send_response(status)
            self.send_header("location", "http://127.0.0.1:1/elsewhere")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def parsed(text):
    """Read a request by OpenTelemetry's own definitions; what they do not know is an error."""
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    from google.protobuf import json_format

    return json_format.Parse(text, service.ExportMetricsServiceRequest())


def metrics(request):
    return {one.name: one for one in request.resource_metrics[0].scope_metrics[0].metrics}


def attributes(found):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in found}


def test_every_second_of_a_load_is_had_with_its_time(uncork, exports_load):
    done = uncork("export", "last", "--otlp", "out.jsonl", "--service", "shop")
    assert done.returncode == 0 and "points of" in done.stderr and done.stdout == ""
    (line,) = (uncork.folder / "out.jsonl").read_text().splitlines()
    request = parsed(line)
    told = attributes(request.resource_metrics[0].resource.attributes)
    assert told["service.name"] == "shop" and told["uncork.run.id"] == exports_load.name
    assert "service.version" not in told, "that of uncork is not that of the shop"
    assert told["vcs.ref.head.revision"] == "1f2e3d4c" * 5
    assert any(key.startswith("uncork.environment.machine.") for key in told)
    result, found = read_load(exports_load), metrics(request)
    operations = found["uncork.load.operations"].sum
    assert operations.is_monotonic and operations.aggregation_temporality == 1
    by_outcome = {}
    for point in operations.data_points:
        outcome = attributes(point.attributes)["outcome"]
        by_outcome[outcome] = by_outcome.get(outcome, 0) + point.as_int
    assert by_outcome["succeeded"] == sum(one.succeeded for one in result.series) > 0
    begun = int(datetime.fromisoformat(result.run.started_at).timestamp()) * 10**9
    points = [one for one in operations.data_points if attributes(one.attributes)["outcome"] == "succeeded"]
    assert [one.start_time_unix_nano for one in points] == [begun + one.start_ns for one in result.series]
    assert all(one.time_unix_nano > one.start_time_unix_nano for one in points)
    latency = found["uncork.load.latency"]
    p99 = [
        one.as_double for one in latency.gauge.data_points if attributes(one.attributes)["quantile"] == 0.99
    ]
    assert p99 == [one.p99_ns / 1e9 for one in result.series] and latency.unit == "s"
    figures = {
        attributes(one.attributes)["figure"]: one.as_double
        for one in found["uncork.figure.rate"].gauge.data_points
    }
    assert figures["throughput"] == pytest.approx(result.operations_per_second)


@pytest.mark.thorough
def test_long_loads_are_sent_in_several_requests(uncork):
    store_load(uncork.folder / "runs", 1, seconds=1700)
    lines = uncork("export", "--otlp", "-").stdout.splitlines()
    requests = [parsed(line) for line in lines]
    assert len(requests) > 1
    found = [one for request in requests for one in request.resource_metrics[0].scope_metrics[0].metrics]
    points = [point for one in found for point in getattr(one, one.WhichOneof("data")).data_points]
    whole = run_telemetry(next((uncork.folder / "runs").glob("load-*")))
    assert len(points) == sum(len(one.points) for one in whole.metrics) > 5_000


def test_a_collector_is_sent_metrics_and_what_it_left_out_is_told(uncork, exports_load):
    answer = b'{"partialSuccess": {"rejectedDataPoints": "7", "errorMessage": "old"}}'
    with collector(answer=answer) as (address, seen):
        done = uncork("export", exports_load.name, "--otlp", address, "--header", "X-Scope: team")
    assert done.returncode == 0 and "; it rejected 7" in done.stderr
    ((path, headers, body),) = seen
    assert path == "/v1/metrics" and headers["content-type"] == "application/json"
    assert headers["x-scope"] == "team"
    assert metrics(parsed(body.decode()))


@pytest.mark.parametrize("status", [302, 400, 503])
def test_a_collector_that_refuses_is_told_with_its_words(uncork, exports_load, status):
    with collector(status, b"too many points") as (address, seen):
        done = uncork("export", "--otlp", f"{address}/otlp/v1/metrics")
    assert done.returncode == 1 and f"answered {status}: too many points" in done.stderr
    assert [path for path, _, _ in seen] == ["/otlp/v1/metrics"]


def test_runs_say_when_measuring_began_to_the_microsecond(exports_load):
    from dataclasses import replace

    from uncork.store.layout import read_manifest

    manifest = read_manifest(exports_load)
    told = replace(manifest, options={**manifest.options, "measured_us": 1_800_000_000_123_456})
    assert measured_from(told) == 1_800_000_000_123_456_000
    assert json.dumps(dict(told.options))


@pytest.fixture
def loads(uncork):
    """Twelve nightly loads, slower from the eighth on."""
    draw = random.Random(5)
    levels = [1.0] * 7 + [1.4] * 5
    return [
        store_load(uncork.folder / "runs", n, level * draw.gauss(1, 0.02), hours=24 * n, commit=f"{n:x}" * 12)
        for n, level in enumerate(levels)
    ]


def test_the_change_is_told_in_every_form(uncork, loads):
    done = uncork("history", "throughput", "--html", "page.html")
    assert done.returncode == 0, done.stderr
    assert f"since {loads[7].name}" in " ".join(done.stdout.split())
    assert "git log --oneline 666666666666..777777777777" in done.stdout
    page = (uncork.folder / "page.html").read_text()
    assert "<svg" in page
    assert loads[7].name in page
    data = json.loads(uncork("history", "throughput", "--json").stdout)
    jsonschema.validate(data, result_schema("history"))
    assert [one["since"] for one in data["changes"]] == [loads[7].name]
    assert uncork("history", "p90", "--markdown").stdout.startswith("# history of p90")


def test_imported_results_have_a_history(uncork):
    text = (RESULTS / "wrk.txt").read_text()
    rates = (44078, 43000, 45100, 44500, 43700, 44900, 33900, 33100, 34200, 33600)
    for number, rate in enumerate(rates, start=1):
        (uncork.folder / "wrk.txt").write_text(text.replace("  44078.17", f"  {rate}"))
        words = ("--as", "shop", "--at", f"2026-05-{number:02d}", "--commit", f"v1.{number}")
        assert uncork("import", "wrk.txt", *words).returncode == 0
    data = json.loads(uncork("history", "throughput", "--json").stdout)
    (change,) = data["changes"]
    assert (change["since"], change["commit"]) == ("import-shop-20260507-000000", "v1.7")
    assert change["verdict"] == "slower"


def test_the_newest_run_is_judged_by_the_exit_status_and_in_junit(uncork, loads):
    done = uncork("history", "p90", "--window", "5", "--since", "2026-03-01", "--junit", "history.xml")
    assert done.returncode in (0, 4)  # it is as slow as the four before it
    worse = store_load(uncork.folder / "runs", 12, 2.5, hours=24 * 12, commit="c" * 12, branch="main")
    done = uncork("history", "p90", "--window", "5", "--junit", "history.xml")
    assert done.returncode == 3, done.stderr
    assert f"{worse.name} is worse than the 5 runs before it" in " ".join(done.stdout.split())
    suite = ElementTree.parse(uncork.folder / "history.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("skipped"), suite.get("tests")) == ("1", "0", "1")
    assert "is worse than" in suite.find("testcase/failure").get("message")
    data = json.loads(uncork("history", "p90", "--window", "5", "--json").stdout)
    jsonschema.validate(data, result_schema("history"))
    assert (data["newest"]["outcome"], data["newest"]["verdict"]) == ("broken", "slower")
    alone = uncork("history", "p90", "--window", "5", "--branch", "main")
    assert alone.returncode == 4
    assert "It is not decided" in alone.stdout


@pytest.fixture
def compare_loads(uncork):
    """Eight like loads and a slow one."""
    root = uncork.folder / "runs"
    usual = (1.01, 0.99, 1.02, 0.98, 1.0, 1.015, 0.99, 1.0)
    return [store_load(root, n, slower) for n, slower in enumerate((*usual, 1.6))]


@pytest.mark.thorough
@pytest.mark.postgres
@pytest.mark.slow
def test_real_loads_and_experiments_are_compared(uncork):
    load = ("load", "sql", "--embedded", "-i", "-c", 2, "-T", 1, "-S", "--json")
    for _ in range(2):
        assert uncork(*load).returncode == 0
    first, second = (path.name for path in uncork.runs if path.name.startswith("load"))
    done = uncork("compare", first, second, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    jsonschema.validate(data, result_schema("run-comparison"))
    found = {one["name"]: one for one in data["pairs"][0]["figures"]}
    assert {"throughput", "mean", "p50", "p99", "failed", "server processor time each"} <= set(found)
    assert found["throughput"]["verdict"] == "not enough evidence"
    assert data["pairs"][0]["differences"] == []
    file = uncork.write(QUICK)
    for _ in range(2):
        assert uncork("run", file, "--precision", "90%", "--budget", "60s").returncode == 0
    names = [path.name for path in uncork.runs if path.name.startswith("quick")]
    data = json.loads(uncork("compare", *names, "--json").stdout)
    effects = [one for one in data["pairs"][0]["figures"] if one["scale"] == "effect"]
    assert [(one["subject"], one["name"]) for one in effects] == [("key on get", "against scan")]
    assert data["pairs"][0]["plans_compared"] == 2
    assert data["pairs"][0]["plans"] == []
    gates = ("--gate", "p50 < +900%", "--gate", "plan unchanged", "--gate", "buffers < +900%")
    done = uncork(
        "guard", "last", "--stored", *gates, "--gate", "p99 < +5%", "--gate", "size <= baseline", "--json"
    )
    assert done.returncode == 4, done.stderr
    checks = json.loads(done.stdout)["checks"]
    found = {one["gate"]["metric"]: (one["outcome"], one["reason"]) for one in checks}
    assert found["latency_p50"][0] == "kept", found
    assert found["plan"] == ("kept", f"the same as in {names[0]}")
    assert found["size"][0] == "kept"
    assert "so no effect on p99" in found["latency_p99"][1]
    assert found["buffers"][0] == "kept"
    guard = next(path for path in uncork.runs if path.name.startswith("guard-quick"))
    assert uncork("report", guard.name).returncode == 0


def test_the_slow_one_is_found_beside_the_named_baseline(uncork, compare_loads):
    named = uncork("runs", "name", compare_loads[0].name, "baseline")
    assert (named.returncode, named.stdout) == (0, f"baseline: {compare_loads[0].name}\n")
    assert re.search(rf"{compare_loads[0].name}\s+baseline\s+load", uncork("runs").stdout)
    done = uncork("compare", "last")
    assert done.returncode == 0, done.stderr
    assert "✗ slower" in done.stdout
    assert "report: " in done.stdout
    page = (compare_loads[-1] / "comparison.html").read_text()
    assert "✗ slower" in page
    assert uncork("compare", "last", "--markdown").stdout.startswith("# ")
    named = uncork("runs", "name", "last", "baseline")
    assert f"(before: {compare_loads[0].name})" in named.stdout


def test_a_run_in_pieces_is_told(uncork, compare_loads):
    (compare_loads[-1] / "load_totals" / "000001.parquet").write_bytes(b"PAR1 nothing")
    done = uncork("compare", compare_loads[0].name, "last")
    assert done.returncode == 2
    assert "damaged" in done.stderr
    assert "Traceback" not in done.stderr
    (compare_loads[-1] / "manifest.json").write_text("{")
    done = uncork("compare", compare_loads[0].name, "last")
    assert done.returncode == 2
    assert "damaged" in done.stderr


def test_unlike_machines_are_refused_and_shown_on_demand(uncork, compare_loads):
    other = {**ENVIRONMENT, "machine": {**ENVIRONMENT["machine"], "processor": "Other 9"}}
    store_load(uncork.folder / "runs", 12, environment=other)
    done = uncork("compare", compare_loads[0].name, "last")
    assert done.returncode == 1
    assert 'processor "Imaginary 3000" and "Other 9"' in done.stderr
    done = uncork("compare", compare_loads[0].name, "last", "--any-machine")
    assert done.returncode == 0
    assert "No verdict" in done.stdout


def test_logs_are_compared_as_profile_logs_does(uncork):
    for name, ms in (("old.log", 5.0), ("new.log", 15.0)):
        lines = [line("SELECT 1 FROM t WHERE id = 7", at_ms=100 * n, ms=ms) for n in range(50)]
        (uncork.folder / name).write_text("".join(lines))
        assert uncork("profile", "logs", name).returncode == 0
    first, second = (path.name for path in uncork.runs)
    done = uncork("compare", first, second)
    assert done.returncode == 0, done.stderr
    assert "Statement time went from" in done.stdout
    assert uncork("compare", first, second, second).returncode == 1


def test_stacks_are_compared_as_report_does(uncork):
    profile = Path(__file__).parents[1] / "fixtures" / "stacks" / "cpu.pb.gz"
    for _ in range(2):
        assert uncork("profile", "cpu", "--import", profile).returncode == 0
    first, second = (path.name for path in uncork.runs)
    done = uncork("compare", first, second)
    assert done.returncode == 0, done.stderr
    assert f"what changed since {first}" in " ".join(done.stdout.split())
