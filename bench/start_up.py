"""Measure what uncork itself takes: to start, and around what it measures.

Each case runs a command to its end. Its CPU time is that of the process (rusage: user and system). Its clock
time is the time beyond the duration that the command was asked to measure. The loads send 50 operations a
second, so that the load itself takes hardly any CPU time; the server is started once, before.

With ``--before CHECKOUT`` (a checkout of another version, with its compiled core) both versions take turns,
in random order in each round, and the table has the ratio now / before with its 95 % interval. Python's byte
code is cached, as in an installed package; the first turn of each case and version is not counted.

``python bench/start_up.py --rounds 10 --before ../uncork-0.1`` takes some five minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers.hello_server import hello_server
from uncork.engines import tpcb
from uncork.engines.embedded import EmbeddedServer
from uncork.stats.effect import estimate
from uncork.stats.sample import Observation, noise_units

SECONDS = 2
"""Duration of each load and watch."""
HERE = Path(__file__).resolve().parent.parent
NOW, BEFORE = "now", "before"


@dataclass(frozen=True, slots=True)
class Case:
    """A command, without ``uncork``, and the seconds that it is asked to measure."""

    name: str
    words: tuple[str, ...]
    asked_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Turn:
    """What a command took, in seconds: CPU time, and time by the clock beyond what was asked."""

    cpu_s: float
    clock_s: float


def main() -> int:
    """Run the cases of both versions in turn, print a table; return the exit status."""
    options = _options()
    versions = {NOW: HERE} if options.before is None else {NOW: HERE, BEFORE: options.before.resolve()}
    with tempfile.TemporaryDirectory(prefix="uncork-start-") as folder, _targets() as (conninfo, url):
        cases = [
            case
            for case in _cases(Path(folder), conninfo, url)
            if not options.only or case.name in options.only
        ]
        print(f"{options.rounds} turns of each; medians, with the least and the most in brackets\n")
        print("| command | CPU time, s | clock time beyond the asked, s | before: both | CPU, now / before |")
        print("|---|---|---|---|---|")
        order = random.Random(options.seed)
        for case in cases:
            found: dict[str, list[Turn]] = {name: [] for name in versions}
            for _ in range(options.rounds + 1):
                for name in order.sample(list(versions), len(versions)):
                    found[name].append(_turn(case, versions[name], Path(folder) / name))
            _report(case, {name: turns[1:] for name, turns in found.items()})
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="compare with the version there")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", action="append", metavar="CASE", help="names of cases, such as 'load sql'")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of turns")
    return parser.parse_args()


def _cases(folder: Path, conninfo: str, url: str) -> list[Case]:
    log = folder / "postgresql.log"
    log.write_text(_log_text(2_000), encoding="utf-8")
    seconds = str(SECONDS)
    sql = ("-c", "1", "-n", "-R", "50", "-T", seconds, conninfo)
    http = ("-c", "1", "-R", "50", "-D", seconds, url)
    return [
        Case("--version", ("--version",)),
        Case("--help", ("--help",)),
        Case("load sql --help", ("load", "sql", "--help")),
        Case("runs", ("runs",)),
        Case("load sql", ("load", "sql", *sql), SECONDS),
        Case("load http", ("load", "http", *http), SECONDS),
        Case("profile db", ("profile", "db", conninfo, "--for", f"{seconds}s"), SECONDS),
        Case("profile cpu", ("profile", "cpu", "--pid", str(os.getpid()), "--for", f"{seconds}s"), SECONDS),
        Case("profile logs", ("profile", "logs", str(log))),
    ]


def _log_text(entries: int) -> str:
    lines = []
    for number in range(entries):
        at = f"2026-03-01 10:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03} UTC"
        entry = f"duration: {1 + number % 97 / 10:.3f} ms  statement: TABLE t{number % 9}"
        lines.append(f"{at} [4711] LOG:  {entry}\n")
    return "".join(sorted(lines))


# ---- what is measured ----


@contextmanager
def _targets() -> Iterator[tuple[str, str]]:
    """Start a server with pgbench's tables, and a web server; yield connection string and URL."""
    database = EmbeddedServer({"shared_buffers": "64MB"})
    database.start()
    try:
        tpcb.initialise(database.conninfo(), scale=1)
        with hello_server() as url:
            yield database.conninfo(), url
    finally:
        database.stop()


def _turn(case: Case, checkout: Path, folder: Path) -> Turn:
    """Run a case once with the version of a checkout, whose runs and byte code are in `folder`."""
    folder.mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own |= {
        "PYTHONPATH": str(checkout / "python"),
        "PYTHONPYCACHEPREFIX": str(folder / "byte-code"),
        "UNCORK_RUNS": str(folder / "runs"),
    }
    with (folder / "output").open("wb") as output:
        began = time.perf_counter()
        running = subprocess.Popen(
            [sys.executable, "-m", "uncork", *case.words], cwd=folder, env=own, stdout=output, stderr=output
        )
        _, status, used = os.wait4(running.pid, 0)
        took_s = time.perf_counter() - began
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise SystemExit(f"{case.name} in {checkout}: {(folder / 'output').read_text()}")
    return Turn(used.ru_utime + used.ru_stime, took_s - case.asked_s)


# ---- printing ----


def _report(case: Case, found: dict[str, list[Turn]]) -> None:
    now, before = found[NOW], found.get(BEFORE)
    cells = [case.name, _spread([turn.cpu_s for turn in now]), _spread([turn.clock_s for turn in now])]
    if before is None:
        cells += ["", ""]
    else:
        cpu, clock = ([getattr(turn, field) for turn in before] for field in ("cpu_s", "clock_s"))
        cells.append(f"{_spread(cpu)}; clock {_spread(clock)}")
        units = [
            Observation(1, turn, name, taken.cpu_s)
            for name, turns in found.items()
            for turn, taken in enumerate(turns)
        ]
        effect = estimate(noise_units(units, baseline=BEFORE, again=NOW, kind="block"), 0.95)
        cells.append(f"{effect.ratio:.2f} [{effect.low:.2f}, {effect.high:.2f}]")
    print(f"| {' | '.join(cells)} |", flush=True)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.3f} [{min(values):.3f}, {max(values):.3f}]"


if __name__ == "__main__":
    sys.exit(main())
