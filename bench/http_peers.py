"""Compare the HTTP load engine with h2load, wrk and oha: requests per second and CPU time, in alternation.

Every cell is a version of HTTP, connections × concurrent requests, and a body, against one nginx on loopback.
All tools run with one thread. The unit is the turn of each tool in one round, in random order; a result is
the ratio uncork / peer with its 95 % interval over rounds. Before the rounds of a cell each tool has a turn
that is not counted.

A turn is a number of requests, not a number of seconds: a tool that stops counting early would look faster.
Requests per second are by each tool's own clock; wrk, which only supports a duration, runs for `--seconds`.
The CPU time of h2load and oha is that of their process (rusage) minus that of a run with one request per
connection (median of three), which starts, connects and ends. wrk's is the whole process, which starts in 2
ms; uncork's is what its engine measured around the requests.

nginx comes from PATH or /usr/sbin; h2load (nghttp2-client), wrk and oha (``cargo install oha --locked``) from
PATH. A missing tool is left out.

``python bench/http_peers.py --rounds 7`` takes some four minutes.
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
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from servers.nginx_server import SIZES, find_nginx, nginx
from uncork import _native
from uncork.load.http import http_plan
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.stats.effect import Effect, estimate
from uncork.stats.sample import Observation, noise_units

CHILD = "--one-load"
FIGURES = ("req/s", "CPU")
SMALL, LARGE = "small", "large"
PEERS = ("h2load", "wrk", "oha")


@dataclass(frozen=True, slots=True)
class Cell:
    """A version of HTTP, a number of connections, of concurrent requests on each, and a body."""

    two: bool
    clients: int
    streams: int
    body: str

    @property
    def tools(self) -> tuple[str, ...]:
        """The peers that support this cell."""
        return ("h2load", "oha") if self.two else PEERS

    def __str__(self) -> str:
        version = "HTTP/2" if self.two else "HTTP/1.1"
        return f"{version} | {self.clients} × {self.streams} | {SIZES[self.body]} B"


CELLS = tuple(
    Cell(two, clients, streams, body)
    for body in (SMALL, LARGE)
    for two, clients, streams in ((False, 6, 1), (True, 1, 100), (True, 6, 100))
)


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of one turn of one tool: requests per second, and µs of client CPU time per request."""

    rate: float
    cpu_us: float


def main() -> int:
    """Run the comparison; return the exit status."""
    options = _options().parse_args()
    program = find_nginx()
    present = [tool for tool in PEERS if shutil.which(tool)]
    if program is None or not present:
        print("nginx is not installed, or none of its clients: nothing to compare with")
        return 1
    order = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, nginx(program, Path(folder)) as server:
        _say(server.version, present, options)
        for cell in options.cells:
            tools = [tool for tool in cell.tools if tool in present]
            found = _measure(cell, server.ports[cell.two], tools, options, order)
            for tool in tools:
                _report(cell, tool, found)
    return 0


def _options() -> argparse.ArgumentParser:
    def cells(text: str) -> list[Cell]:
        return [CELLS[int(word)] for word in text.split(",")]

    shown = "; ".join(f"{number}: {cell}" for number, cell in enumerate(CELLS))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=cells, default=list(CELLS), help=shown)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=50_000, help="requests per turn with small bodies")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of a turn of wrk")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of turns")
    return parser


# ---- measuring ----


def _measure(
    cell: Cell, port: int, tools: Sequence[str], options: argparse.Namespace, order: random.Random
) -> dict[str, list[Observation]]:
    """Return the observations of each metric; those of round 0 are not counted."""
    found: dict[str, list[Observation]] = {figure: [] for figure in FIGURES}
    count = options.requests if cell.body == SMALL else max(1_000, options.requests // 10)
    start_s = {
        tool: statistics.median(_peer(tool, cell, port, cell.clients, 0)[2] for _ in range(3))
        for tool in tools
        if tool != "wrk"
    }
    for number in range(options.rounds + 1):
        turns = [*tools, "uncork"]
        order.shuffle(turns)
        for tool in turns:
            if tool == "uncork":
                turn = _uncork(cell, port, count)
            else:
                done, elapsed_s, cpu_s = _peer(tool, cell, port, count, options.seconds)
                turn = Turn(done / elapsed_s, (cpu_s - start_s.get(tool, 0.0)) / done * 1e6)
            for figure, value in zip(FIGURES, (turn.rate, turn.cpu_us), strict=True):
                if number:
                    found[figure].append(Observation(1, number, tool, value))
    return found


def _peer(tool: str, cell: Cell, port: int, count: int, seconds: float) -> tuple[int, float, float]:
    """Run a peer; return its requests, the seconds they took, and its CPU time in seconds."""
    url = f"http://127.0.0.1:{port}/{cell.body}"
    if tool == "wrk":
        output, cpu_s = _run(["wrk", "-t1", f"-c{cell.clients}", f"-d{max(1, round(seconds))}s", url])
        done = re.search(r"(\d+) requests in ([\d.]+)s", output)
        assert done, output  # noqa: S101
        return int(done[1]), float(done[2]), cpu_s
    if tool == "oha":
        return _oha(cell, url, count)
    version = [] if cell.two else ["--h1"]
    output, cpu_s = _run(
        ["h2load", *version, f"-n{count}", f"-c{cell.clients}", f"-m{cell.streams}", "-t1", url]
    )
    done = re.search(r"(\d+) succeeded", output)
    elapsed = re.search(r"finished in ([\d.]+)(us|ms|s)", output)
    assert done and elapsed and int(done[1]) == count, output  # noqa: S101
    return count, float(elapsed[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[elapsed[2]], cpu_s


def _oha(cell: Cell, url: str, count: int) -> tuple[int, float, float]:
    version = ["--http2", f"-p{cell.streams}"] if cell.two else []
    plain = ["--no-tui", "--output-format", "json", "--disable-compression", "--worker-threads", "1"]
    output, cpu_s = _run(["oha", *version, *plain, f"-n{count}", f"-c{cell.clients}", url])
    done = json.loads(output)
    assert done["statusCodeDistribution"] == {"200": count}, output  # noqa: S101
    return count, done["summary"]["total"], cpu_s


def _uncork(cell: Cell, port: int, count: int) -> Turn:
    path = f"/{cell.body}"
    spec = HttpSpec(
        HttpServer("127.0.0.1", port),
        (Request(path, "GET", path),),
        version="2" if cell.two else "1.1",
        clients=cell.clients,
        streams=cell.streams,
        operations=count,
    )
    output, _ = _run([sys.executable, __file__, CHILD], json.dumps(http_plan(spec)))
    done = json.loads(output)
    if done["outcome"] != "complete" or done["failed"]:
        raise SystemExit(f"{cell}: {done['outcome']}: {done['message'] or done['first_error']}")
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


def _one_load() -> int:
    """Act as the child: execute the plan from standard input, write the totals to standard output."""
    totals, *_ = _native.run_load(sys.stdin.buffer.read(), pa.table({}))
    sys.stdout.write(bytes(totals).decode())
    return 0


# ---- printing ----


def _say(server: str, present: Sequence[str], options: argparse.Namespace) -> None:
    peers = ", ".join(
        subprocess.run(
            [tool, "-v" if tool == "wrk" else "--version"], capture_output=True, text=True, check=False
        )
        .stdout.partition("\n")[0]
        .partition(" Copyright")[0]
        for tool in present
    )
    print(
        f"{server}; {peers}; {os.cpu_count()} processors; "
        f"{options.rounds} rounds; uncork / peer: requests a second (better above 1), "
        "client's CPU a request (better below 1)\n"
    )
    print(
        f"| version | connections × at once | body | peer | {' | '.join(FIGURES)} | means: req/s; CPU, µs |"
    )
    print("|---|---|---|---|" + "---|" * (len(FIGURES) + 1), flush=True)


def _report(cell: Cell, tool: str, found: dict[str, list[Observation]]) -> None:
    pairs = {
        figure: [one for one in observations if one.arm in (tool, "uncork")]
        for figure, observations in found.items()
    }
    effects = [_shown(_effect(observations, tool)) for observations in pairs.values()]
    means = "; ".join(
        f"{_mean(pairs[figure], 'uncork'):.4g} and {_mean(pairs[figure], tool):.4g}" for figure in FIGURES
    )
    print(f"| {' | '.join((str(cell), tool, *effects, means))} |", flush=True)


def _effect(observations: Sequence[Observation], tool: str) -> Effect:
    return estimate(noise_units(observations, baseline=tool, again="uncork", kind="block"), 0.95)


def _shown(effect: Effect) -> str:
    return f"{effect.ratio:.3f} [{effect.low:.3f}, {effect.high:.3f}]"


def _mean(observations: Sequence[Observation], tool: str) -> float:
    values = [observation.value for observation in observations if observation.arm == tool]
    return sum(values) / len(values)


if __name__ == "__main__":
    sys.exit(_one_load() if CHILD in sys.argv[1:] else main())
