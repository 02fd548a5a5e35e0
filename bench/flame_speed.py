"""Measure how long a flame graph of two million folded lines takes, from the file's bytes to the SVG's.

The lines are generated, all different: a few hundred functions call each other at random from a seed, 5 to 25
frames deep, in no order, as samplers write them. For comparison it also times the whole command, which stores
the run and writes its page, and inferno's own command line, if it is installed.

``python bench/flame_speed.py [--lines 2000000] [--times 5]``
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from uncork.profile.stacks import beside, read_profile
from uncork.report.draw.flame import flame_svg

FUNCTIONS = 400
CALLEES = 6
WORDS = ("Exec", "heap_get", "index_scan", "hash_probe", "pg_", "Sort", "tuple_store", "lookup_")


def main() -> None:
    """Create the file, and print how long each method took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="uncork-bench-") as folder:
        path = Path(folder) / "stacks.folded"
        make(path, options.lines)
        print(f"{options.lines} lines, {path.stat().st_size / 1e6:.0f} MB")
        data = path.read_bytes()
        ways: dict[str, Callable[[], int]] = {"bytes to SVG": lambda: len(drawn(data))}
        svg = Path(folder) / "x.svg"
        command = [str(Path(sys.executable).with_name("uncork")), "profile", "cpu", "-q", "--runs", folder]
        command += ["--import", str(path), "--flame", str(svg)]
        ways["the whole command"] = lambda: ran(command, svg)
        peer = shutil.which("inferno-flamegraph")
        if peer is not None:
            ways["inferno-flamegraph"] = lambda: ran([peer, str(path)], svg)
        for name, way in ways.items():
            print(f"{name}: {told(way, options.times)}")


def make(path: Path, lines: int) -> None:
    """Write different folded stacks of a fictitious program."""
    chance = random.Random(7)
    names = [f"{WORDS[number % len(WORDS)]}{number}" for number in range(FUNCTIONS)]
    calls = [[chance.randrange(FUNCTIONS) for _ in range(CALLEES)] for _ in names]
    seen: set[str] = set()
    with path.open("w") as file:
        while len(seen) < lines:
            frames, at = ["main"], 0
            for _ in range(chance.randint(5, 25)):
                # The first callee is called most often, so that some paths are hot, as in real programs.
                at = calls[at][min(int(chance.expovariate(1.0)), CALLEES - 1)]
                frames.append(names[at])
            stack = ";".join(frames)
            if stack not in seen:
                seen.add(stack)
                file.write(f"{stack} {chance.randint(1, 50)}\n")


def drawn(data: bytes) -> str:
    """Return the flame graph of folded lines."""
    stacks = read_profile(data, "stacks").stacks
    return flame_svg(beside(stacks, None), title="stacks", subtitle="", unit="samples", alone=True)


def ran(command: list[str], svg: Path) -> int:
    """Run a command that draws; return how many bytes it drew."""
    done = subprocess.run(command, check=True, capture_output=True)
    return svg.stat().st_size if svg.exists() else len(done.stdout)


def told(way: Callable[[], int], times: int) -> str:
    """Run it several times; return the median, the extremes, and the size of the drawing."""
    took, worked, size = [], [], 0
    for _ in range(times):
        begun, before = time.perf_counter(), os.times()
        size = way()
        after = os.times()
        took.append(time.perf_counter() - begun)
        worked.append(sum(after[:4]) - sum(before[:4]))
    spread = f"{min(took):.2f} to {max(took):.2f}"
    cpu = f"{statistics.median(worked):.2f} s of processor time"
    return f"{statistics.median(took):.2f} s (of {times}: {spread}), {cpu}, SVG of {size / 1e3:.0f} kB"


if __name__ == "__main__":
    main()
