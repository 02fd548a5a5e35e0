"""Measure how fast ten thousand runs at an address are listed and queried, the first time and later.

A load of a second is copied under new ids, as in ``bench/dashboard.py``. The copies are put into a server
that speaks S3 (moto's, on loopback), each with its index and its table of totals. Simulated machines that
never saw them, each with its own cache, then list and query them. The time includes that of the server, which
is written in Python; the CPU time is uncork's alone. With ``--beside``, another version's package lists and
queries in alternation, on a machine of its own.

``python bench/address.py [--runs 10000] [--rounds 5] [--beside PYTHON_FOLDER]``
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from dashboard import UNCORK, copy_runs, make_run
from servers.s3_server import BUCKET, s3_server
from uncork.store.layout import read_manifest
from uncork.store.remote.address import Address, parse_address
from uncork.store.remote.mirror import RunDocument, files_of, run_path
from uncork.store.remote.objects import Remote

ADDRESS = f"s3://{BUCKET}/team"
QUERY = "SELECT count(*), avg(elapsed_ns) FROM load_totals"
_TABLE = "load_totals/000001.parquet"


def fill(root: Path) -> None:
    """Put the runs of a folder at the address: the totals of each, then its index."""
    address = parse_address(ADDRESS, os.environ)
    if not isinstance(address, Address):
        raise TypeError(ADDRESS)
    remote = Remote(address)
    runs = sorted(path for path in root.iterdir() if not path.name.startswith("."))
    files = {name: facts for name, facts in files_of(runs[0]).items() if name == _TABLE}
    for start in range(0, len(runs), 500):
        some = runs[start : start + 500]
        remote.write_files({f"{run.name}/{_TABLE}": run / _TABLE for run in some})
        indexes = {}
        for run in some:
            index = run / ".index"
            index.write_bytes(RunDocument(replace(read_manifest(run), id=run.name), files).content())
            indexes[run_path(run.name)] = index
        remote.write_files(indexes)


def timed(cache: Path, *arguments: str, package: Path | None = None) -> tuple[float, float, str]:
    """Return the wall time and CPU time of a command, in seconds, and the last line that it printed."""
    environment = {**os.environ, "UNCORK_CACHE": str(cache), "UNCORK_RUNS": ADDRESS}
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*UNCORK, *arguments], check=True, capture_output=True, text=True, env=environment)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, cpu, done.stdout.splitlines()[-1]


def again_in_turn(folder: Path, rounds: int, package: Path | None) -> None:
    """List and query repeatedly, this version and another in alternation; print the medians."""
    machines: dict[str, tuple[str, Path | None]] = {"this version": ("two", None)}
    if package is not None:
        machines["the other"] = ("other", package)
        timed(folder / "other", "sql", "all", QUERY, package=package)
    for what, command in (("list", ("runs", "--last", "1")), ("ask all", ("sql", "all", QUERY))):
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in machines}
        for _ in range(rounds):
            for name, (machine, of) in machines.items():
                took[name].append(timed(folder / machine, *command, package=of)[:2])
        for name, times in took.items():
            clock, cpu = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{what} again, {name}: {clock:.2f} s, {cpu:.2f} s of processor time", flush=True)


def main() -> int:
    """Create the runs, upload them, list and query, print the results; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", type=Path, default=None, metavar="PYTHON_FOLDER")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="uncork-address-"))
    try:
        copy_runs(make_run(folder / "one"), folder / "runs", arguments.runs)
        with s3_server() as server:
            os.environ.update(server.environment)
            fill(folder / "runs")
            for what, machine, command in (
                ("list, the first of all: it reads each index", "one", ("runs", "--last", "1")),
                ("list again", "one", ("runs", "--last", "1")),
                ("list, the first of another machine", "two", ("runs", "--last", "1")),
                ("list again there", "two", ("runs", "--last", "1")),
                ("ask all, the first time: it fetches the totals", "two", ("sql", "all", QUERY)),
            ):
                took, cpu, last = timed(folder / machine, *command)
                if command[0] == "sql" and str(arguments.runs) not in last:
                    raise SystemExit(f"not all runs were asked: {last}")
                print(f"{what}: {took:.2f} s, {cpu:.2f} s of processor time", flush=True)
            again_in_turn(folder, arguments.rounds, arguments.beside)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
