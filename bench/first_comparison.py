"""Measure how long a comparison takes in a store of ten thousand runs with no cached metrics.

A load of a second is copied under new ids, as in ``bench/dashboard.py``: all copies are comparable (`alike`),
or only every five hundredth is (`few`). The newest run is compared with the run five hundred places before
it, and all caches are removed before the next time. With ``--beside``, another version's package does the
same in alternation, so that other work on the machine affects both.

``python bench/first_comparison.py [--runs 10000] [--rounds 3] [--beside PYTHON_FOLDER]``
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dashboard import UNCORK, copy_runs, make_run

_APART = 500


def make_unlike(root: Path) -> None:
    """Make only every five hundredth run comparable."""
    for place, run in enumerate(sorted(root.glob("load-*"))):
        plan = json.loads((run / "plan.json").read_text())
        (run / "plan.json").unlink()  # a hard link shared by all runs
        (run / "plan.json").write_text(json.dumps({**plan, "seed": place, "clients": 1 + place % _APART}))
        _settle(run)


def compared(root: Path, package: Path | None) -> tuple[float, float]:
    """Compare two runs; return the wall time and CPU time, in seconds."""
    ids = sorted(path.name for path in root.glob("load-*"))
    environment = os.environ | ({"PYTHONPATH": str(package)} if package is not None else {})
    command = [*UNCORK, "compare", ids[-1 - _APART], ids[-1], "--runs", str(root)]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=environment)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def forget(root: Path) -> None:
    """Remove everything that is cached about the runs."""
    for path in root.glob("*/figures.json"):
        path.unlink()
        _settle(path.parent)


def _settle(run: Path) -> None:
    """Date a run's files an hour back; otherwise lists read it each time."""
    earlier = time.time() - 3600
    os.utime(run, (earlier, earlier))


def main() -> int:
    """Create the runs, compare, print the results; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path, default=None, metavar="PYTHON_FOLDER")
    arguments = parser.parse_args()
    versions = {"this": None} | ({"other": arguments.beside} if arguments.beside else {})
    folder = Path(tempfile.mkdtemp(prefix="uncork-first-"))
    try:
        root = folder / "runs"
        copy_runs(make_run(folder / "one"), root, arguments.runs)
        for what in ("alike", "few"):
            if what == "few":
                make_unlike(root)
            took: dict[str, list[tuple[float, float]]] = {name: [] for name in versions}
            for _ in range(arguments.rounds):
                for name, package in versions.items():
                    forget(root)
                    took[name].append(compared(root, package))
            took["this, remembered"] = [compared(root, None)]
            for name, times in took.items():
                clock, cpu = (statistics.median(column) for column in zip(*times, strict=True))
                print(f"{what}, {name}: {clock:.2f} s, {cpu:.2f} s of processor time", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
