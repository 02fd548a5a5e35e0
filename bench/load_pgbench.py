"""Compare the load engine with pgbench: transactions per second and client CPU time, in alternation.

Every cell is a workload, a protocol and a number of clients, against one server over its Unix socket. Both
tools run the same built-in script with min(2, clients) threads. The unit is the pair: one turn of each tool,
in random order. A result is the ratio uncork / pgbench with its 95 % interval. Before the pairs of a cell
each tool has a turn that is not counted.

Transactions per second are those that each tool reports, without the time to connect. The CPU time of pgbench
is that of its process (rusage) minus that of a run with one transaction per client (median of three), which
starts, connects and ends. uncork's is what its engine measured around the transactions.

If the server and the generator share two CPUs, the kernel decides anew in each turn which backends wake on
the CPU of the thread that wakes them, and both tools' cost changes by a factor of two with it. With
``--apart`` the server has the last CPU and the generator the others, as if it were another machine. This
compares the tools, and not their placement.

With ``--other`` the core of another checkout takes turns too, to compare a change of the engine with what was
before it.

pgbench comes from PATH or from PGBENCH; if it is missing, the script says so and ends.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pyarrow as pa

from uncork import _native
from uncork.engines import tpcb
from uncork.engines.embedded import EmbeddedServer
from uncork.load import builtin
from uncork.stats.effect import Effect, estimate
from uncork.stats.sample import Observation, noise_units

WORKLOADS = ("select-only", "tpcb-like")
PROTOCOLS = ("simple", "extended", "prepared")
CLIENTS = (1, 8, 32, 200)
FIGURES = ("tps", "CPU")
CHILD = "--one-load"


@dataclass(frozen=True, slots=True)
class Cell:
    """A workload, a protocol and a number of clients."""

    workload: str
    protocol: str
    clients: int

    @property
    def threads(self) -> int:
        """Threads of the load generator, the same for both tools."""
        return min(2, self.clients)


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of one turn of one tool: transactions per second, and client CPU time of each in µs."""

    tps: float
    cpu_us: float


def main() -> int:
    """Run the comparison; return the exit status."""
    options = _options().parse_args()
    pgbench = os.environ.get("PGBENCH") or shutil.which("pgbench")
    if pgbench is None:
        print("pgbench is not installed: nothing to compare with")
        return 1
    settings = {"shared_buffers": "512MB", "max_connections": max(options.clients) + 20}
    server = EmbeddedServer(settings, binaries=options.pg_bin)
    processors = sorted(os.sched_getaffinity(0))
    if options.apart and len(processors) == 1:
        print("one processor only: nothing can be kept apart")
        return 1
    if options.apart:
        os.sched_setaffinity(0, processors[-1:])  # the server inherits it
    server.start()
    if options.apart:
        os.sched_setaffinity(0, processors[:-1])
    order = random.Random(options.seed)
    try:
        tpcb.initialise(server.conninfo(), scale=options.scale)
        _say(server, pgbench, options)
        for place in itertools.product(options.workloads, options.protocols, options.clients):
            found = _measure(server, pgbench, Cell(*place), options, order)
            for tool in _others(options):
                _report(Cell(*place), tool, found)
    finally:
        server.stop()
    return 0


def _options() -> argparse.ArgumentParser:
    def words(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workloads", type=words, default=list(WORKLOADS), help="names of built-in scripts")
    parser.add_argument("--protocols", type=words, default=list(PROTOCOLS))
    parser.add_argument("--clients", type=numbers, default=list(CLIENTS))
    parser.add_argument("--apart", action="store_true", help="bind server and generator to different CPUs")
    parser.add_argument("--other", type=Path, help="another checkout, whose core takes turns too")
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--seconds", type=int, default=1, help="duration of each turn")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of turns and of uncork's keys")
    parser.add_argument(
        "--pg-bin", type=Path, help="a folder with initdb and postgres; default: the embedded server"
    )
    return parser


def _others(options: argparse.Namespace) -> list[str]:
    """Return the names of the tools that uncork is compared with."""
    return ["pgbench"] if options.other is None else ["pgbench", "other"]


# ---- measuring ----


def _measure(
    server: EmbeddedServer, pgbench: str, cell: Cell, options: argparse.Namespace, order: random.Random
) -> dict[str, list[Observation]]:
    """Return the observations of each metric; pair 0 contains the turns that are not counted."""
    found: dict[str, list[Observation]] = {figure: [] for figure in FIGURES}
    start_s = statistics.median(_run_pgbench(server, pgbench, cell, "-t1")[1] for _ in range(3))
    for pair in range(options.pairs + 1):
        tools = [*_others(options), "uncork"]
        order.shuffle(tools)
        for tool in tools:
            _tidy(server)
            seed = options.seed + pair
            turn = (
                _pgbench(server, pgbench, cell, options.seconds, start_s)
                if tool == "pgbench"
                else _uncork(server, cell, options, seed, options.other if tool == "other" else None)
            )
            for figure, value in zip(FIGURES, (turn.tps, turn.cpu_us), strict=True):
                if pair:
                    found[figure].append(Observation(1, pair, tool, value))
    return found


def _tidy(server: EmbeddedServer) -> None:
    """Vacuum and truncate as pgbench does before a benchmark, for both tools."""
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("VACUUM pgbench_branches, pgbench_tellers")
        connection.execute("TRUNCATE pgbench_history")


def _pgbench(server: EmbeddedServer, pgbench: str, cell: Cell, seconds: int, start_s: float) -> Turn:
    output, cpu_s = _run_pgbench(server, pgbench, cell, f"-T{seconds}")
    count = re.search(r"transactions actually processed: (\d+)", output)
    tps = re.search(r"tps = ([\d.]+)", output)
    assert count and tps, output  # noqa: S101
    return Turn(float(tps[1]), (cpu_s - start_s) / int(count[1]) * 1e6)


def _run_pgbench(server: EmbeddedServer, pgbench: str, cell: Cell, length: str) -> tuple[str, float]:
    return _run(
        [
            *(pgbench, "-n", "-b", cell.workload, "-M", cell.protocol, length),
            *("-c", str(cell.clients), "-j", str(cell.threads)),
            *("-h", server.host, "-p", str(server.port), "-U", "uncork", "postgres"),
        ]
    )


def _uncork(
    server: EmbeddedServer, cell: Cell, options: argparse.Namespace, seed: int, checkout: Path | None
) -> Turn:
    """Run the core of this checkout, or of another one."""
    plan = _plan(server, cell, options.seconds, options.scale, seed)
    place = [] if checkout is None else ["env", f"PYTHONPATH={checkout.absolute() / 'python'}"]
    output, _ = _run([*place, sys.executable, __file__, CHILD], json.dumps(plan))
    done = json.loads(output)
    if done["outcome"] != "complete" or done["failed"]:
        raise SystemExit(f"{cell}: {done['outcome']}: {done['message'] or done['first_error']}")
    count = done["succeeded"]
    cpu_us = (done["client_user_ns"] + done["client_system_ns"]) / count / 1e3
    return Turn(count / (done["elapsed_ns"] / 1e9), cpu_us)


def _run(command: Sequence[str], text: str = "") -> tuple[str, float]:
    """Run a tool to its end; return its output and its CPU time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed: {done.stderr.strip()}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _plan(server: EmbeddedServer, cell: Cell, seconds: int, scale: int, seed: int) -> dict[str, object]:
    return {
        "connection": {
            "host": server.host,
            "port": server.port,
            "user": "uncork",
            "database": "postgres",
            "connect_timeout_ns": 30 * 10**9,
            "sslmode": "disable",
        },
        "driver": "postgres",
        "clients": cell.clients,
        "threads": cell.threads,
        "protocol": cell.protocol,
        "scripts": [{"name": cell.workload, "weight": 1, "text": builtin.find(cell.workload).text}],
        "variables": {"scale": str(scale)},
        "seed": seed,
        "stop": {"duration_ns": seconds * 10**9},
        "deadline_ns": (seconds + 60) * 10**9,
    }


def _one_load() -> int:
    """Act as the child: execute the plan from standard input, write the totals to standard output."""
    totals, *_ = _native.run_load(sys.stdin.buffer.read(), pa.table({}))
    sys.stdout.write(bytes(totals).decode())
    return 0


# ---- printing ----


def _say(server: EmbeddedServer, pgbench: str, options: argparse.Namespace) -> None:
    with psycopg.connect(server.conninfo()) as connection:
        version = connection.info.parameter_status("server_version")
    where = "on processors of their own" if options.apart else "on the same processors"
    print(
        f"server {version}; {_run([pgbench, '--version'])[0].strip()}; scale {options.scale}; "
        f"{options.pairs} pairs of {options.seconds} s, server and generator {where}; uncork / another tool: "
        "tps (better above 1), client's CPU a transaction (better below 1)\n"
    )
    print(f"| workload | protocol | clients | tool | {' | '.join(FIGURES)} | means: tps; CPU, µs |")
    print("|---|---|---|---|" + "---|" * (len(FIGURES) + 1), flush=True)


def _report(cell: Cell, tool: str, found: dict[str, list[Observation]]) -> None:
    effects = [_shown(_effect(observations, tool)) for observations in found.values()]
    means = "; ".join(
        f"{_mean(found[figure], 'uncork'):.4g} and {_mean(found[figure], tool):.4g}" for figure in FIGURES
    )
    cells = (cell.workload, cell.protocol, str(cell.clients), tool, *effects, means)
    print(f"| {' | '.join(cells)} |", flush=True)


def _effect(observations: Sequence[Observation], tool: str) -> Effect:
    pairs = [one for one in observations if one.arm in (tool, "uncork")]
    return estimate(noise_units(pairs, baseline=tool, again="uncork", kind="block"), 0.95)


def _shown(effect: Effect) -> str:
    return f"{effect.ratio:.3f} [{effect.low:.3f}, {effect.high:.3f}]"


def _mean(observations: Sequence[Observation], tool: str) -> float:
    values = [observation.value for observation in observations if observation.arm == tool]
    return sum(values) / len(values)


if __name__ == "__main__":
    sys.exit(_one_load() if CHILD in sys.argv[1:] else main())
