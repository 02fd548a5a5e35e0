"""`uncork profile cpu` by its command line: a real server under load, a command, and what is denied."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer
from uncork.profile import perf
from uncork.workbench.overhead.observers import perf_trouble

SCHEMA = Path(__file__).parents[2] / "schemas" / "stack-result.schema.json"
UNCORK = str(Path(sys.executable).parent / "uncork")
SPIN = "import time\nwhile time.process_time() < 0.8:\n    sum(range(20000))\n"

pytestmark = pytest.mark.xdist_group("profile cpu")
TROUBLE = perf_trouble()
needs_perf = pytest.mark.skipif(TROUBLE is not None, reason=str(TROUBLE))


@pytest.fixture
def uncork(commands, tmp_path):
    def run(runs, *words, env=None):
        environment = {**os.environ, "UNCORK_RUNS": str(runs), **(env or {})}
        return commands.run(("profile", "cpu", *words), tmp_path, environment, 120)

    return run


@pytest.fixture(scope="module")
def server():
    one = EmbeddedServer({})
    one.start()
    yield one
    one.stop()


@pytest.fixture(scope="module")
def busy(server):
    """Return a server that is under load; the load ends with the module."""
    dsn = server.conninfo()
    subprocess.run(
        [UNCORK, "load", "sql", "-i", "-s", "1", dsn], check=True, capture_output=True, cwd=server.host
    )
    load = subprocess.Popen(
        [UNCORK, "load", "sql", "-c", "2", "-T", "300", dsn, "--runs", f"{server.host}/runs"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with psycopg.connect(dsn, autocommit=True) as watch:
        until = time.monotonic() + 60
        while not watch.execute("SELECT count(*) FROM pgbench_history").fetchone()[0]:
            assert time.monotonic() < until, "the load did not begin"
            time.sleep(0.05)
    yield dsn
    load.kill()  # nobody reads its report
    load.wait()


@needs_perf
@pytest.mark.postgres
def test_a_server_under_load_is_told_by_frames_and_templates(uncork, busy, tmp_path):
    (tmp_path / "scratch").mkdir()
    flame, folded, page = tmp_path / "x.svg", tmp_path / "x.folded", tmp_path / "x.html"
    files = ("--flame", str(flame), "--folded", str(folded), "--html", str(page))
    told = uncork(
        tmp_path,
        "--postgres",
        busy,
        "--for",
        "12s",
        "--syscalls",
        "--json",
        *files,
        env={"TMPDIR": str(tmp_path / "scratch")},
    )
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    jsonschema.validate(result, json.loads(SCHEMA.read_text()))
    assert result["method"]["tool"] == "perf"
    assert result["method"]["frames"] > 8, "the embedded server's stacks are whole by DWARF"
    cpu = next(one for one in result["measures"] if one["name"] == "cpu")
    frames = {one["name"] for one in cpu["frames"]}
    assert "PostgresMain" in frames
    assert any("pgbench_accounts" in one["name"] for one in cpu["templates"])
    assert {one["name"] for one in result["measures"]} >= {"cpu", "sessions"}
    if not any("system calls" in one for one in result["method"]["cannot_see"]):
        assert any(one["syscall"] in ("epoll_wait", "recvfrom") for one in result["syscalls"])
    assert "PostgresMain" in flame.read_text()
    assert "<script" in flame.read_text()
    assert folded.read_text().startswith("client backend")
    assert 'class="frames"' in page.read_text()
    assert "script-src 'sha256-" in page.read_text()
    assert not list((tmp_path / "scratch").iterdir())
    again = subprocess.run(
        [UNCORK, "sql", "SELECT sum(value) AS n FROM stacks WHERE measure = 'cpu'", "--runs", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if again.returncode == 0:
        assert str(cpu["total"]) in again.stdout.replace(" ", "")


@needs_perf
def test_a_command_is_profiled_to_its_end_and_compared(uncork, tmp_path):
    told = uncork(tmp_path, "--json", "--command", sys.executable, "-c", SPIN)
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    assert result["method"]["samples"] > 10
    assert 3e8 < result["user_ns"] + result["system_ns"] < 8e9
    other = uncork(
        tmp_path, "--markdown", "--against", "last", "--command", "sh", "-c", "ls -R /usr/share >/dev/null"
    )
    assert other.returncode == 0, other.stderr
    assert f"since {result['run']['id']}" in other.stdout
    report = subprocess.run(
        [UNCORK, "report", result["run"]["id"], "--runs", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(report.stdout)["measures"] == result["measures"]


@needs_perf
def test_processes_that_end_meanwhile_do_not_keep_the_others_from_being_recorded():
    with subprocess.Popen(["true"]) as ended:
        pass
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as spinning:
        found = perf.record(perf.find_perf(), "fp", 99, pids=[ended.pid, spinning.pid], seconds=0.5)
        spinning.kill()
        assert len(found.samples) > 0  # on a busy machine it gets little of a processor
    with pytest.raises(perf.PerfLack, match="ended before perf could observe them"):
        perf.record(perf.find_perf(), "fp", 99, pids=[ended.pid, spinning.pid], seconds=0.5)


def test_a_command_that_fails_is_told(uncork, tmp_path):
    told = uncork(tmp_path, "--command", "sh", "-c", "exit 3")
    assert told.returncode == 2
    assert "the command ended with status 3" in told.stderr


@pytest.mark.thorough
@pytest.mark.postgres
def test_without_perf_the_rest_is_told(uncork, busy, tmp_path):
    told = uncork(
        tmp_path, "--postgres", busy, "--for", "2s", "--syscalls", "--json", env={"PATH": "/nowhere"}
    )
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    assert result["method"]["tool"] == "/proc"
    assert result["user_ns"] > 0
    missing = result["method"]["cannot_see"]
    assert any(one.startswith("stacks of code: perf is not installed") for one in missing)
    assert any(one.startswith("system calls: perf is not installed; strace is not") for one in missing)
    assert "in user code" in result["answer"]
    assert any(one["name"] == "sessions" for one in result["measures"])


@pytest.mark.thorough
@pytest.mark.postgres
@pytest.mark.skipif(os.geteuid() != 0, reason="takes its rights away, so has to have some")
def test_without_rights_the_rest_is_told(server, busy, tmp_path):
    denied = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    told = subprocess.run(
        [
            *denied,
            UNCORK,
            "profile",
            "cpu",
            "--pid",
            str(server.pid),
            "--for",
            "1s",
            "--json",
            "--runs",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    assert result["method"]["tool"] == "/proc"
    assert result["user_ns"] > 0


@pytest.mark.thorough
@pytest.mark.postgres
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may hide processes")
def test_of_a_server_elsewhere_sessions_are_told(busy, tmp_path):
    hidden = ["unshare", "--pid", "--fork", "--mount-proc"]
    told = subprocess.run(
        [
            *hidden,
            UNCORK,
            "profile",
            "cpu",
            "--postgres",
            busy,
            "--for",
            "2s",
            "--json",
            "--runs",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if told.stderr.startswith("unshare:"):
        pytest.skip(told.stderr)
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    assert result["method"]["tool"] == "sessions"
    assert "does not run on this machine" in result["method"]["cannot_see"][0]
    assert [one["name"] for one in result["measures"]] == ["sessions"]


def test_profiles_of_a_go_program_are_imported(uncork, tmp_path):
    fixtures = Path(__file__).parents[1] / "fixtures" / "stacks"  # written by main.go there
    names = [fixtures / "cpu.pb.gz", fixtures / "heap.pb.gz"]
    imports = [word for name in names for word in ("--import", str(name))]
    told = uncork(tmp_path / "runs", "--json", *imports)
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    found = {one["name"]: one for one in result["measures"]}
    assert "cpu.pb.gz: cpu" in found
    burn = next(one for one in found["cpu.pb.gz: cpu"]["frames"] if one["name"] == "main.burn")
    assert burn["total"] > 0.5
    assert found["heap.pb.gz: inuse_space"]["frames"][0]["name"] == "main.keep"
    assert found["cpu.pb.gz: cpu"]["routes"] == []


def test_labels_of_a_go_program_divide_its_time_by_route(uncork, tmp_path):
    profile = Path(__file__).parents[1] / "fixtures" / "stacks" / "routes" / "cpu.pb.gz"
    told = uncork(tmp_path / "runs", "--json", "--import", str(profile))
    assert told.returncode == 0, told.stderr
    measure = next(one for one in json.loads(told.stdout)["measures"] if one["name"] == "cpu")
    routes = {one["name"]: one for one in measure["routes"]}
    assert routes["orders#index"]["share"] > routes["/orders/{id}"]["share"] > 0.1
    assert routes["orders#index"]["frames"][0]["name"] == "main.list"
    assert sum(one["share"] for one in measure["routes"]) == pytest.approx(1)
