"""A dashboard as a person starts it, over real runs: a load, and an experiment on SQLite."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.servers.hello_server import hello_server

from uncork.store.figures import recall_figures, remember_figures

EXPERIMENT = '''
[experiment]
name = "lookup"
question = "Is a look-up by key faster than a scan?"

[variants.scan]
baseline = true
engine = "sqlite"
values = { condition = "id + 0 = :id" }

[variants.key]
engine = "sqlite"
values = { condition = "id = :id" }

[setup]
sql = """
CREATE TABLE t (id integer PRIMARY KEY, f text);
WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 3000)
INSERT INTO t SELECT n, 'x' FROM s
"""

[workloads.get]
sql = "SELECT f FROM t WHERE :condition"
operations = 40
parameters.id = { generator = { kind = "uniform", min = 1, max = 3000 } }

[stop]
budget = "10s"
precision = "99%"
'''


def uncork(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "uncork", *map(str, arguments)], capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def make_load(root: Path) -> Path:
    """Load a server of ours for two seconds, so that its charts have two points; return the run."""
    with hello_server() as address:
        uncork("load", "http", "-c", 2, "-D", 2, address, "--runs", root)
    return max(root.glob("load-*"))


def make_experiment(root: Path, folder: Path) -> Path:
    """Carry out a small experiment; return the run."""
    path = folder / "lookup.toml"
    path.write_text(EXPERIMENT)
    uncork("run", path, "--runs", root)
    return max(root.glob("lookup-*"))


def copy_run(run: Path, number: int, **changes: object) -> Path:
    """Copy a run under a new id, as if it were made `number` hours earlier."""
    manifest = json.loads((run / "manifest.json").read_text())
    at = datetime.now(UTC) - timedelta(hours=number + 1)
    name = changes.pop("id", f"{manifest['name']}-{at:%Y%m%d-%H%M%S}")
    copy = run.parent / str(name)
    shutil.copytree(run, copy)
    known = {"id": copy.name, "started_at": at.isoformat(timespec="seconds"), **changes}
    (copy / "manifest.json").write_text(json.dumps({**manifest, **known}))
    figures = recall_figures(run)
    if figures is not None:
        remember_figures(copy, replace(figures, id=copy.name, started_at=known["started_at"]))
    return copy


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    text: str

    def cookies(self) -> str:
        return "; ".join(value.partition(";")[0] for value in self.headers.get_all("set-cookie", []))


@dataclass(frozen=True)
class Dashboard:
    address: str
    port: int
    root: Path
    process: subprocess.Popen[str]

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
    ) -> Answer:
        """Send a request just as it stands: no path is put in order, no header added but Host."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Host": f"127.0.0.1:{self.port}", **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode("utf-8", "replace"))
        finally:
            connection.close()


@contextmanager
def dashboard(root: Path, *options: object, env: Mapping[str, str] | None = None) -> Iterator[Dashboard]:
    """Start a dashboard over a folder of runs; end it as Ctrl-C does, and see that it ends well."""
    command: Sequence[str] = [sys.executable, "-m", "uncork", "serve", "--port", "0", "--runs", str(root)]
    process = subprocess.Popen(
        [*command, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), process.stderr.read()
        yield Dashboard(address, int(address.rstrip("/").rpartition(":")[2]), root, process)
    finally:
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 0, told
    assert "Traceback" not in told
