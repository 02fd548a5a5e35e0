"""How much of the statements' time `uncork profile service` assigns to the right request.

``python bench/service_join.py --times 5`` profiles the shop of the tests with 16 clients on all of its routes
at once. Every statement of the shop carries a comment with its route, and the server logs every statement
with its duration: that is the truth. uncork does not use these comments for the join. The figures are the
fractions of the statements' time, and of their number, that both divide alike among (route, template): the
sum of the smaller of both shares.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]

from fakes.http_servers import free_port  # noqa: E402
from fakes.shop_service import fill  # noqa: E402
from uncork.engines.embedded import EmbeddedServer  # noqa: E402
from uncork.profile.grammar import template_text  # noqa: E402
from uncork.profile.statement_origin import origin  # noqa: E402

ROUTES = {
    "/orders/transaction": "/orders/transaction",
    "/orders/autocommit": "/orders/autocommit",
    "/orders/one": "/orders/one",
    "/orders/joined": "/orders/joined",
    "/search": "/search",
    "/visit": "/visit",
    "/product/{n}": "/product/{number}",
}
"""The route of each request."""
Shares = Counter[tuple[str, str]]
"""Amounts by (route, template)."""
_ENTRY = re.compile(
    r"^(?P<time>[\d-]+ [\d:.]+) UTC \[\d+\] LOG:  duration: (?P<ms>[\d.]+) ms  "
    r"(?:execute [^:]*|statement): (?P<text>.*)"
)
_COMMENT = re.compile(r"/\*([^*]*)\*/\s*$")


@contextmanager
def shop(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield the address of a shop, its database, and the server's log."""
    folder.chmod(0o755)
    log = folder / "log"
    log.mkdir()
    log.chmod(0o777)
    settings = {
        "shared_buffers": "128MB",
        "shared_preload_libraries": "pg_stat_statements",
        "logging_collector": "on",
        "log_directory": str(log),
        "log_filename": "postgresql.log",
        "log_line_prefix": "%m [%p] ",
        "log_timezone": "UTC",
        "log_min_duration_statement": 0,
    }
    server = EmbeddedServer(settings)
    server.start()
    try:
        fill(server.conninfo())
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
        port = free_port()
        environment = {**os.environ, "SHOP_DSN": server.conninfo(), "SHOP_TAGS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
        with subprocess.Popen(
            [sys.executable, "-m", "fakes.shop_service", str(port)], env=environment
        ) as process:
            try:
                url = f"http://127.0.0.1:{port}"
                for _ in range(600):
                    try:
                        with closing(urllib.request.urlopen(f"{url}/product/1", timeout=5)):  # noqa: S310
                            break
                    except OSError:
                        time.sleep(0.1)
                yield url, server.conninfo(), log / "postgresql.log"
            finally:
                process.kill()
    finally:
        server.stop()


def logged(path: Path, begun_us: int, ended_us: int) -> tuple[Shares, Shares]:
    """Return the milliseconds and the executions of statements by (route, template) within a time."""
    found: Shares = Counter()
    executions: Shares = Counter()
    with path.open(errors="replace") as lines:
        for line in lines:
            entry = _ENTRY.match(line)
            comment = None if entry is None else _COMMENT.search(entry["text"])
            if entry is None or comment is None:
                continue
            at = datetime.fromisoformat(entry["time"]).replace(tzinfo=UTC).timestamp() * 1e6
            route = origin(comment[1])
            if route is not None and begun_us <= at <= ended_us:
                key = route, template_text(entry["text"])
                found[key] += float(entry["ms"])
                executions[key] += 1.0
    return found, executions


def assigned(result: dict[str, Any], templates: set[str]) -> tuple[Shares, Shares]:
    """Return the milliseconds and the executions that uncork assigned, of templates that carry a comment."""
    found: Shares = Counter()
    executions: Shares = Counter()
    for request in result["requests"]:
        for one in request["templates"]:
            if one["text"] in templates:
                key = ROUTES[request["name"]], one["text"]
                found[key] += one["ns"] * request["sent"] / 1e6
                executions[key] += one["calls"] * request["sent"]
    return found, executions


def agreement(truth: Shares, ours: Shares) -> float:
    """Return the fraction that both divide alike."""
    whole, all_ours = sum(truth.values()), sum(ours.values())
    return sum(min(ms / whole, ours[key] / all_ours) for key, ms in truth.items())


def main() -> None:
    """Profile, compare, and print a line for each profile."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--times", type=int, default=5)
    options.add_argument("--seconds", type=int, default=20)
    options.add_argument("--clients", type=int, default=16)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as name, shop(Path(name)) as (url, dsn, log):
        shares = []
        for number in range(asked.times):
            begun = time.monotonic()
            command = [sys.executable, "-m", "uncork", "profile", "service", f"{url}/orders/transaction"]
            command += [one for one in ROUTES if one != "/orders/transaction"]
            command += ["--var", "n=1..1000", "--postgres", dsn, "-c", str(asked.clients), "--no-code", "-q"]
            command += ["--for", f"{asked.seconds}s", "--json", "--runs", f"{name}/runs"]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[:2])}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            took = time.monotonic() - begun
            result = json.loads(done.stdout)
            query = "SELECT begun_us, elapsed_ns FROM service_slices WHERE kind = 'all'"
            sql = [sys.executable, "-m", "uncork", "sql", query, "--json", "--runs", f"{name}/runs"]
            rows = subprocess.run(sql, env=environment, capture_output=True, text=True, check=True).stdout
            row = json.loads(rows)
            truth, executed = logged(log, row["begun_us"], row["begun_us"] + row["elapsed_ns"] // 1000)
            ours, sent = assigned(result, {text for _, text in truth})
            shares.append(agreement(truth, ours))
            print(
                f"{number + 1}: {shares[-1] * 100:.1f} % of {sum(truth.values()) / 1000:.1f} s and "
                f"{agreement(executed, sent) * 100:.1f} % of {sum(executed.values()):.0f} executions alike, "
                f"{len(truth)} pairs of route and template, explained {result['explained'] * 100:.1f} %, "
                f"took {took:.1f} s"
            )
        print(f"least {min(shares) * 100:.1f} %, mean {sum(shares) / len(shares) * 100:.1f} %")


if __name__ == "__main__":
    main()
