"""A small service over PostgreSQL with logins, cookies, reads and writes; it counts what it answers.

Run as a program: ``account_service.py DSN``. It prints its port.
"""

import json
import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psycopg

from uncork.engines.ports import free_port

SETUP = """
CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO accounts SELECT n, 10 * n FROM generate_series(1, 200000) AS n;
CREATE TABLE users (name text PRIMARY KEY, password text NOT NULL);
INSERT INTO users SELECT 'user' || n, 'open-' || n FROM generate_series(1, 50) AS n;
CREATE TABLE sessions (token text PRIMARY KEY, cookie text NOT NULL, name text NOT NULL);
CREATE TABLE transfers (id int GENERATED ALWAYS AS IDENTITY, name text, account int, amount int, note text);
"""
answered: Counter[str] = Counter()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one segment for head and body

    def setup(self) -> None:
        super().setup()
        self.database = psycopg.connect(sys.argv[1], autocommit=True)

    def finish(self) -> None:
        super().finish()
        self.database.close()

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/counts":
            self._send(200, dict(answered))
        elif name := self._user():
            number = int(self.path.rpartition("/")[2])
            row = self.database.execute("SELECT balance FROM accounts WHERE id = %s", [number]).fetchone()
            answered["read"] += 1
            # One account in ten is answered wrongly, so that a check can find it.
            wrong = self.path.startswith("/broken/") and number % 10 == 0
            self._send(200, {"id": -1 if wrong else number, "balance": row and row[0], "name": name})

    def do_POST(self) -> None:
        found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/login":
            self._log_in(found)
        elif name := self._user():
            row = [name, found["account"], found["amount"], found["note"]]
            number = self.database.execute(
                "INSERT INTO transfers (name, account, amount, note) VALUES (%s, %s, %s, %s) RETURNING id",
                row,
            ).fetchone()
            answered["write"] += 1
            self._send(201, {"transfer": number and number[0]})

    def _log_in(self, found: dict[str, str]) -> None:
        known = self.database.execute(
            "SELECT password FROM users WHERE name = %s", [found["user"]]
        ).fetchone()
        if known is None or found["password"] != known[0]:
            self._send(401, {"error": "wrong password", "token": "never-shown"})
            return
        token, cookie = secrets.token_hex(8), secrets.token_hex(8)
        self.database.execute("INSERT INTO sessions VALUES (%s, %s, %s)", [token, cookie, found["user"]])
        self._send(
            200, {"data": {"token": token}}, ("Set-Cookie", f"sid={cookie}; Path=/; HttpOnly; SameSite=Lax")
        )

    def _user(self) -> str | None:
        """Return who asks; both the token and the cookie must be of the same session."""
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        cookie = SimpleCookie(self.headers["Cookie"] or "").get("sid")
        row = self.database.execute(
            "SELECT name FROM sessions WHERE token = %s AND cookie = %s", [token, cookie and cookie.value]
        ).fetchone()
        if row is None:
            self._send(403, {"error": "who are you?"})
        return row[0] if row else None

    def _send(self, status: int, found: object, *headers: tuple[str, str]) -> None:
        body = json.dumps(found).encode()
        self.send_response(status)
        for name, value in (
            *headers,
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def account_service(dsn: str) -> Iterator[str]:
    """Run the service; yield its address."""
    running = subprocess.Popen(
        [sys.executable, __file__, dsn],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert running.stdout is not None
        yield f"http://127.0.0.1:{int(running.stdout.readline())}"
    finally:
        running.terminate()
        running.communicate()


@contextmanager
def over_http2(address: str, folder: Path) -> Iterator[str]:
    """Run nginx in front of a service, which speaks only HTTP/2 without encryption; yield its address."""
    port = free_port()
    (folder / "front.conf").write_text(f"""
daemon off; master_process off; pid {folder}/front.pid; error_log {folder}/front.log;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fast; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream service {{ server {address.removeprefix("http://")}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{port} http2;
    location / {{ proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
""")
    program = "nginx" if not Path("/usr/sbin/nginx").is_file() else "/usr/sbin/nginx"
    running = subprocess.Popen([program, "-p", str(folder), "-c", str(folder / "front.conf")])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(10)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    server = _Server(("127.0.0.1", 0), _Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
