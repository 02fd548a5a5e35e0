"""Parts of a load that are killed, slowed or left alone: do the accounts close, and who is named?

    python -m bench.killed.parts kill --rounds 20 --seed 1

In each round four processes send one load, in turn an open and a closed loop. Then the runs are merged.
The server's own count (pg_stat_statements) must lie between what the merged run knows as started, and that
plus what it calls unknown. There are three kinds of rounds:

- ``kill``: one process is killed with SIGKILL, at any moment from a second before the start to the end;
- ``slow``: one process runs for a fifth of the time (SIGSTOP, SIGCONT ten times a second), and must be named.
  All loads are open loops: in a closed loop, the process sends less, but most latencies stay the same;
- ``whole``: nothing happens. No part may be named; shows how far the starts lie apart.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import psycopg

from uncork.analysis.load.result import build_load_result
from uncork.engines.embedded import EmbeddedServer
from uncork.model.results.load import LoadResult
from uncork.workbench.load.merging import merge_runs

Kind = Literal["kill", "slow", "whole"]
PARTS: Final = 4
PROBE: Final = "SELECT 22 AS probe;\n"
AWAKE_S, ASLEEP_S = 0.02, 0.08


@dataclass
class Found:
    """What went wrong in which round, and what was measured."""

    rounds: int = 0
    killed: int = 0
    named: int = 0
    limited: int = 0
    troubles: list[str] = field(default_factory=list)
    skews_ns: list[int] = field(default_factory=list)
    late_ns: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)


def rounds_of_parts(
    folder: Path, kind: Kind, rounds: int, seed: int, *, seconds: int = 3, ahead_s: float = 8.0
) -> Found:
    """Carry out rounds of one kind; each load lasts `seconds` and starts after `ahead_s`."""
    dice, found = random.Random(seed), Found()
    script = folder / "probe.sql"
    script.write_text(PROBE)
    server = EmbeddedServer({"shared_preload_libraries": "pg_stat_statements", "shared_buffers": "64MB"})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as watch:
            watch.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            for number in range(rounds):
                watch.execute("SELECT pg_stat_statements_reset()")
                runs = folder / f"round-{number}"
                start = time.time() + ahead_s
                is_open = kind == "slow" or number % 2 == 0
                load = ["-T", str(seconds), "-f", str(script), *(["-R", "800"] if is_open else [])]
                processes = [
                    _part(part, start, runs, [*load, "--dsn", server.conninfo()])
                    for part in range(1, PARTS + 1)
                ]
                victim = dice.randrange(PARTS)
                if kind == "kill":
                    _sleep_until(start - 1 + dice.uniform(0, seconds + 1))
                    processes[victim].send_signal(signal.SIGKILL)
                elif kind == "slow":
                    _sleep_until(start)
                    _slow(processes[victim])
                for process in processes:
                    process.wait(timeout=120)
                time.sleep(0.5)
                _judge(found, f"round {number}", runs, _calls(watch), kind, victim + 1)
    finally:
        server.stop()
    return found


def _part(number: int, start: float, runs: Path, load: list[str]) -> subprocess.Popen[bytes]:
    part = ["--shard", f"{number}/{PARTS}", "--random-seed", "5", "--start-at", f"{start:.6f}"]
    words = ["load", "sql", *part, "-c", "8", "-n", "--runs", str(runs), *load]
    with (runs.parent / f"{runs.name}-part-{number}.txt").open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "uncork", *words], stdout=log, stderr=log)


def _written(runs: Path) -> str:
    return " ".join(path.read_text()[-300:] for path in sorted(runs.parent.glob(f"{runs.name}-part-*.txt")))


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def _slow(process: subprocess.Popen[bytes]) -> None:
    """Let a process run for a fifth of the time, until it ends."""
    while process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(ASLEEP_S)
        process.send_signal(signal.SIGCONT)
        time.sleep(AWAKE_S)


def _calls(watch: psycopg.Connection) -> int:
    row = watch.execute("SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE '%AS probe%'").fetchone()
    return int((row and row[0]) or 0)


def _judge(found: Found, name: str, runs: Path, calls: int, kind: Kind, victim: int) -> None:
    found.rounds += 1
    stored = [one.name for one in runs.iterdir() if (one / "plan.json").is_file()] if runs.is_dir() else []
    if not stored:
        found.troubles.append(f"{name}: no part stored anything, but wrote: {_written(runs)}")
        return
    result = build_load_result(merge_runs(runs, stored))
    parts = () if result.parts is None else result.parts.parts
    found.killed += sum(part.ended in ("killed", "missing") for part in parts)
    for part in parts:
        if part.planned is not None:
            accounted = part.started + (part.not_started or 0) + (part.unknown or 0)
            if accounted != part.planned:
                found.troubles.append(
                    f"{name}: part {part.number} planned {part.planned}, accounts for {accounted}"
                )
    # A part that was killed before it had connected stored no plan: it sent nothing.
    unknown = sum(part.unknown or 0 for part in parts if part.run is not None)
    least, most = result.counts.started - result.counts.failed, result.counts.started + unknown
    if not least <= calls <= most:
        found.troubles.append(f"{name}: the server counted {calls}, the parts {least} to {most}")
    named = {part.number for part in parts if part.disagrees}
    found.named += bool(named)
    found.limited += any(part.limit == "yes" for part in parts)
    if kind == "kill":
        found.unknown.append(unknown)
        found.begun.append(calls - result.counts.started)
    elif named != ({victim} if kind == "slow" else set()):
        about = {part.number: (part.disagrees, part.limit) for part in parts}
        found.troubles.append(f"{name}: named {named or 'no part'}, slowed {victim}: {about}")
    if kind == "whole":
        _note_starts(found, name, result)


def _note_starts(found: Found, name: str, result: LoadResult) -> None:
    parts = () if result.parts is None else result.parts.parts
    late = [part.start_late_ns for part in parts if part.start_late_ns is not None]
    if len(late) < PARTS:
        found.troubles.append(f"{name}: only {len(late)} parts started")
        return
    found.late_ns += late
    found.skews_ns.append(max(late) - min(late))


def main() -> None:
    """Carry out the rounds that the command line asks for, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("kill", "slow", "whole"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=3, help="how long each load lasts")
    parser.add_argument(
        "--ahead", type=float, default=8.0, help="seconds from the first process to the start"
    )
    given = parser.parse_args()
    with TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        found = rounds_of_parts(
            Path(folder), given.kind, given.rounds, given.seed, seconds=given.seconds, ahead_s=given.ahead
        )
    print(
        f"{found.rounds} rounds, {found.killed} parts killed; in {found.named} rounds a part disagrees, "
        f"in {found.limited} a generator was the limit"
    )
    if found.unknown:
        print(f"unknown: median {statistics.median(found.unknown):.0f}, most {max(found.unknown)}")
        begun = found.begun
        print(f"of them sent: median {statistics.median(begun):.0f}, {min(begun)} to {max(begun)}")
    if found.skews_ns:
        skews = [skew / 1e6 for skew in found.skews_ns]
        print(f"starts apart: median {statistics.median(skews):.2f} ms, most {max(skews):.2f} ms")
        print(f"latest start: {max(found.late_ns) / 1e6:.2f} ms")
    for trouble in found.troubles:
        print(trouble)
    sys.exit(1 if found.troubles else 0)


if __name__ == "__main__":
    main()
