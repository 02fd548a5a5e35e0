"""What the load engine costs its own machine, against pgbench, in alternation on one server.

Both send the same prepared look-up by key over a Unix socket from 8 connections in one thread, for two
seconds a turn, in random order within pairs. The unit is the pair; the figure is the ratio uncork / pgbench
with its interval. pgbench comes from PATH or from PGBENCH; where it is missing, the script says so and ends.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import subprocess
import sys

import psycopg

from uncork.engines.embedded import EmbeddedServer
from uncork.load.sql import SqlLoad
from uncork.model.request import LoadRequest, Statement
from uncork.model.server import Target
from uncork.stats.effect import estimate
from uncork.stats.sample import Observation, noise_units

ROWS, CLIENTS, SECONDS, PAIRS = 200_000, 8, 2, 15
QUERY = "SELECT abalance FROM pgbench_accounts WHERE aid = "


def main() -> int:
    """Run the comparison; return the exit status."""
    pgbench = os.environ.get("PGBENCH") or shutil.which("pgbench")
    if pgbench is None:
        print("pgbench is not installed: nothing to compare with")
        return 1
    server = EmbeddedServer({"shared_buffers": "256MB"})
    server.start()
    try:
        _fill(server)
        found = _measure(server, pgbench)
    finally:
        server.stop()
    for name, observations in found.items():
        units = noise_units(observations, baseline="pgbench", again="uncork", kind="block")
        effect = estimate(units, 0.95)
        means = {
            tool: sum(o.value for o in observations if o.arm == tool) / PAIRS
            for tool in ("pgbench", "uncork")
        }
        print(
            f"{name}: uncork / pgbench = {effect.ratio:.3f} [{effect.low:.3f}, {effect.high:.3f}], "
            f"{PAIRS} pairs; means {means['uncork']:.4g} and {means['pgbench']:.4g}"
        )
    return 0


def _fill(server: EmbeddedServer) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, abalance int, filler text)")
        connection.execute(
            f"INSERT INTO pgbench_accounts SELECT n, 0, repeat('x', 84) FROM generate_series(1, {ROWS}) AS n"  # noqa: S608
        )
        connection.execute("VACUUM (ANALYZE, FREEZE)")


def _measure(server: EmbeddedServer, pgbench: str) -> dict[str, list[Observation]]:
    script = f"\\set aid random(1, {ROWS})\n{QUERY}:aid;\n"
    names = ("client CPU, µs a transaction", "transactions a second")
    found: dict[str, list[Observation]] = {name: [] for name in names}
    order = random.Random(1)
    for pair in range(PAIRS):
        tools = ["pgbench", "uncork"]
        order.shuffle(tools)
        for tool in tools:
            cpu, rate = _pgbench(server, pgbench, script) if tool == "pgbench" else _uncork(server)
            for name, value in zip(names, (cpu, rate), strict=True):
                found[name].append(Observation(1, pair + 1, tool, value))
    return found


def _pgbench(server: EmbeddedServer, pgbench: str, script: str) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [
            *(pgbench, "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "1", "-T", str(SECONDS), "-f", "-"),
            *("-h", server.host, "-p", str(server.port), "-U", "uncork", "postgres"),
        ],
        input=script,
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    count = re.search(r"transactions actually processed: (\d+)", done.stdout)
    rate = re.search(r"tps = ([\d.]+)", done.stdout)
    assert count and rate, done.stdout  # noqa: S101
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu / int(count[1]) * 1e6, float(rate[1])


def _uncork(server: EmbeddedServer) -> tuple[float, float]:
    keys = random.Random(2)
    request = LoadRequest(
        target=Target(server.host, server.port, "uncork", "postgres", None, "disable", server.pid),
        statements=(Statement("select", f"{QUERY}$1", (0,)),),
        parameters=[[str(keys.randint(1, ROWS)) for _ in range(100_000)]],
        transaction=False,
        clients=CLIENTS,
        threads=1,
        protocol="prepared",
        warmup_operations=100,
        operations=None,
        duration_ns=SECONDS * 10**9,
        deadline_ns=60 * 10**9,
    )
    done = SqlLoad().run(request)
    cpu = (done.client_user_ns + done.client_system_ns) / done.succeeded / 1000
    return cpu, done.succeeded / (done.elapsed_ns / 1e9)


if __name__ == "__main__":
    sys.exit(main())
