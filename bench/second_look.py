"""Watch a server again and again: the first finding must stay the same.

A load of its own role sends a lookup without an index and one with an index. Each verb watches it three times
in a row, then three times after `pg_stat_statements_reset()`, as a superuser, as a role with pg_monitor and
pg_read_all_data, and as the role of the load itself. With `--pg-bin` the server is an installed PostgreSQL,
otherwise the embedded one. Print the first finding of each watch; return 1 if any differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from uncork.engines.embedded import EmbeddedServer

SETUP = (
    "CREATE TABLE purchase AS SELECT n AS id, n % 20000 AS buyer, repeat('x', 60) AS note "
    "FROM generate_series(0, 99999) AS n",
    "ALTER TABLE purchase ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE purchase",
)
SLOW = "SELECT id, note FROM purchase WHERE buyer = %s"
FAST = "SELECT note FROM purchase WHERE id = %s"
CLIENTS = 2
UNCORK = Path(sys.executable).with_name("uncork")


def main() -> int:
    """Watch the load by each verb and role; return 1 if a first finding differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pg-bin", type=Path, help="programs of an installed PostgreSQL")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each watch")
    parser.add_argument("--times", type=int, default=3, help="watches in a row")
    parser.add_argument("--verbs", nargs="+", default=["advise", "profile db", "profile service", "cure"])
    options = parser.parse_args()
    settings = {"shared_preload_libraries": "pg_stat_statements"}
    server = EmbeddedServer(settings, binaries=options.pg_bin)
    server.start()
    wrong = 0
    try:
        roles = lay_out(server)
        with (
            load(roles["same role"]),
            service(roles["same role"]) as url,
            tempfile.TemporaryDirectory() as runs,
        ):
            for watcher, conninfo in roles.items():
                for verb in options.verbs:
                    command = words(verb, conninfo, url, options.seconds)
                    for state in ("as it is", "after a reset"):
                        if state == "after a reset":
                            execute(roles["superuser"], "SELECT pg_stat_statements_reset()")
                        times = 1 if verb == "cure" else options.times
                        firsts = [first_finding(command, Path(runs)) for _ in range(times)]
                        right = all("no index on buyer" in first for first in firsts)
                        wrong += not right
                        word = "ok   " if right else "WRONG"
                        print(f"{word} {watcher:10} {verb:16} {state:14} {' | '.join(firsts)}", flush=True)
    finally:
        server.stop()
    return min(1, wrong)


def lay_out(server: EmbeddedServer) -> dict[str, str]:
    """Create the database and its roles; return their connection strings."""
    execute(
        server.conninfo(),
        "CREATE ROLE app LOGIN",
        "CREATE ROLE watcher LOGIN",
        "GRANT pg_monitor TO watcher",
        "CREATE DATABASE shop OWNER app",
    )
    superuser = server.conninfo("shop")
    app = psycopg.conninfo.make_conninfo(superuser, user="app")
    execute(superuser, "CREATE EXTENSION pg_stat_statements", "GRANT CREATE ON SCHEMA public TO app")
    execute(app, *SETUP)
    execute(superuser, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO watcher")
    watcher = psycopg.conninfo.make_conninfo(superuser, user="watcher")
    return {"superuser": superuser, "pg_monitor": watcher, "same role": app}


def execute(conninfo: str, *statements: str) -> None:
    """Execute statements, each in a session of its own transaction."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def look_up(connection: psycopg.Connection, chance: Random) -> None:
    """Send one slow lookup and three fast ones."""
    connection.execute(SLOW.encode(), [chance.randrange(20_000)]).fetchall()
    for _ in range(3):
        connection.execute(FAST.encode(), [chance.randrange(100_000)]).fetchall()


def connected(conninfo: str, application: str) -> psycopg.Connection:
    """Connect as an application that sends literals: its statements have the same id as EXPLAIN's."""
    return psycopg.connect(
        conninfo, autocommit=True, application_name=application, cursor_factory=psycopg.ClientCursor
    )


@contextmanager
def load(conninfo: str) -> Iterator[None]:
    """Let clients of the application work until the block ends."""
    over = threading.Event()

    def work(seed: int) -> None:
        chance = Random(seed)
        with connected(conninfo, "shop") as connection:
            while not over.wait(0.02):
                look_up(connection, chance)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@contextmanager
def service(conninfo: str) -> Iterator[str]:
    """Serve the lookups by HTTP on a free port; yield the URL."""
    local = threading.local()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if not hasattr(local, "connection"):
                local.connection = connected(conninfo, "service")
            look_up(local.connection, Random())
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()


def words(verb: str, conninfo: str, url: str, seconds: float) -> Sequence[str]:
    """Return the command of a verb."""
    length = f"{seconds:g}s"
    if verb == "profile service":
        return [*verb.split(), url, "--postgres", conninfo, "--for", f"{3 * seconds:g}s"]
    budget = ("--budget", "20s") if verb == "cure" else ()
    return [*verb.split(), conninfo, "--for", length, *budget]


def first_finding(command: Sequence[str], runs: Path) -> str:
    """Run a verb; return the headline of its first finding about the database."""
    done = subprocess.run(
        [UNCORK, *command, "--json", "-q", "--runs", runs],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    try:
        result: Any = json.loads(done.stdout)
    except ValueError:
        return f"status {done.returncode}: {done.stderr.strip()[-300:]}"
    return next(headlines(result), f"no finding: {result.get('answer', '')}")


def headlines(value: Any) -> Iterator[str]:
    """Yield the headlines of findings anywhere in a JSON document, in its order."""
    if isinstance(value, dict):
        if "headline" in value and "rule" in value:
            yield f"{value['headline']}"
            return
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from headlines(part)


if __name__ == "__main__":
    sys.exit(main())
