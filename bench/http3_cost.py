"""Compare uncork's HTTP/3 with its HTTP/2, from the same server: CPU time and requests per second.

One nginx on loopback serves both at one port, with TLS: HTTP/2 over TCP and HTTP/3 over QUIC. A turn is a
number of requests, in random order within a round; a result is the ratio HTTP/3 / HTTP/2 with its 95 %
interval over rounds. Before the rounds of a cell each version has a turn that is not counted. The CPU time is
the client's, without the time to connect; nginx's own is measured from the start of a turn to its end.

It needs an nginx that was built with HTTP/3 (1.25 or newer, ``--with-http_v3_module``), and openssl:

``python bench/http3_cost.py --nginx ./objs/nginx --rounds 7``
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from servers.nginx_server import SIZES
from uncork import _native
from uncork.engines.ports import free_port
from uncork.load.http import http_plan
from uncork.model.http import HttpServer, HttpSpec, HttpVersion, Request
from uncork.stats.effect import estimate
from uncork.stats.sample import Observation, noise_units

CHILD = "--one-load"
TWO: HttpVersion = "2"
THREE: HttpVersion = "3"
FIGURES = ("CPU", "CPU of nginx", "req/s")
CELLS = ((6, 1, "small"), (1, 100, "small"), (6, 100, "small"), (6, 10, "large"))
_TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run the comparison; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nginx", required=True, help="nginx with HTTP/3")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=20_000, help="requests per turn with small bodies")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of turns")
    options = parser.parse_args()
    order = random.Random(options.seed)
    print("| connections × streams | body | CPU | CPU of nginx | req/s | HTTP/3 and HTTP/2: µs; µs; req/s |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder, _nginx(options.nginx, Path(folder)) as (pid, port):
        for clients, streams, body in CELLS:
            count = options.requests if body == "small" else max(500, options.requests // 20)
            found: dict[str, list[Observation]] = {figure: [] for figure in FIGURES}
            for number in range(options.rounds + 1):
                versions = [TWO, THREE]
                order.shuffle(versions)
                for version in versions:
                    values = _turn(pid, port, version, (clients, streams, body, count))
                    for figure, value in zip(FIGURES, values, strict=True):
                        if number:
                            found[figure].append(Observation(1, number, version, value))
            _report(f"{clients} × {streams} | {SIZES[body]} B", found)
    return 0


def _turn(
    pid: int, port: int, version: HttpVersion, cell: tuple[int, int, str, int]
) -> tuple[float, float, float]:
    clients, streams, body, count = cell
    spec = HttpSpec(
        HttpServer("127.0.0.1", port, tls=True, verify=False),
        (Request(body, "GET", f"/{body}"),),
        version=version,
        clients=clients,
        streams=streams,
        operations=count,
    )
    before = _cpu_us(pid)
    done = subprocess.run(
        [sys.executable, __file__, CHILD],
        input=json.dumps(http_plan(spec)),
        capture_output=True,
        text=True,
        check=True,
    )
    served_us = _cpu_us(pid) - before
    totals = json.loads(done.stdout)
    if totals["outcome"] != "complete" or totals["failed"]:
        raise SystemExit(f"HTTP/{version}: {totals['outcome']}: {totals['message'] or totals['first_error']}")
    cpu_us = (totals["client_user_ns"] + totals["client_system_ns"]) / 1e3
    return cpu_us / count, max(served_us, _TICK_US) / count, count / (totals["elapsed_ns"] / 1e9)


def _cpu_us(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_US


def _report(cell: str, found: dict[str, list[Observation]]) -> None:
    shown, means = [], []
    for observations in found.values():
        effect = estimate(noise_units(observations, baseline=TWO, again=THREE, kind="block"), 0.95)
        shown.append(f"{effect.ratio:.3f} [{effect.low:.3f}, {effect.high:.3f}]")
        by_version = [[one.value for one in observations if one.arm == version] for version in (THREE, TWO)]
        means.append(" and ".join(f"{sum(values) / len(values):.4g}" for values in by_version))
    print(f"| {cell} | {' | '.join(shown)} | {'; '.join(means)} |", flush=True)


@contextmanager
def _nginx(program: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Start nginx, and end it afterwards; yield its process and its port."""
    folder.chmod(0o755)
    (folder / "logs").mkdir()
    for name, size in SIZES.items():
        (folder / name).write_bytes(b"x" * size)
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=bench"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "crt")]
    subprocess.run(["openssl", "req", "-x509", *made, *files], check=True, capture_output=True)  # noqa: S607
    port = free_port()
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        "events { worker_connections 4096; }\n"
        "http { access_log off; keepalive_requests 1000000000; sendfile on; open_file_cache max=10;\n"
        "http2_max_concurrent_streams 1000; http3_max_concurrent_streams 1000; quic_gso on;\n"
        f"server {{ listen 127.0.0.1:{port} ssl; listen 127.0.0.1:{port} quic; http2 on; root {folder};\n"
        f"ssl_certificate {folder}/crt; ssl_certificate_key {folder}/key; }} }}\n"
    )
    running = subprocess.Popen(
        [program, "-p", str(folder), "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(0.5)
        if running.poll() is not None:
            raise SystemExit(f"nginx does not run: {(folder / 'error.log').read_text()}")
        yield running.pid, port
    finally:
        running.terminate()
        running.wait(10)


def _one_load() -> int:
    """Act as the child: execute the plan from standard input, write the totals to standard output."""
    totals, *_ = _native.run_load(sys.stdin.buffer.read(), pa.table({}))
    sys.stdout.write(bytes(totals).decode())
    return 0


if __name__ == "__main__":
    sys.exit(_one_load() if CHILD in sys.argv[1:] else main())
