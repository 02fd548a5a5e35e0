"""The HTTP load engine against h2load and wrk: requests a second and their cost, in alternation.

Every cell is a version of HTTP, connections × requests at once, and a body, against one nginx on
loopback. All tools run with one thread. The unit is the turn of each tool in one round, in random order;
a figure is the ratio uncork / peer with its 95 % interval over rounds. Before the rounds of a cell each
tool has a turn that is not counted.

A turn is so many requests, not so many seconds: a tool that stops counting early would look quicker. Requests
a second are by each tool's own clock; wrk, which knows time only, runs for as long as `--seconds` says. The
processor time of h2load is that of its process (rusage) less what a run of one request a connection takes
(median of three): starting, connecting, ending. wrk's is the whole process, which starts in 2 ms; uncork's is
what its engine measured around the requests.

nginx comes from PATH or /usr/sbin; h2load (nghttp2-client) and wrk from PATH. Where wrk is missing it is left
out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from uncork import _native
from uncork.load.http import http_plan
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.stats.effect import Effect, estimate
from uncork.stats.sample import Observation, noise_units

CHILD = "--one-load"
FIGURES = ("req/s", "CPU")
SMALL, LARGE = "small", "large"
SIZES = {SMALL: 101, LARGE: 150_000}


@dataclass(frozen=True, slots=True)
class Cell:
    """One version of HTTP with so many connections, requests at once on each, and a body."""

    two: bool
    clients: int
    streams: int
    body: str

    @property
    def tools(self) -> tuple[str, ...]:
        """The peers that can do this."""
        return ("h2load",) if self.two or self.streams > 1 else ("h2load", "wrk")

    def __str__(self) -> str:
        version = "HTTP/2" if self.two else "HTTP/1.1"
        return f"{version} | {self.clients} × {self.streams} | {SIZES[self.body]} B"


CELLS = (
    Cell(False, 6, 1, SMALL),
    Cell(True, 1, 100, SMALL),
    Cell(True, 6, 100, SMALL),
    Cell(False, 6, 1, LARGE),
    Cell(True, 6, 10, LARGE),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn of one tool gave: requests a second, and µs of client processor time for each."""

    rate: float
    cpu_us: float


def main() -> int:
    """Run the comparison; return the exit status."""
    options = _options().parse_args()
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    present = [tool for tool in ("h2load", "wrk") if shutil.which(tool)]
    if not Path(program).exists() or "h2load" not in present:
        print("nginx or h2load is not installed: nothing to compare with")
        return 1
    order = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, _nginx(program, Path(folder)) as ports:
        _say(program, present, options)
        for cell in options.cells:
            tools = [tool for tool in cell.tools if tool in present]
            found = _measure(cell, ports[cell.two], tools, options, order)
            for tool in tools:
                _report(cell, tool, found)
    return 0


def _options() -> argparse.ArgumentParser:
    def cells(text: str) -> list[Cell]:
        return [CELLS[int(word)] for word in text.split(",")]

    shown = "; ".join(f"{number}: {cell}" for number, cell in enumerate(CELLS))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=cells, default=list(CELLS), help=shown)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--requests", type=int, default=100_000, help="of a turn with small bodies")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn of wrk")
    parser.add_argument("--seed", type=int, default=1, help="of the order of turns")
    return parser


@contextmanager
def _nginx(program: str, folder: Path) -> Iterator[dict[bool, int]]:
    """Start nginx; yield its ports for HTTP/1.1 and for HTTP/2."""
    folder.chmod(0o755)
    for name, size in SIZES.items():
        (folder / name).write_bytes(b"x" * size)
    ports = {False: _free_port(), True: _free_port()}
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        "events { worker_connections 4096; }\n"
        "http { access_log off; keepalive_requests 1000000000; sendfile on; open_file_cache max=10;\n"
        f"server {{ listen 127.0.0.1:{ports[False]}; root {folder}; }}\n"
        f"server {{ listen 127.0.0.1:{ports[True]} http2; root {folder};"
        " http2_max_concurrent_streams 1000; } }\n"
    )
    running = subprocess.Popen(
        [program, "-p", str(folder), "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL
    )
    try:
        for port in ports.values():
            while running.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.02)
        if running.poll() is not None:
            raise SystemExit(f"nginx does not run: {(folder / 'error.log').read_text()}")
        yield ports
    finally:
        running.terminate()
        running.wait(10)


def _free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


# ---- measuring ----


def _measure(
    cell: Cell, port: int, tools: Sequence[str], options: argparse.Namespace, order: random.Random
) -> dict[str, list[Observation]]:
    """Return each figure's observations; those of round 0 are not counted."""
    found: dict[str, list[Observation]] = {figure: [] for figure in FIGURES}
    count = options.requests if cell.body == SMALL else max(1_000, options.requests // 10)
    start_s = statistics.median(_peer("h2load", cell, port, cell.clients, 0)[2] for _ in range(3))
    for number in range(options.rounds + 1):
        turns = [*tools, "uncork"]
        order.shuffle(turns)
        for tool in turns:
            if tool == "uncork":
                turn = _uncork(cell, port, count)
            else:
                done, elapsed_s, cpu_s = _peer(tool, cell, port, count, options.seconds)
                start = start_s if tool == "h2load" else 0.0
                turn = Turn(done / elapsed_s, (cpu_s - start) / done * 1e6)
            for figure, value in zip(FIGURES, (turn.rate, turn.cpu_us), strict=True):
                if number:
                    found[figure].append(Observation(1, number, tool, value))
    return found


def _peer(tool: str, cell: Cell, port: int, count: int, seconds: float) -> tuple[int, float, float]:
    """Run a peer; return its requests, the seconds they took, and its processor time in seconds."""
    url = f"http://127.0.0.1:{port}/{cell.body}"
    if tool == "wrk":
        output, cpu_s = _run(["wrk", "-t1", f"-c{cell.clients}", f"-d{max(1, round(seconds))}s", url])
        done = re.search(r"(\d+) requests in ([\d.]+)s", output)
        assert done, output  # noqa: S101
        return int(done[1]), float(done[2]), cpu_s
    version = [] if cell.two else ["--h1"]
    output, cpu_s = _run(
        ["h2load", *version, f"-n{count}", f"-c{cell.clients}", f"-m{cell.streams}", "-t1", url]
    )
    done = re.search(r"(\d+) succeeded", output)
    elapsed = re.search(r"finished in ([\d.]+)(us|ms|s)", output)
    assert done and elapsed and int(done[1]) == count, output  # noqa: S101
    return count, float(elapsed[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[elapsed[2]], cpu_s


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
    """Run a tool to its end; return its output and the seconds of processor time that it used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed: {done.stderr.strip()}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _one_load() -> int:
    """Be the child: carry out the plan on standard input, write the totals to standard output."""
    totals, *_ = _native.run_load(sys.stdin.buffer.read(), pa.table({}))
    sys.stdout.write(bytes(totals).decode())
    return 0


# ---- telling ----


def _say(program: str, present: Sequence[str], options: argparse.Namespace) -> None:
    nginx = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr.strip()
    peers = ", ".join(
        subprocess.run(
            [tool, "-v" if tool == "wrk" else "--version"], capture_output=True, text=True, check=False
        )
        .stdout.partition("\n")[0]
        .partition(" Copyright")[0]
        for tool in present
    )
    print(
        f"{nginx.removeprefix('nginx version: ')}; {peers}; {os.cpu_count()} processors; "
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
