"""An nginx on loopback for the HTTP benchmarks: one process, files of 101 and of 150 000 bytes."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from uncork.engines.ports import free_port

SIZES = {"small": 101, "large": 150_000}


@dataclass(frozen=True, slots=True)
class Nginx:
    """A running server: its process, and its ports for HTTP/1.1 (False) and HTTP/2 (True)."""

    pid: int
    ports: dict[bool, int]
    version: str


def find_nginx() -> str | None:
    """Return the path of nginx, or None if it is not installed."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return program if Path(program).exists() else None


@contextmanager
def nginx(program: str, folder: Path) -> Iterator[Nginx]:
    """Start nginx in a folder of its own; end it and remove the folder afterwards."""
    folder.chmod(0o755)
    for name, size in SIZES.items():
        (folder / name).write_bytes(b"x" * size)
    ports = {False: free_port(), True: free_port()}
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        "events { worker_connections 4096; }\n"
        "http { access_log off; keepalive_requests 1000000000; sendfile on; open_file_cache max=10;\n"
        f"server {{ listen 127.0.0.1:{ports[False]}; root {folder}; }}\n"
        f"server {{ listen 127.0.0.1:{ports[True]} http2; root {folder};"
        " http2_max_concurrent_streams 1000; } }\n"
    )
    version = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr.strip()
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
        yield Nginx(running.pid, ports, version.removeprefix("nginx version: "))
    finally:
        running.terminate()
        running.wait(10)
