"""Compare the time measured and the interval widths of runs of 30, 60 and 150 seconds.

One experiment has two comparisons with a baseline of ``generate_series(1, 1000)``: the same statement again
(A/A), and one that reads 5 % more rows (planted). For each budget it runs

* by this checkout, whose variants take turns in slices;
* with ``--before PYTHON_FOLDER`` by another version of the package, with trials of 30 ms, 8 blocks per round;
* by hand: pgbench runs of 5 s of the three statements one after the other, in random order within a group.
  The interval is Student's, of the log ratios of mean latencies within groups.

The three alternate, so that other work on the machine affects all of them. The table shows the median and the
range over the repeats. The time measured is a fraction of the run's wall time, which includes creating the
(small) data. An interval of uncork holds at every look, Student's at one only: it is narrower.

``bench/time_to_verdict.py [--seconds 30,60,150] [--repeats 3] [--before PYTHON_FOLDER] [--no-pgbench]``

pgbench comes from PGBENCH, from PATH, or from Debian's PostgreSQL 15; without one, its rows are left out. It
takes about ``repeats * sum(seconds)`` for each of the three: 36 minutes with ``--before`` and the defaults.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from uncork.engines.embedded import EmbeddedServer
from uncork.stats.student import student_reach

ROWS = {"base": 1000, "same": 1000, "planted": 1050}
FIXED = 'duration = "30ms"'
TURN_S = 5

EXPERIMENT = """
[experiment]
name = "verdict"
question = "How soon is a difference of 5 % seen?"

[variants.base]
baseline = true
values = {{ rows = "1000" }}

[variants.same]
values = {{ rows = "1000" }}

[variants.planted]
values = {{ rows = "1050" }}

[setup]
sql = "SELECT 1"

[workloads.series]
sql = "SELECT sum(n) FROM generate_series(1, :rows) AS n"
{fixed}
state = "keep"
answer = "may differ"

[stop]
{blocks}
precision = "0.01%"
practical = "0.01%"
budget = "{seconds}s"
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one method: fraction of the wall time measured, and (ratio, half-width) by variant.

    Half-widths are ratios, infinite if there is no interval.
    """

    measured: float
    found: dict[str, tuple[float, float]]


def uncork_run(folder: Path, seconds: int, seed: int, package: Path | None) -> Outcome:
    """Run the experiment with this version of the package, or with the version in `package`."""
    before = package is not None
    path = folder / "verdict.toml"
    blocks = "blocks = 8" if before else ""
    path.write_text(EXPERIMENT.format(fixed=FIXED if before else "", blocks=blocks, seconds=seconds))
    runs = folder / "runs"
    environment = os.environ | ({"PYTHONPATH": str(package)} if before else {})
    command = [sys.executable, "-m", "uncork", "run", str(path), "--runs", str(runs), "--seed", str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    stored = sorted(runs.glob("verdict-*/result.json"), key=lambda one: one.stat().st_mtime)
    if not stored:
        raise SystemExit(f"uncork run failed: {done.stderr.strip()}")
    run = stored[-1].parent
    manifest = json.loads((run / "manifest.json").read_text())
    wall_ns = sum(attempt["elapsed_ns"] for attempt in manifest["attempts"])
    trials = [str(path) for path in (run / "trials").glob("*.parquet")]
    with duckdb.connect() as connection:
        row = connection.execute("SELECT sum(elapsed_ns) FROM read_parquet(?)", [trials]).fetchone()
    result = json.loads(stored[-1].read_text())
    found = {one["variant"]: _ratio(one) for one in result["comparisons"]}
    shutil.rmtree(run)
    return Outcome(float(row[0]) / wall_ns if row else 0.0, found)


def _ratio(comparison: dict[str, float | None]) -> tuple[float, float]:
    ratio, low, high = (comparison[name] for name in ("ratio", "low", "high"))
    if ratio is None or low is None or high is None:
        return (math.nan if ratio is None else ratio), math.inf
    return ratio, math.sqrt(high / low) - 1.0


def by_hand(pgbench: str, folder: Path, server: EmbeddedServer, seconds: int, seed: int) -> Outcome:
    """Run pgbench for 5 s on each statement in turn, for as many complete groups as fit into the time."""
    lot, begun = random.Random(seed), time.monotonic()
    latencies: dict[str, list[float]] = defaultdict(list)
    for variant, rows in ROWS.items():
        statement = f"SELECT sum(n) FROM generate_series(1, {rows}) AS n;\n"  # noqa: S608 -- a number of ours
        (folder / f"{variant}.sql").write_text(statement)
    while time.monotonic() - begun + len(ROWS) * TURN_S <= seconds or len(latencies["base"]) < 2:
        for variant in lot.sample(list(ROWS), len(ROWS)):
            latencies[variant].append(_turn(pgbench, folder / f"{variant}.sql", server))
    groups = len(latencies["base"])
    share = groups * len(ROWS) * TURN_S / (time.monotonic() - begun)
    found = {}
    for variant in ("same", "planted"):
        logs = [math.log(one / base) for one, base in zip(latencies[variant], latencies["base"], strict=True)]
        reach = student_reach(0.95, groups - 1) * statistics.stdev(logs) / math.sqrt(groups)
        found[variant] = (math.exp(statistics.fmean(logs)), math.expm1(min(reach, 50.0)))
    return Outcome(share, found)


def _turn(pgbench: str, script: Path, server: EmbeddedServer) -> float:
    """Return the mean latency of one run of pgbench, in milliseconds."""
    command = [pgbench, "-n", "-M", "prepared", "-c", "1", "-T", str(TURN_S), "-f", str(script)]
    done = subprocess.run(
        [*command, server.conninfo("postgres")], capture_output=True, text=True, check=False
    )
    mean = re.search(r"latency average = ([\d.]+) ms", done.stdout)
    if mean is None:
        raise SystemExit(f"pgbench failed: {done.stderr.strip()}")
    return float(mean[1])


def find_pgbench() -> str | None:
    """Return the path of a pgbench, or None."""
    debian = Path("/usr/lib/postgresql/15/bin/pgbench")
    found = os.environ.get("PGBENCH") or shutil.which("pgbench")
    return found or (str(debian) if debian.exists() else None)


def table(outcomes: dict[tuple[int, str], list[Outcome]]) -> str:
    """Return the outcomes as a Markdown table: medians, with the range over the repeats in brackets."""
    lines = [
        "| budget | method | time measured | A/A half-width | planted half-width | planted ratio | decided |",
        "|---|---|---|---|---|---|---|",
    ]
    for (seconds, way), several in outcomes.items():
        widths = {name: [one.found[name][1] for one in several] for name in ("same", "planted")}
        ratios = [one.found["planted"][0] for one in several]
        decided = sum(
            math.log(one.found["planted"][0]) > math.log1p(one.found["planted"][1]) for one in several
        )
        cells = (
            f"{seconds} s",
            way,
            _spread([one.measured for one in several], "{:.0%}"),
            _spread(widths["same"], "±{:.1%}"),
            _spread(widths["planted"], "±{:.1%}"),
            _spread(ratios, "{:.3f}"),
            f"{decided} of {len(several)}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(values: Sequence[float], form: str) -> str:
    middle, low, high = (form.format(one) for one in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def main() -> int:
    """Run all methods in alternation; print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", default="30,60,150")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", type=Path, default=None, metavar="PYTHON_FOLDER")
    parser.add_argument("--no-pgbench", action="store_true")
    arguments = parser.parse_args()
    budgets = [int(word) for word in arguments.seconds.split(",")]
    pgbench = None if arguments.no_pgbench else find_pgbench()
    if pgbench is None and not arguments.no_pgbench:
        print("no pgbench here (PGBENCH names one): its rows are left out", file=sys.stderr)
    ways = ["before"] * (arguments.before is not None) + ["now"] + ["pgbench by hand"] * (pgbench is not None)
    outcomes: dict[tuple[int, str], list[Outcome]] = {(one, way): [] for one in budgets for way in ways}
    with tempfile.TemporaryDirectory(prefix="uncork-verdict-") as name:
        folder = Path(name)
        for repeat in range(arguments.repeats):
            for seconds in budgets:
                for way in random.Random(f"{repeat}/{seconds}").sample(ways, len(ways)):
                    if way == "pgbench by hand":
                        server = EmbeddedServer({"shared_buffers": "128MB"})
                        server.start()
                        try:
                            found = by_hand(str(pgbench), folder, server, seconds, repeat)
                        finally:
                            server.stop()
                    else:
                        package = arguments.before if way == "before" else None
                        found = uncork_run(folder, seconds, repeat + 1, package)
                    outcomes[seconds, way].append(found)
                    width = found.found["same"][1]
                    print(
                        f"{seconds} s, {way}: {found.measured:.0%} measured, A/A ±{width:.1%}",
                        file=sys.stderr,
                    )
    print(table(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
