"""Where something is denied (rights, perf, sight of processes): one clear line, and the rest works."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from e2e.conftest import BRIEF_EVIDENCE
from uncork.engines.embedded import EmbeddedServer
from uncork.workbench.overhead.observers import perf_trouble

pytestmark = pytest.mark.postgres

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="takes rights away, so has to have some")
TROUBLE = perf_trouble()
SPIN = "import time\nwhile time.process_time() < 1.5:\n    sum(range(20000))\n"  # however busy the machine is
READING = "+dac_read_search"  # the interpreter may lie where only its owner may read
NOBODY = [
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--bounding-set=-all,{READING}"),
    *(f"--inh-caps=-all,{READING}", f"--ambient-caps=-all,{READING}"),
]
POWERLESS = ["setpriv", f"--bounding-set=-all,{READING}", "--inh-caps=-all"]
CONTAINED = ["unshare", "--pid", "--mount", "--fork", "--mount-proc"]
EXPERIMENT = """
[experiment]
name = "denied"
question = "Is a look-up by key faster?"
evidence = ["waits", "cpu", "stacks", "syscalls"]

[variants.scan]
baseline = true
values = { condition = "id + 0 = 7" }

[variants.key]
values = { condition = "id = 7" }

[setup]
sql = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 2000)"

[workloads.get]
sql = "SELECT id FROM t WHERE :condition"
operations = 20

[stop]
budget = "15s"
precision = "99%"
"""


@pytest.fixture
def servers():
    """Yield a folder that the server's user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="uncork-denied-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def denied(tmp_path, servers):
    """Run uncork with something denied; `within` is what takes it away."""
    tmp_path.chmod(0o777)

    def run(within, *words, program=("-m", "uncork"), **more):
        environment = {**os.environ, "UNCORK_RUNS": str(tmp_path / "runs"), "TMPDIR": str(tmp_path)}
        environment |= {"UNCORK_SERVERS": str(servers), "PYTHONDONTWRITEBYTECODE": "1", **more}
        call = [*within, sys.executable, *program, *map(str, words)]
        done = subprocess.run(
            call, capture_output=True, text=True, env=environment, timeout=240, check=False, cwd=tmp_path
        )
        if done.stderr.startswith(("unshare:", "setpriv:")):
            pytest.skip(done.stderr)
        assert "Traceback" not in done.stderr
        return done

    return run


@ROOT
@pytest.mark.parametrize("within", [NOBODY, POWERLESS], ids=["as nobody", "as root without rights"])
def test_a_command_of_ones_own_is_profiled_without_rights(denied, within):
    if TROUBLE is not None:
        pytest.skip(TROUBLE)
    told = denied(
        within, "profile", "cpu", "--json", "--command", "python3", "-c", SPIN, PATH="/usr/bin:/bin"
    )
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    assert result["method"]["tool"] == "perf" and result["user_ns"] > 5e8
    # If it slept for a moment, what cannot be seen of sleep is told, too.
    missing = [one for one in result["method"]["cannot_see"] if "kernel" in one and "sleeping" not in one]
    assert missing == ["frames of the kernel: perf may see only user code here"]


@ROOT
@pytest.mark.parametrize("within", [NOBODY, POWERLESS], ids=["as nobody", "as root without rights"])
def test_of_somebody_elses_process_times_are_left(denied, within):
    with subprocess.Popen(["sh", "-c", "while :; do :; done"], user=2) as other:
        told = denied(within, "profile", "cpu", "--json", "--pid", other.pid, "--for", "1s")
        other.kill()
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    assert result["method"]["tool"] == "/proc" and result["user_ns"] >= 1e7  # a clock tick
    missing = [one for one in result["method"]["cannot_see"] if one.startswith("stacks of code: ")]
    assert len(missing) == 1 and "\n" not in missing[0]
    if TROUBLE is None:
        assert "perf may not observe these processes" in missing[0]


@pytest.mark.thorough
def test_a_run_without_perf_and_strace_says_so_and_gathers_the_rest(denied, tmp_path):
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    program = ("-c", BRIEF_EVIDENCE.format(nanoseconds=500_000_000))
    done = denied([], "run", "e.toml", program=program, PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("collected evidence for ") == 2
    (folder,) = (tmp_path / "runs").glob("denied-*")
    facts = json.loads((folder / "evidence" / "001" / "facts.json").read_text())
    assert facts["method"]["tool"] == "/proc" and sum(facts["cpu_ns"]) > 0
    assert [lack.partition(":")[0] for lack in facts["method"]["cannot_see"]] == [
        "stacks of code",
        "system calls",
    ]
    page = (folder / "report.html").read_text()
    assert "perf is not installed" in page


@ROOT
def test_a_root_that_may_not_become_another_is_told_what_to_do(denied, tmp_path, servers):
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    done = denied(POWERLESS, "run", "e.toml")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("run uncork as a user other than root")
    assert not list(servers.iterdir())


@ROOT
def test_servers_of_another_container_are_left_alone(servers, monkeypatch):
    monkeypatch.setenv("UNCORK_SERVERS", str(servers))
    ask = "from uncork.engines.embedded import remove_leftovers; print(remove_leftovers())"
    server = EmbeddedServer({})
    server.start()
    try:
        done = subprocess.run(
            [*CONTAINED, sys.executable, "-c", ask], capture_output=True, text=True, check=False
        )
        if done.stderr.startswith("unshare:"):
            pytest.skip(done.stderr)
        assert done.stdout.strip() == "[]", done.stderr
        server.restart()
        assert server.pid is not None
    finally:
        server.stop()


@ROOT
def test_a_run_of_others_is_shown_though_nothing_can_be_written_beside_it(denied, tmp_path):
    results = Path(__file__).parents[1] / "fixtures" / "results"
    assert denied([], "import", results / "wrk.txt", "--at", "2026-05-01").returncode == 0
    (folder,) = (tmp_path / "runs").glob("import-*")
    folder.chmod(0o555)
    told = denied(POWERLESS, "report")
    assert told.returncode == 0, told.stderr
    assert "throughput" in told.stdout
    assert told.stderr.endswith("is read-only, so no page is written; --html FILE writes one elsewhere\n")
    assert denied(POWERLESS, "report", "--html", "page.html").returncode == 0
    assert (tmp_path / "page.html").is_file()
    assert sorted(path.name for path in folder.iterdir()) == ["figures", "manifest.json"]
