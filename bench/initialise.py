"""Compare `uncork load sql -i` with `pgbench -i`: wall time on one server, alternating in random order.

Both begin with a database that contains the tables of the previous turn, as when it is initialised again, and
execute the steps dtgvp. The unit is the pair; the result is the ratio uncork / pgbench with its interval.
pgbench's time is that of its process; uncork's is measured around the call, so it includes the connection but
not the start of Python. After each turn the server makes a checkpoint, which is not part of the time.

pgbench comes from PATH or from PGBENCH; if it is missing, the script says so and ends.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from uncork.engines import tpcb
from uncork.engines.embedded import EmbeddedServer
from uncork.stats.effect import estimate
from uncork.stats.sample import Observation, noise_units

WHOLE = "in all"
LONG_STEPS = "gvp"


def main() -> int:
    """Run the comparison; return the exit status."""
    options = _options().parse_args()
    pgbench = os.environ.get("PGBENCH") or shutil.which("pgbench")
    if pgbench is None:
        print("pgbench is not installed: nothing to compare with")
        return 1
    server = EmbeddedServer({"shared_buffers": "256MB"}, binaries=options.pg_bin)
    server.start()
    try:
        found = _measure(server, pgbench, options)
    finally:
        server.stop()
    for name, observations in found.items():
        if not all(observation.value for observation in observations):
            continue  # pgbench prints hundredths of a second: too coarse at this scale
        effect = estimate(noise_units(observations, baseline="pgbench", again="uncork", kind="block"), 0.95)
        print(
            f"{name}: uncork / pgbench = {effect.ratio:.3f} [{effect.low:.3f}, {effect.high:.3f}], "
            f"{options.pairs} pairs; means {_mean(observations, 'uncork'):.3g} and "
            f"{_mean(observations, 'pgbench'):.3g} s"
        )
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of turns")
    parser.add_argument(
        "--pg-bin", type=Path, help="a folder with initdb and postgres; default: the embedded server"
    )
    return parser


def _measure(
    server: EmbeddedServer, pgbench: str, options: argparse.Namespace
) -> dict[str, list[Observation]]:
    """Return the seconds of each step and the total, by name. Pair 0 is not counted: it starts empty."""
    found: dict[str, list[Observation]] = {}
    order = random.Random(options.seed)
    for pair in range(options.pairs + 1):
        tools = ["pgbench", "uncork"]
        order.shuffle(tools)
        for tool in tools:
            times = (
                _pgbench(server, pgbench, options.scale)
                if tool == "pgbench"
                else _uncork(server, options.scale)
            )
            with psycopg.connect(server.conninfo(), autocommit=True) as connection:
                connection.execute("CHECKPOINT")
            for name, seconds in times.items():
                if pair:
                    found.setdefault(name, []).append(Observation(1, pair, tool, seconds))
    return found


def _pgbench(server: EmbeddedServer, pgbench: str, scale: int) -> dict[str, float]:
    command = [
        *(pgbench, "-i", "-q", "-s", str(scale)),
        *("-h", server.host, "-p", str(server.port), "-U", "uncork", "postgres"),
    ]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    whole = time.perf_counter() - start
    steps = dict(re.findall(r"([a-z][a-z -]+) ([\d.]+) s[,)]", done.stderr))
    return {WHOLE: whole, **{_label(letter): float(steps[tpcb.STEPS[letter]]) for letter in LONG_STEPS}}


def _uncork(server: EmbeddedServer, scale: int) -> dict[str, float]:
    start = time.perf_counter()
    done = tpcb.initialise(server.conninfo(), scale=scale)
    whole = time.perf_counter() - start
    steps = {step.letter: step.elapsed_ns / 1e9 for step in done.steps}
    return {WHOLE: whole, **{_label(letter): steps[letter] for letter in LONG_STEPS}}


def _label(letter: str) -> str:
    return f"step {letter} ({tpcb.STEPS[letter]})"


def _mean(observations: Sequence[Observation], tool: str) -> float:
    values = [observation.value for observation in observations if observation.arm == tool]
    return sum(values) / len(values)


if __name__ == "__main__":
    sys.exit(main())
