"""Measure how well the load engine keeps an open loop's schedule over many connections, against pgbench.

Both send the same prepared look-up by key over a Unix socket, as a Poisson process, from 500 connections, in
alternation on one server, in random order within pairs. The metric is lateness: the time between the intended
and the real start of an operation for which a connection was free. uncork reports its distribution; pgbench
(``--rate``) reports the mean and the maximum "rate limit schedule lag". Server and generators share this
machine, so the server's processes also make either late. pgbench's duration and CPU time include connecting.

``python bench/lateness.py [--rate 2000] [--connections 500] [--threads 1] [--seconds 15] [--pairs 5]``
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
from typing import Any

import psycopg
import pyarrow as pa

from uncork import _native
from uncork.engines.embedded import EmbeddedServer

ROWS = 200_000
SCRIPT = f"\\set aid random(1, {ROWS})\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
FIGURES = ("mean", "p50", "p99", "p99.9", "max")


def main() -> int:
    """Run the comparison; return the exit status."""
    options = _options()
    pgbench = os.environ.get("PGBENCH") or shutil.which("pgbench")
    if pgbench is None:
        print("pgbench is not installed: nothing to compare with")
    tools = ["uncork"] if pgbench is None else ["uncork", "pgbench"]
    found: dict[str, list[dict[str, float]]] = {tool: [] for tool in tools}
    order = random.Random(1)
    server = EmbeddedServer({"shared_buffers": "256MB", "max_connections": str(options.connections + 20)})
    server.start()
    try:
        _fill(server)
        for pair in range(options.pairs):
            order.shuffle(tools)
            for tool in tools:
                if tool == "uncork":
                    turn = _uncork(server, options, seed=pair + 1)
                else:
                    turn = _pgbench(server, pgbench or "", options, seed=pair + 1)
                found[tool].append(turn)
                print(f"{pair + 1} {tool}: {_line(turn)}", flush=True)
    finally:
        server.stop()
    print(
        f"medians of {options.pairs} turns of {options.seconds} s, {options.rate:g} operations a second, "
        f"{options.connections} connections, {options.threads} thread{'s' * (options.threads != 1)}:"
    )
    for tool, turns in found.items():
        medians = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
        print(f"{tool}: {_line(medians)}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="lateness of an open loop, beside pgbench --rate")
    parser.add_argument("--rate", type=float, default=2000.0, help="operations per second")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--pairs", type=int, default=5)
    return parser.parse_args()


def _line(turn: dict[str, float]) -> str:
    late = ", ".join(f"{name} {turn[name] / 1e6:.3f} ms" for name in FIGURES if name in turn)
    return (
        f"late by {late}; {turn['operations']:.0f} operations, "
        f"{turn['cpu_ns'] / turn['operations'] / 1000:.1f} µs of the generator's processor time each"
    )


def _fill(server: EmbeddedServer) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, abalance int, filler text)")
        connection.execute(
            f"INSERT INTO pgbench_accounts SELECT n, 0, repeat('x', 84) FROM generate_series(1, {ROWS}) AS n"  # noqa: S608
        )
        connection.execute("VACUUM (ANALYZE, FREEZE)")


def _uncork(server: EmbeddedServer, options: argparse.Namespace, *, seed: int) -> dict[str, float]:
    plan = _plan(server, options, seed)
    answer = _native.run_load(json.dumps(plan).encode(), pa.table({}))
    totals: dict[str, Any] = json.loads(answer[0])
    if totals["outcome"] != "complete" or totals["failed"] or totals["connect_errors"]:
        why = totals["message"] or totals["first_error"] or totals["connect_errors"]
        raise SystemExit(f"uncork did not finish its turn: {totals['outcome']}, {why}")
    late = next(row for row in pa.table(answer[1]).to_pylist() if row["kind"] == "lateness")
    return {
        "mean": late["sum_ns"] / late["executions"],
        "p50": late["p50_ns"],
        "p99": late["p99_ns"],
        "p99.9": late["p999_ns"],
        "max": late["max_ns"],
        "operations": totals["succeeded"],
        "cpu_ns": totals["client_user_ns"] + totals["client_system_ns"],
    }


def _plan(server: EmbeddedServer, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    return {
        "connection": {
            "host": server.host,
            "port": server.port,
            "user": "uncork",
            "database": "postgres",
            "password": None,
            "options": "",
            "application_name": "uncork lateness",
            "connect_timeout_ns": 60 * 10**9,
            "sslmode": "disable",
            "sslrootcert": None,
            "sslcert": None,
            "sslkey": None,
            "sslsni": True,
            "channel_binding": "prefer",
        },
        "driver": "postgres",
        "clients": options.connections,
        "max_clients": None,
        "threads": options.threads,
        "protocol": "prepared",
        "pipeline_depth": 1,
        "scripts": [{"name": "look-up", "weight": 1, "text": SCRIPT}],
        "variables": {},
        "seed": seed,
        "arrivals": {"kind": "poisson", "rate": options.rate},
        "latency_limit_ns": None,
        "max_tries": 1,
        "on_lost": "stop",
        "connect_each": False,
        # Like pgbench, each connection prepares the statement when it first needs it.
        "prepare": "first use",
        "warmup_operations": 0,
        "stop": {"duration_ns": options.seconds * 10**9},
        "deadline_ns": (options.seconds + 120) * 10**9,
        "digest": "none",
        "watch_pid": None,
        "pin_cpu": None,
        "fake": None,
        "interval_ns": 0,
        "progress_intervals": 0,
        "log": None,
        "keep_interrupted": False,
    }


def _pgbench(
    server: EmbeddedServer, pgbench: str, options: argparse.Namespace, *, seed: int
) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [
            *(pgbench, "-n", "-M", "prepared", "-f", "-", "--random-seed", str(seed)),
            *("-c", str(options.connections), "-j", str(options.threads)),
            *("-R", str(options.rate), "-T", str(options.seconds)),
            *("-h", server.host, "-p", str(server.port), "-U", "uncork", "postgres"),
        ],
        input=SCRIPT,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lag = re.search(r"rate limit schedule lag: avg ([\d.]+) \(max ([\d.]+)\) ms", done.stdout)
    count = re.search(r"transactions actually processed: (\d+)", done.stdout)
    if done.returncode != 0 or count is None:
        raise SystemExit(f"pgbench did not finish its turn: {done.stderr.strip() or done.stdout.strip()}")
    if lag is None:  # its duration includes connecting, and no time was left
        raise SystemExit(f"pgbench only connected in {options.seconds} s; give it more with --seconds")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "mean": float(lag[1]) * 1e6,
        "max": float(lag[2]) * 1e6,
        "operations": float(count[1]),
        "cpu_ns": cpu * 1e9,
    }


if __name__ == "__main__":
    sys.exit(main())
