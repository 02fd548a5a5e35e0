"""Measure how late the HTTP generator is at 70 % of the load at the server's knee.

First it finds the knee: closed loops of one or more connections alternate in random order, in several rounds;
the knee is the number of connections with the greatest power (throughput / latency). Then requests arrive at
equal distances for a minute, at 70 % of the throughput at the knee. Lateness is the time between the intended
and the real start of a request for which a connection was free: the generator's own fault. Server and
generator share this machine.

``python bench/http_lateness.py [--seconds 60] [--share 0.7] [--rounds 5] [--http2]``
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import tempfile
from pathlib import Path

from servers.nginx_server import find_nginx, nginx
from uncork.load.http import run_http
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.model.load import Arrivals, LoadMeasurement, LoadOutcome
from uncork.model.tables.load import LoadTimes
from uncork.model.units import format_duration
from uncork.stats.load.knee import find_knee

LEVELS = (1, 2, 3, 4, 6, 8, 12, 16)


def main() -> int:
    """Find the knee, then load the server below it; return the exit status."""
    options = _options()
    program = find_nginx()
    if program is None:
        print("nginx is not installed: there is nothing to load")
        return 1
    with tempfile.TemporaryDirectory() as folder, nginx(program, Path(folder)) as server:
        port, version = server.ports[options.http2], "2" if options.http2 else "1.1"
        level, throughput = _knee(port, version, options.rounds)
        rate = options.share * throughput
        print(
            f"{server.version}, HTTP/{version}: knee at {level} connection{'s' * (level > 1)}, "
            f"{throughput:.0f} requests a second; "
            f"open loop at {rate:.0f} a second for {options.seconds} s",
            flush=True,
        )
        measured = _load(
            port,
            version,
            clients=max(16, 4 * level),
            duration_ns=options.seconds * 10**9,
            arrivals=Arrivals("constant", rate),
        )
    late, operation = _row(measured, "lateness"), _row(measured, "operation")
    totals = measured.totals
    print(f"lateness of {late.executions} requests: {_quantiles(late)}")
    print(f"latency from the intended start: {_quantiles(operation)}")
    print(
        f"{totals.succeeded} of {totals.arrivals} succeeded; busiest thread {totals.busiest_thread:.0%}; "
        f"the hypervisor took {format_duration(totals.steal_ns)}"
    )
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="duration of the open loop")
    parser.add_argument("--share", type=float, default=0.7, help="fraction of the throughput at the knee")
    parser.add_argument("--rounds", type=int, default=5, help="rounds to find the knee")
    parser.add_argument("--http2", action="store_true", help="HTTP/2 instead of HTTP/1.1")
    return parser.parse_args()


def _knee(port: int, version: str, rounds: int) -> tuple[int, float]:
    """Return the connections at the knee, and the throughput there."""
    order = random.Random(1)
    powers: dict[float, dict[int, float]] = {float(level): {} for level in LEVELS}
    rates: dict[int, list[float]] = {level: [] for level in LEVELS}
    for number in range(rounds):
        for level in order.sample(LEVELS, len(LEVELS)):
            found = _load(port, version, clients=level, duration_ns=300_000_000)
            rate = found.totals.succeeded / (found.totals.elapsed_ns / 1e9)
            operation = _row(found, "operation")
            mean_ns = operation.sum_ns / operation.executions
            powers[float(level)][number] = math.log(rate / mean_ns)
            rates[level].append(rate)
    knee = find_knee(powers, [float(level) for level in LEVELS], 0.95)
    level = LEVELS[0] if knee is None else int(knee.level)
    return level, statistics.median(rates[level])


def _load(port: int, version: str, **options: object) -> LoadMeasurement:
    server, request = HttpServer("127.0.0.1", port), Request("small", "GET", "/small")
    found = run_http(HttpSpec(server, (request,), version=version, **options))
    totals = found.totals
    if totals.outcome is not LoadOutcome.COMPLETE or totals.failed:
        raise SystemExit(
            f"the load did not go well: {totals.outcome}: {totals.message or totals.first_error}"
        )
    return found


def _row(measured: LoadMeasurement, kind: str) -> LoadTimes:
    return next(row for row in measured.times if row.kind == kind)


def _quantiles(row: LoadTimes) -> str:
    named = (("p50", row.p50_ns), ("p99", row.p99_ns), ("p99.9", row.p999_ns), ("max", row.max_ns))
    return ", ".join(f"{name} {format_duration(value or 0)}" for name, value in named)


if __name__ == "__main__":
    sys.exit(main())
