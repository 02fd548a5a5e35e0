"""Measure how fast the dashboard is over ten thousand runs, and with fifty clients at once.

A run is measured (a load of our own server for a second) and copied under new ids until there are enough:
each copy has a new manifest, and hard links to the tables of the original. ``uncork serve`` is started over
them, and its pages are requested repeatedly, one request at a time. Then `uncork load http` requests the
list, a report and a comparison with many clients at once. The times of listing and querying by the command
line are printed too.

``python bench/dashboard.py [--runs 10000] [--clients 50] [--seconds 60]``
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from servers.hello_server import hello_server

UNCORK = (sys.executable, "-m", "uncork")
_ASKED = 40


def make_run(root: Path) -> Path:
    """Load our own server for a second; return the run."""
    with hello_server() as url:
        command = [*UNCORK, "load", "http", "-c", "2", "-D", "1", url]
        subprocess.run([*command, "--runs", str(root)], check=True, capture_output=True)
    return next(root.glob("load-*"))


def copy_runs(run: Path, root: Path, number: int) -> None:
    """Copy a run under new ids, a few minutes apart, the last one now."""
    manifest = json.loads((run / "manifest.json").read_text())
    files = [path for path in run.rglob("*") if path.is_file() and path.name != "manifest.json"]
    now = datetime.now(UTC)
    for place in range(number):
        at = now - timedelta(minutes=7 * (number - place))
        copy = root / f"load-shop-{at:%Y%m%d-%H%M%S}"
        copy.mkdir(parents=True)
        for path in files:
            target = copy / path.relative_to(run)
            target.parent.mkdir(exist_ok=True)
            os.link(path, target)
        question = f"load: shop release {place % 97} by 2 connections"
        changed = {"id": copy.name, "started_at": at.isoformat(timespec="seconds"), "question": question}
        (copy / "manifest.json").write_text(json.dumps({**manifest, **changed}))
        earlier = time.time() - 3600
        os.utime(copy, (earlier, earlier))


@contextmanager
def served(root: Path) -> Iterator[int]:
    """Serve the runs; yield the port."""
    process = subprocess.Popen(
        [*UNCORK, "serve", "--port", "0", "--runs", str(root)], stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline() if process.stdout is not None else ""
        yield int(address.strip().rstrip("/").rpartition(":")[2])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def asked(port: int, path: str, times: int = _ASKED) -> list[float]:
    """Return the times of answers to a page, in milliseconds, each on a connection of its own."""
    took = []
    for _ in range(times):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        began = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        took.append(1000 * (time.perf_counter() - began))
        connection.close()
        if answer.status not in (200, 202) or not body:
            raise SystemExit(f"{path}: {answer.status}")
    return took


def timed(*arguments: str) -> tuple[float, float]:
    """Return the wall time and CPU time of a command, in seconds."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*UNCORK, *arguments], check=True, capture_output=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Create the runs, request pages, load, print the results; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="uncork-dashboard-"))
    try:
        copy_runs(make_run(folder / "one"), folder / "runs", arguments.runs)
        return _measured(folder, arguments.clients, arguments.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(folder: Path, clients: int, seconds: int) -> int:
    root = str(folder / "runs")
    query = "SELECT count(*), avg(elapsed_ns) FROM load_totals"
    for what, command in (
        ("list, the first time", ("runs", "--last", "1")),
        ("list", ("runs", "--last", "1")),
        ("ask all, the first time", ("sql", "all", query)),
        ("ask all", ("sql", "all", query)),
        ("say the version", ("--version",)),
    ):
        took, cpu = timed(*command, *([] if command[0] == "--version" else ["--runs", root]))
        print(f"{what}: {took:.2f} s, {cpu:.2f} s of processor time")
    with served(Path(root)) as port:
        ids = sorted(path.name for path in Path(root).glob("load-*"))
        report, beside = f"/runs/{ids[-1]}", f"/compare?run={ids[-300:][0]}&run={ids[-1]}"
        for path in ("/", "/?q=release+7&kind=load", "/?page=50", "/metrics", report, beside, "/history"):
            took = asked(port, path)
            median, worst = statistics.median(took), max(took)
            print(f"GET {path}: first {took[0]:.0f} ms, median {median:.0f} ms, worst {worst:.0f} ms")
        addresses = [f"http://127.0.0.1:{port}{path}" for path in ("/", report, beside)]
        command = [*UNCORK, "load", "http", "-c", str(clients), "-D", str(seconds), *addresses, "--json"]
        done = subprocess.run(
            [*command, "--runs", str(folder / "load")], capture_output=True, text=True, check=True
        )
    result = json.loads(done.stdout)
    print(result["answer"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
