"""Compare `uncork profile logs` with other readers of PostgreSQL's logs: wall time, CPU time, memory.

The log is written by a real server: look-ups by key on a thousand and two hundred views, sometimes in
transactions, each statement logged with its duration. It is kept (``--log``), so that it is created only
once. Tools alternate in random order within pairs. The results are the ratio of wall times, and each tool's
rate and maximum resident memory; of uncork also the rate until its summary is printed, before the page is
written. A tool that is not installed is left out: pgbadger, quellog, ripgrep (which only counts the lines
with "duration:"). ``--other`` adds another version of uncork: the folder ``python`` of a checkout that has
been built.

``python bench/log_speed.py --log /var/tmp/big.log [--megabytes 1000] [--format stderr] [--pairs 7]``
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from uncork.engines import tpcb
from uncork.engines.embedded import EmbeddedServer
from uncork.stats.effect import estimate
from uncork.stats.sample import Observation, noise_units

PREFIX = "%m [%p] %q%u@%d %a "
FORMATS = ("stderr", "csvlog", "jsonlog")
CLIENTS = 8


@dataclass(frozen=True, slots=True)
class Turn:
    """The cost of one turn of one tool: wall time and CPU time in seconds, resident memory in bytes.

    `summary_s` is when it had printed the last line before its last one.
    """

    wall_s: float
    summary_s: float
    cpu_s: float
    memory: int


def main() -> int:
    """Run the comparison; return the exit status."""
    options = _options().parse_args()
    if not options.log.is_file():
        _make(options)
    size = options.log.stat().st_size
    with tempfile.TemporaryDirectory() as scratch:
        commands = dict(_commands(options, Path(scratch)))
        found: dict[str, list[Turn]] = {name: [] for name in commands}
        order, names = random.Random(1), list(commands)
        _warm(options.log)
        for pair in range(options.pairs + 1):
            order.shuffle(names)
            for name in names:
                if name in options.once and pair != 1:
                    continue
                turn = _turn(*commands[name])
                if pair:
                    found[name].append(turn)
    print(f"{size / 1e6:.0f} MB {options.format}, {options.pairs} pairs\n")
    print(
        "| tool | MB/s to the summary | MB/s | wall, s | CPU, s | memory, MB | uncork's wall time / its own |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, turns in found.items():
        walls = [turn.wall_s for turn in turns]
        mean = sum(walls) / len(walls)
        cpu = sum(turn.cpu_s for turn in turns) / len(turns)
        memory = max(turn.memory for turn in turns) / 1e6
        ratio = "" if name == "uncork" else _ratio(found["uncork"], turns)
        summary = ""
        if name.startswith("uncork"):
            summary = f"{size / 1e6 / (sum(turn.summary_s for turn in turns) / len(turns)):.0f}"
        cells = [name, summary, f"{size / 1e6 / mean:.0f}"]
        cells += [f"{mean:.3g}", f"{cpu:.3g}", f"{memory:.0f}", ratio]
        print(f"| {' | '.join(cells)} |")
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--log", type=Path, required=True, help="the log; created if it does not exist")
    parser.add_argument("--megabytes", type=int, default=1000, help="approximate size of the log")
    parser.add_argument("--format", choices=FORMATS, default="stderr")
    parser.add_argument("--templates", type=int, default=1200)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--other", type=Path, help="the folder with the package of another version of uncork")
    parser.add_argument("--once", nargs="*", default=["pgbadger"], help="tools too slow for several turns")
    return parser


# ---- the log ----


def _make(options: argparse.Namespace) -> None:
    """Let a server log statements until the log has the requested size."""
    settings = {
        "logging_collector": True,
        "log_destination": options.format,
        "log_filename": "server.log",
        "log_rotation_size": 0,
        "log_line_prefix": PREFIX,
    }
    server = EmbeddedServer(settings)
    server.start()
    try:
        tpcb.initialise(server.conninfo(), scale=1)
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for number in range(options.templates):
                connection.execute(
                    f"CREATE VIEW shop_orders_{number} AS SELECT * FROM pgbench_accounts"  # noqa: S608
                )
            connection.execute("ALTER SYSTEM SET log_min_duration_statement = 0")
            connection.execute("SELECT pg_reload_conf()")
        suffix = {"stderr": ".log", "csvlog": ".csv", "jsonlog": ".json"}[options.format]
        log = next(one for one in server.logs[1:] if one.suffix == suffix)
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(_script(options.templates))
            script.flush()
            while log.stat().st_size < options.megabytes * 1_000_000:
                subprocess.run(
                    [
                        *("pgbench", "-n", "-f", script.name, "-c", str(CLIENTS), "-j", "2", "-t", "10"),
                        *("-h", server.host, "-p", str(server.port), "-U", "uncork", "postgres"),
                    ],
                    check=True,
                    capture_output=True,
                )
        shutil.copyfile(log, options.log)
    finally:
        server.stop()


def _script(templates: int) -> str:
    """Return a script that runs each template once; every tenth group of ten is a transaction."""
    lines = ["\\set aid random(1, 100000)"]
    for number in range(templates):
        if number % 100 == 0:
            lines.append("BEGIN;")
        lines.append(
            f"SELECT aid, bid, abalance FROM shop_orders_{number} "  # noqa: S608 -- our own names
            f"WHERE aid = :aid AND bid = {number % 7};"
        )
        if number % 100 == 9:
            lines.append("COMMIT;")
    return "\n".join(lines) + "\n"


# ---- measuring ----


def _commands(
    options: argparse.Namespace, scratch: Path
) -> Iterator[tuple[str, tuple[list[str], Path | None]]]:
    """Yield the tools that are installed: the name, and the command with the folder to import uncork from."""
    log = str(options.log)
    own = [sys.executable, "-u", "-m", "uncork", "profile", "logs", log, "-q", "--runs", str(scratch)]
    yield "uncork", (own, None)
    if options.other is not None:
        yield "uncork, other version", (own, options.other)
    others = {
        "pgbadger": ["pgbadger", "-q", "-j", "2", "-p", PREFIX, "-o", str(scratch / "out.html"), log],
        "quellog": ["quellog", log],
        "rg": ["rg", "-c", "duration:", log],
    }
    yield from ((name, (words, None)) for name, words in others.items() if shutil.which(words[0]))


def _warm(log: Path) -> None:
    """Read the log once, in pieces: memory of this process would count as its children's memory."""
    with log.open("rb") as file:
        while file.read(1 << 20):
            pass


def _turn(command: Sequence[str], package: Path | None) -> Turn:
    """Run a tool to its end."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    printed = [0.0, 0.0]
    for line in process.stdout or ():
        if line.strip():
            printed = [printed[-1], time.perf_counter() - begun]
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed: status {process.returncode}")
    return Turn(wall, printed[0], used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def _ratio(ours: Sequence[Turn], theirs: Sequence[Turn]) -> str:
    if len(theirs) < 2:
        return f"{sum(turn.wall_s for turn in ours) / len(ours) / theirs[0].wall_s:.4f}"
    observations = [
        Observation(1, pair, tool, turn.wall_s)
        for tool, turns in (("uncork", ours), ("other", theirs))
        for pair, turn in enumerate(turns)
    ]
    effect = estimate(noise_units(observations, baseline="other", again="uncork", kind="block"), 0.95)
    return f"{effect.ratio:.3f} [{effect.low:.3f}, {effect.high:.3f}]"


if __name__ == "__main__":
    sys.exit(main())
