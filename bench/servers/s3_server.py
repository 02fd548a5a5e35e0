"""An S3 server on loopback: moto's, which answers as S3 clients expect."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "bench"


class S3Server:
    """A server and its address. It can be stopped and started again, and then is empty."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that a process needs to reach it."""
        return {
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "a-secret-of-nobody",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
        }

    def start(self) -> None:
        """Start it with one empty bucket, and wait until it answers."""
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, env=os.environ | self.environment, **quiet)
        until = time.monotonic() + 60
        while not self._makes_bucket():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("moto's server does not answer; pip install 'moto[server]'")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it at once; connections to it are refused from then on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _makes_bucket(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("PUT", f"/{BUCKET}")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server; end it afterwards."""
    server = S3Server()
    server.start()
    try:
        yield server
    finally:
        server.stop()
