"""The rounds of a load that a peer sends in parts: the last one kills a part."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from fakes.http_servers import nginx


def run_rounds(about: str, peer: str, visited: Callable[[Path, Path, str, bool], tuple[float, str]]) -> None:
    """Run the rounds that the command line asks for against nginx on loopback, and print what was found.

    `visited` sends one load with the peer's program, a folder, the address, and whether to kill a part. It
    returns how many milliseconds the first requests of the parts were apart, and what else was found.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{peer}", dest="program", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    apart = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        with nginx(folder) as server:
            url = f"http://127.0.0.1:{server.ports['plain']}"
            for number in range(given.rounds):
                kill = number == given.rounds - 1
                one, line = visited(given.program, folder / str(number), url, kill)
                apart.append(one)
                print(f"first requests {one:.0f} ms apart; {line}", flush=True)
    print(f"first requests apart: median {statistics.median(apart):.0f} ms, most {max(apart):.0f} ms")
