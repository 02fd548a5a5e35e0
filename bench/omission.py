"""Measure coordinated omission: the effect of a paused server on measured latencies.

In each turn of 20 s the server and all its processes are stopped for 2 s (SIGSTOP, SIGCONT; this script
started the server). At a constant arrival rate a tenth of the arrivals wait, uniformly from 0 to 2 s, so
arithmetic predicts a p99 of 1.8 s and a mean of 100 ms plus the service time. uncork and pgbench (``-R``)
alternate in random order; pgbench reports a mean and no percentiles. With ``--http`` the server is an nginx,
and only uncork is measured.

``python bench/omission.py [--http] [--rate 200] [--clients 8] [--seconds 20] [--stop 2] [--pairs 5]``
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from servers.nginx_server import find_nginx, nginx
from uncork.engines import tpcb
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.load import builtin
from uncork.load.http import run_http
from uncork.load.run import run_load
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.model.load import Arrivals, LoadMeasurement, LoadScript, LoadSpec

Turn = Callable[[argparse.Namespace, int], dict[str, float]]
"""One turn of a tool, given a seed; returns its metrics in nanoseconds."""


def main() -> int:
    """Run the comparison; return the exit status."""
    options = _options()
    order = random.Random(1)
    with _nginx() if options.http else _postgres() as (pid, tools):
        names = list(tools)
        found: dict[str, list[dict[str, float]]] = {tool: [] for tool in names}
        for pair in range(options.pairs):
            order.shuffle(names)
            for tool in names:
                turn = _turn(pid, tools[tool], options, seed=pair + 1)
                found[tool].append(turn)
                print(f"{pair + 1} {tool}: {_line(turn)}", flush=True)
    share = options.stop / options.seconds
    predicted = {
        "p99": (1 - 0.01 / share) * options.stop * 1e9,
        "mean without service time": share * options.stop / 2 * 1e9,
    }
    print(f"predicted: {_line(predicted)}")
    for tool, turns in found.items():
        medians = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
        print(f"{tool}, medians of {options.pairs}: {_line(medians)}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--http", action="store_true", help="an nginx instead of a PostgreSQL")
    parser.add_argument("--rate", type=float, default=200.0, help="arrivals per second")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--stop", type=float, default=2.0, help="seconds for which the server is stopped")
    parser.add_argument("--pairs", type=int, default=5)
    return parser.parse_args()


def _line(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value / 1e6:.1f} ms" for name, value in figures.items())


@contextmanager
def _postgres() -> Iterator[tuple[int | None, dict[str, Turn]]]:
    """Start a PostgreSQL; yield its process and the tools that load it."""
    pgbench = os.environ.get("PGBENCH") or shutil.which("pgbench")
    server = EmbeddedServer({"shared_buffers": "256MB"})
    server.start()
    try:
        tpcb.initialise(server.conninfo(), scale=1)
        tools: dict[str, Turn] = {"uncork": lambda options, seed: _sql(server, options, seed)}
        if pgbench is not None:
            tools["pgbench"] = lambda options, seed: _pgbench(server, pgbench, options, seed)
        yield server.pid, tools
    finally:
        server.stop()


@contextmanager
def _nginx() -> Iterator[tuple[int | None, dict[str, Turn]]]:
    """Start an nginx; yield its process and uncork, which loads it."""
    program = find_nginx()
    if program is None:
        raise SystemExit("nginx is not installed: there is nothing to stop")
    with tempfile.TemporaryDirectory() as folder, nginx(program, Path(folder)) as server:
        port = server.ports[False]
        yield server.pid, {"uncork": lambda options, seed: _http(port, options, seed)}


def _turn(pid: int | None, turn: Turn, options: argparse.Namespace, *, seed: int) -> dict[str, float]:
    stall = threading.Timer(options.seconds / 3, _stand_still, (pid, options.stop))
    stall.start()
    try:
        return turn(options, seed)
    finally:
        stall.join()


def _stand_still(postmaster: int | None, seconds: float) -> None:
    """Stop the server's processes, the youngest first, and continue them after a while."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    processes = [int(postmaster or 0), *(int(child) for child in children)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    time.sleep(seconds)
    for process in processes:
        os.kill(process, signal.SIGCONT)


def _sql(server: EmbeddedServer, options: argparse.Namespace, seed: int) -> dict[str, float]:
    spec = LoadSpec(
        scripts=(LoadScript("select-only", 1, builtin.find("select-only").text),),
        clients=options.clients,
        max_clients=options.clients,
        protocol="prepared",
        variables={"scale": "1"},
        seed=seed,
        arrivals=Arrivals("constant", options.rate),
        duration_ns=options.seconds * 10**9,
    )
    return _figures(run_load(spec, asdict(resolve(server.conninfo()))))


def _http(port: int, options: argparse.Namespace, seed: int) -> dict[str, float]:
    spec = HttpSpec(
        HttpServer("127.0.0.1", port),
        (Request("small", "GET", "/small"),),
        clients=options.clients,
        seed=seed,
        arrivals=Arrivals("constant", options.rate),
        duration_ns=options.seconds * 10**9,
    )
    return _figures(run_http(spec))


def _figures(measured: LoadMeasurement) -> dict[str, float]:
    rows: dict[str, Any] = {row.kind: row for row in measured.times}
    operation, service = rows["operation"], rows["service"]
    return {
        "p99": operation.p99_ns,
        "mean": operation.sum_ns / operation.executions,
        "service p99": service.p99_ns,
        "service mean": service.sum_ns / service.executions,
    }


def _pgbench(
    server: EmbeddedServer, pgbench: str, options: argparse.Namespace, seed: int
) -> dict[str, float]:
    done = subprocess.run(
        [
            *(pgbench, "-n", "-S", "-M", "prepared", "--random-seed", str(seed)),
            *("-c", str(options.clients), "-R", str(options.rate), "-T", str(options.seconds)),
            *("-h", server.host, "-p", str(server.port), "-U", "uncork", "postgres"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    mean = re.search(r"latency average = ([\d.]+) ms", done.stdout)
    if done.returncode != 0 or mean is None:
        raise SystemExit(f"pgbench did not finish its turn: {done.stderr.strip() or done.stdout.strip()}")
    return {"mean": float(mean[1]) * 1e6}


if __name__ == "__main__":
    sys.exit(main())
