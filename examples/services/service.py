"""A service that returns an item by its number from PostgreSQL, with only the standard library and psycopg.

It shows what uncork gives an experiment's service, and what the service must do: listen at HOST and PORT,
read its data from DATABASE_URL, answer its health path when it is ready, and end on SIGTERM. It holds POOL
connections. A request waits at most a tenth of a second for a connection; then the service refuses it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

WAIT_S = 0.1

pool: queue.Queue[psycopg.Connection] = queue.Queue()


class Handler(BaseHTTPRequestHandler):
    """Answers `/health` and `/items/NUMBER`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise the body waits until the client acknowledges the head

    def do_GET(self) -> None:
        """Answer a request."""
        if self.path == "/health":
            self.send(200, {"ready": True})
            return
        number = self.path.removeprefix("/items/")
        if not number.isdigit():
            self.send(404, {"error": "there is no such page"})
            return
        try:
            connection = pool.get(timeout=WAIT_S)
        except queue.Empty:
            self.send(503, {"error": f"all {os.environ['POOL']} connections are busy"})
            return
        try:
            row = connection.execute("SELECT name, price FROM item WHERE id = %s", [number]).fetchone()
        finally:
            pool.put(connection)
        if row is None:
            self.send(404, {"error": "there is no such item"})
        else:
            self.send(200, {"id": int(number), "name": row[0], "price": row[1]})

    def send(self, status: int, answer: dict) -> None:
        """Send an answer as JSON, in one piece."""
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: a line for each request would be measured too."""


class Server(ThreadingHTTPServer):
    """A thread for each connection; they end with the process."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Ignore clients that have disconnected."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*_)


def main() -> None:
    """Connect, serve, and end on SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for _ in range(int(os.environ["POOL"])):
        pool.put(psycopg.connect(os.environ["DATABASE_URL"], autocommit=True))
    with Server((os.environ["HOST"], int(os.environ["PORT"])), Handler) as server:
        server.serve_forever()


main()
