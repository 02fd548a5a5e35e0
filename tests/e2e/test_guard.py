"""Guards as a person runs them, on a real PostgreSQL: what is broken, what is kept, and what is refused."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from uncork.engines.embedded import EmbeddedServer
from uncork.engines.places import servers_folder

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

FILE = """
[experiment]
name = "sorts"
question = "Is sorting still as fast?"

[variants.plain]
values = { rows = "3000" }

[setup]
file = "schema.sql"

[workloads.sort]
sql = "SELECT max(f) FROM (SELECT f FROM t WHERE id <= :rows ORDER BY f OFFSET 0) AS s"
operations = 6
warmup_operations = 1

[server.settings]
shared_buffers = "32MB"

[stop]
practical = "40%"
budget = "100s"
blocks = 2
maximum_rounds = 12
"""
SCHEMA = """
CREATE TABLE t (id int, f text);
INSERT INTO t SELECT n, repeat(md5(n::text), 8) FROM generate_series(1, 3000) AS n;
CREATE INDEX t_id ON t (id);
"""
LOOK_UP = FILE.replace(
    'sql = "SELECT max(f) FROM (SELECT f FROM t WHERE id <= :rows ORDER BY f OFFSET 0) AS s"',
    'sql = "SELECT f FROM t WHERE id = 7"',
)


@pytest.fixture
def project(uncork):
    uncork.write(SCHEMA, "schema.sql")
    uncork.write(FILE)
    return uncork


def results(uncork):
    return [
        json.loads((folder / "guard.json").read_text())
        for folder in uncork.runs
        if (folder / "guard.json").is_file()
    ]


def git(folder, *words):
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_a_setting_that_makes_sorts_spill_is_broken_and_reported_everywhere(project):
    done = project(
        *("guard", "experiment.toml", "--candidate", "setting=work_mem:64kB", "--no-confirm"),
        *("--gate", "latency_p50 < +10%", "--gate", "temporary files <= baseline"),
        *("--junit", "junit.xml", "--summary", "summary.md", "--gobench", "bench.txt", "--html", "page.html"),
    )
    assert done.returncode == 3, done.stderr
    assert "Broken" in done.stdout
    assert "work_mem = 64kB" in done.stdout
    (first,) = results(project)
    found = {one["gate"]["metric"]: one for one in first["checks"]}
    assert (found["temp_bytes"]["outcome"], found["temp_bytes"]["baseline"]) == ("broken", 0)
    assert found["latency_p50"]["ratio"] > 1.0
    assert len(found["latency_p50"]["by_round"]) >= 5
    for name, text in (("junit.xml", "<failure"), ("summary.md", "Broken"), ("bench.txt", "BenchmarkGuard")):
        assert text in (project.folder / name).read_text()
    assert "work_mem = 64kB" in (project.folder / "page.html").read_text()
    again = project("report", first["id"], "--json")
    assert json.loads(again.stdout)["status"] == 3


@pytest.mark.thorough
def test_a_commit_that_drops_an_index_is_broken_with_the_plan_it_changes(project):
    project.write(LOOK_UP)
    git(project.folder, "init", "-q")
    git(project.folder, "add", "experiment.toml", "schema.sql")
    git(project.folder, "commit", "-qm", "with an index")
    project.write(SCHEMA.replace("CREATE INDEX t_id ON t (id);", ""), "schema.sql")
    done = project(
        *("guard", "experiment.toml", "--baseline", "commit=HEAD"),
        *("--gate", "plan unchanged", "--gate", "buffers <= baseline"),
    )
    assert done.returncode == 3, done.stderr
    assert "uncommitted changes on" in done.stdout
    assert "measuring again to confirm with another seed" in done.stderr
    (found, also) = results(project)
    assert (found, len(found["runs"])) == (also, 2), "both runs know it"
    assert [one["gate"]["metric"] for one in found["checks"] if one["confirmed"]] == ["plan", "buffers"]
    seeds = [json.loads((folder / "manifest.json").read_text())["seed"] for folder in project.runs]
    assert seeds[1] == seeds[0] + 1
    assert found["baseline"]["commit"]
    (plan,) = found["plans"]
    assert plan["kind"] == "changed"
    assert "Seq Scan" in plan["text"]
    assert not list(servers_folder().glob("git-*"))


def test_plans_alone_are_judged_without_a_trial(project):
    project.write(LOOK_UP)
    done = project(
        *("guard", "experiment.toml", "--candidate", "setting=enable_indexscan:off"),
        *("--candidate", "setting=enable_bitmapscan:off", "--gate", "plan unchanged"),
    )
    assert done.returncode == 3, done.stderr
    assert "round 1" not in done.stderr


@pytest.mark.thorough
def test_two_values_that_answer_otherwise_are_broken_with_the_first_difference(project):
    project.write(FILE.replace("max(f)", "count(f)"))
    done = project("guard", "experiment.toml", "--candidate", "value=rows:2999")
    assert done.returncode == 3
    assert "the first row that differs in sorted order is row 1: (2999) where the baseline gives" in " ".join(
        done.stdout.split()
    )
    (found, _) = results(project)
    assert [one["gate"]["text"] for one in found["checks"]] == ["same answer"]
    assert found["checks"][0]["confirmed"] is True


def test_the_same_on_both_sides_is_refused_unless_asked_for_and_then_no_alarm(project):
    refused = project("guard", "experiment.toml")
    assert (refused.returncode, project.runs) == (1, [])
    assert "both sides are the same: variant plain; name a difference" in refused.stderr
    done = project("guard", "experiment.toml", "--same", "--budget", "20s")
    assert done.returncode in (0, 4), done.stdout
    assert results(project)[0]["status"] in (0, 4)


@pytest.mark.thorough
def test_two_servers(project):
    servers = [EmbeddedServer({"shared_buffers": "16MB", "work_mem": one}) for one in ("4MB", "64kB")]
    for server in servers:
        server.start()
    try:
        project.write(FILE.replace('[server.settings]\nshared_buffers = "32MB"\n', ""))
        one, other = (f"dsn={server.conninfo()} password=hush" for server in servers)
        done = project(
            *("guard", "experiment.toml", "--baseline", one, "--candidate", other, "--no-confirm"),
            *("--gate", "latency_p50 < +15%", "--gate", "plan unchanged"),
        )
    finally:
        for server in servers:
            server.stop()
    assert done.returncode in (3, 4), done.stderr
    (found,) = results(project)
    assert any(one["ratio"] and one["ratio"] > 1.0 for one in found["checks"])
    kept = b"".join(
        path.read_bytes() for path in project.folder.rglob("*") if path.is_file() and path.suffix != ".toml"
    )
    assert b"hush" not in kept
    assert "hush" not in done.stdout + done.stderr


SERVICE = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
PAUSE = {"app:1": 0.0, "app:2": 0.01}[sys.argv[1]]
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    def do_GET(self):
        time.sleep(PAUSE)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_):
        pass
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"""


@pytest.mark.thorough
def test_two_images_stand_in_the_services_command(project):
    project.write(SERVICE, "app.py")
    text = FILE[: FILE.index("[workloads.sort]")] + FILE[FILE.index("[server.settings]") :]
    project.write(
        text
        + """
[services.app]
command = ["{python}", "app.py", "{image}", "{port}"]

[workloads.ask]
operations = 20
http = { requests = ["/"] }
"""
    )
    done = project(
        *("guard", "experiment.toml", "--baseline", "image=app:1", "--candidate", "image=app:2"),
        *("--no-confirm", "--gate", "latency_p50 < +5%"),
    )
    assert done.returncode == 3, done.stderr
    assert "image app:2" in done.stdout
    (found,) = results(project)
    assert {one["gate"]["metric"]: one["outcome"] for one in found["checks"]}["latency_p50"] == "broken"


@pytest.mark.thorough
def test_an_interruption_keeps_what_was_measured_and_alarms_nothing(project):
    process = project.start("guard", "experiment.toml", "--candidate", "setting=work_mem:64kB")
    project.wait_for(process, "round 2: ")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "kept what was measured; see it with: uncork report guard-sorts" in said
    (found,) = results(project)
    assert found["status"] == 4
    assert project("report", found["id"]).returncode == 0
    assert f"resume with: uncork guard --resume {found['id']}" in said

    plain = project("run", "--resume", found["id"])
    assert plain.returncode == 1
    assert f"the run of a guard; resume that: uncork guard --resume {found['id']}" in plain.stderr
    spent = project("guard", "--resume", "last", "--budget", "2s")
    assert (
        spent.returncode == 1
        and "of its budget of 2" in spent.stderr
        and "too short for a round; raise it" in spent.stderr
    )
    elsewhere = project("guard", "--resume", "last", "--dsn", "host=/nowhere")
    assert elsewhere.returncode == 1 and "was measured on another server (embedded)" in elsewhere.stderr

    before = rounds_of(project, found["id"])
    done = project("guard", "--resume", "last", "--junit", "junit.xml")
    assert done.returncode == 3, done.stderr
    assert "of the budget left" in done.stderr and "measuring again to confirm" in done.stderr
    first, second = results(project)
    assert first == second and first["id"] == found["id"]
    assert [first[name] for name in ("reproduce", "baseline", "candidate")] == [
        found[name] for name in ("reproduce", "baseline", "candidate")
    ]
    assert first["checks"][0]["confirmed"] is True
    after = rounds_of(project, found["id"])
    assert after[: len(before)] == before and len(after) > len(before), "what was measured before counts"
    assert [one["gate"]["text"] for one in first["checks"]] == [
        one["gate"]["text"] for one in found["checks"]
    ]
    assert "<failure" in (project.folder / "junit.xml").read_text()

    ended = project("guard", "--resume", first["id"])
    assert ended.returncode == 1 and "has ended" in ended.stderr
    again = project("guard", "--resume", first["runs"][1])
    assert again.returncode == 1 and "cannot be resumed; guard again: " in again.stderr
    for one in (plain, spent, elsewhere, ended, again):
        assert len(one.stderr.strip().splitlines()) == 1


def rounds_of(uncork, run):
    """Return the rounds whose trials a run holds."""
    asked = "SELECT DISTINCT round FROM trials ORDER BY round"
    done = uncork("sql", run, asked, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["round"] for line in done.stdout.splitlines()]


WRITES = FILE.replace(
    'sql = "SELECT max(f) FROM (SELECT f FROM t WHERE id <= :rows ORDER BY f OFFSET 0) AS s"',
    'sql = "INSERT INTO t SELECT n, 1 FROM generate_series(1, :rows) AS n"\nanswer = "may differ"',
).replace("3000", "10")


@pytest.mark.thorough
def test_a_metric_of_the_file_is_recorded_per_trial_and_broken_exactly(uncork):
    uncork.write("CREATE TABLE t (id int, f text);", "schema.sql")
    uncork.write(f'{WRITES}\n[metrics.written]\nsql = "SELECT count(*) FROM t"\n')
    words = ("guard", "experiment.toml", "--baseline", "value=rows:10", "--candidate", "value=rows:20")
    done = uncork(*words, "--gate", "metric written < +5%", "--budget", "20s", "--json", timeout=300)
    assert done.returncode == 3, done.stderr
    (check,) = json.loads(done.stdout)["checks"]
    assert check["gate"]["text"] == "metric written < +5%", check["reason"]
    # Six measured operations and one to warm up, from the same state each time.
    assert (check["baseline"], check["candidate"], check["outcome"]) == (70, 140, "broken")
    stored = uncork(
        "sql", "last", "SELECT DISTINCT variant, own FROM trials ORDER BY variant", "--csv"
    ).stdout
    assert '""written"": 140' in stored
    assert "metric written of sort is 100 % higher" in uncork("report", "last", "--markdown").stdout
    history = uncork("history", "written", "--of", "candidate", "--all", "--json")
    assert [run["value"] for run in json.loads(history.stdout)["runs"]] == [140]
    wrong = uncork(*words, "--gate", "metric read < +5%", timeout=300)
    assert wrong.returncode == 1
    assert "the file has no [metrics.read]; its metrics: written" in wrong.stderr
