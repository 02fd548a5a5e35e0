"""Test `uncork guard` on a real server: how often it alarms falsely, and whether it finds a planted 5 %.

Runs A/A guards (both sides the same) and, with `--planted 5%`, guards whose candidate takes that much longer,
in turn, each with its own seed and servers. First it measures how many more rows take that much longer. Every
guard is a line of JSON in a file. Guards that are already in the file are not run again, so the script can be
interrupted and resumed. At the end it prints the counts of all lines. Usage::

    guard_pairs.py --pairs 40 --budget 45s                     some 40 minutes
    guard_pairs.py --pairs 0 --planted 5% --planted-pairs 10   some 25 minutes
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from uncork.analysis.experiment.result import build_result
from uncork.experiment.guard.sides import parse_side
from uncork.model.units import format_duration, parse_duration, parse_share
from uncork.requests.guard import GuardRequest
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, file_source
from uncork.workbench.experiment.session import RunSession, new_run
from uncork.workbench.guard.experiment import BUDGET_NS, guard_experiment

ROWS = 20_000
EXPERIMENT = '''
[experiment]
name = "pairs"
question = "Is a sum over rows still as fast?"

[variants.plain]
baseline = true
values = { last = "20000" }

[variants.twice]
values = { last = "40000" }

[setup]
sql = """
CREATE TABLE item (id integer PRIMARY KEY, price integer NOT NULL);
INSERT INTO item SELECT n, n % 997 FROM generate_series(1, 50000) AS n;
"""

[workloads.sum]
sql = "SELECT sum(price) FROM item WHERE id <= :last"
duration = "100ms"
state = "keep"
answer = "may differ"

[server.settings]
shared_buffers = "64MB"
max_parallel_workers_per_gather = 0
enable_seqscan = false
enable_bitmapscan = false
'''


def main() -> int:
    """Run the missing guards and print the counts of all; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=40, help="A/A guards (default 40)")
    parser.add_argument(
        "--budget", default="45s", help="maximum duration of each of their measurements (default 45s)"
    )
    parser.add_argument(
        "--planted",
        metavar="SHARE",
        help="also run guards whose candidate does this much more work, such as 5%%",
    )
    parser.add_argument(
        "--planted-pairs",
        type=int,
        default=10,
        help="number of guards with a planted regression (default 10)",
    )
    parser.add_argument(
        "--planted-budget",
        default=None,
        help="maximum duration of each of their measurements (default: that of uncork guard)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("guard_pairs.jsonl"), help="the file to which lines are appended"
    )
    asked = parser.parse_args()
    budgets = {
        "A/A": parse_duration(asked.budget),
        "planted": BUDGET_NS if asked.planted_budget is None else parse_duration(asked.planted_budget),
    }
    share = None if asked.planted is None else parse_share(asked.planted)
    counts = {"A/A": asked.pairs, "planted": asked.planted_pairs if share is not None else 0}
    done = _lines(asked.out)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pairs.toml").write_text(EXPERIMENT)
        rows = ROWS
        if counts["planted"] and share is not None:
            rows = _calibrated(folder, share, done, asked.out)
        known = {(one["kind"], one["seed"], one["budget_ns"]) for one in done if one["kind"] in counts}
        for kind, seed in _turns(counts):
            if (kind, seed, budgets[kind]) in known:
                continue
            line = _guard(folder, kind, seed, budgets[kind], rows)
            _append(asked.out, line)
            done.append(line)
            print(_words(line), flush=True)
    _report([one for one in done if one["kind"] in counts])
    return 0


def _turns(counts: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Yield kind and seed of each guard, kinds in turn; a guard's confirmation has the seed after its own."""
    queues = [[(kind, 1000 + 10 * number) for number in range(count)] for kind, count in counts.items()]
    for turn in itertools.zip_longest(*queues):
        yield from (one for one in turn if one is not None)


def _guard(folder: Path, kind: str, seed: int, budget_ns: int, rows: int) -> dict[str, Any]:
    planted = kind == "planted"
    load = os.getloadavg()[0]
    begun = time.monotonic()
    result = guard_experiment(
        folder / "runs",
        GuardRequest(
            target=str(folder / "pairs.toml"),
            baseline=parse_side("baseline", []),
            candidate=parse_side("candidate", [f"value=last:{rows}"] if planted else []),
            options=Options(seed=seed, budget_ns=budget_ns),
            same=not planted,
        ),
        _measure,
        lambda _: None,
    )
    (check,) = result.checks
    return {
        "kind": kind,
        "seed": seed,
        "budget_ns": budget_ns,
        "rows": rows if planted else ROWS,
        "status": result.status,
        "outcome": check.outcome.value,
        "found_first": check.confirmed is not None,
        "confirmed": check.confirmed,
        "ratio": check.ratio,
        "low": check.low,
        "high": check.high,
        "rounds": check.rounds,
        "seconds": round(time.monotonic() - begun, 1),
        "load": round(load, 1),
    }


def _measure(session: RunSession) -> None:
    with closing(session.events()) as events:
        for _ in events:
            pass


def _calibrated(folder: Path, share: float, done: list[dict[str, Any]], out: Path) -> int:
    """Return the number of rows that takes the given share longer, from two measured numbers of rows."""
    for one in done:
        if one["kind"] == "calibration" and one["share"] == share:
            return int(one["rows"])
    options = Options(seed=1, budget_ns=60 * 10**9, precision=0.005)
    session = new_run(folder / "runs", file_source(folder / "pairs.toml", options), ServerChoice())
    _measure(session)
    values: dict[str, list[float]] = {}
    for metric in build_result(session.folder).metrics:
        values.setdefault(metric.variant, []).extend(value for _, value in metric.by_round)
    once, twice = (statistics.median(values[name]) for name in ("plain", "twice"))
    rows = round(ROWS * (1 + share * once / (twice - once)))
    line = {"kind": "calibration", "share": share, "rows": rows, "once_ns": once, "twice_ns": twice}
    _append(out, line)
    print(
        f"{ROWS} rows take {format_duration(once)}, {2 * ROWS} take {format_duration(twice)}: "
        f"{rows} rows take {share:.1%} longer than {ROWS}",
        flush=True,
    )
    return rows


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def _append(path: Path, line: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _words(line: dict[str, Any]) -> str:
    found = f"{line['ratio']:.4f}" if line["ratio"] else "nothing"
    ends = (f"{line[end]:.4f}" if line[end] is not None else "?" for end in ("low", "high"))
    second = {None: "", True: ", seen twice", False: ", not found again"}[line["confirmed"]]
    return (
        f"{line['kind']} seed {line['seed']}: {found} [{', '.join(ends)}] {line['rounds']} rounds, "
        f"{line['seconds']:.0f} s, load {line['load']}: {line['outcome']}{second}"
    )


def _report(lines: list[dict[str, Any]]) -> None:
    for kind in dict.fromkeys(one["kind"] for one in lines):
        ours = [one for one in lines if one["kind"] == kind]
        first, alarms = sum(one["found_first"] for one in ours), sum(one["status"] == 3 for one in ours)
        kept = sum(one["status"] == 0 for one in ours)
        print(
            f"{kind}: {len(ours)} guards; broken before confirmation {first}, after it {alarms} (exit 3); "
            f"kept {kept} (exit 0); not decided {len(ours) - alarms - kept} (exit 4); "
            f"{statistics.median(one['seconds'] for one in ours):.0f} s each"
        )


if __name__ == "__main__":
    sys.exit(main())
