"""An API of 500 tracked objects in three databases, over HTTP/1.1 and HTTP/2 on one port.

    GET /objects/7              a simple request: one row by its key
    GET /objects/7/analysis     about fifty calls to three databases, and thousands of lines of JSON
    GET /pool                   connections in use, and calls that wait for one
    GET /health                 whether all three databases answer

Environment variables: HOST, PORT, DATABASE_URL, DATABASE_URL_READINGS and DATABASE_URL_EVENTS; POOL, the
total number of connections of its three pools; POOL_TIMEOUT, the seconds that a call waits for a connection;
VIEW, the view of the last revisions of documents. SIGTERM ends it. Connection strings are never printed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from granian.constants import Interfaces
from granian.http import HTTP2Settings
from granian.server.embed import Server
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

VIEWS = ("last_distinct", "last_not_exists", "last_lateral", "last_marked", "last_current")
"""Five ways to keep the last revision of each document; schema.sql creates them."""

SUFFIXES = {"documents": "", "readings": "_READINGS", "events": "_EVENTS"}
"""The three databases, and the suffixes of the variables with their addresses."""

CHANNELS = range(1, 39)
"""Each channel is read by its own call, all at once: that makes about fifty calls per analysis."""

# ---- documents ----

OBJECT = "SELECT id, name, site, since FROM object WHERE id = %s"
NEIGHBOURS = "SELECT id, name FROM object WHERE site = %s AND id <> %s ORDER BY id"
NEWEST = "SELECT id, revision, object, changed_at, state FROM {view} ORDER BY changed_at DESC LIMIT 50"
HISTORY = """
SELECT id, revision, changed_at, state FROM document WHERE object = %s ORDER BY id, revision LIMIT 100"""
STATES = "SELECT state, count(*) AS documents FROM document WHERE object = %s GROUP BY state ORDER BY state"

# ---- readings ----

DAY = "SELECT min(at) AS first, max(at) AS last, avg(mean) AS mean FROM reading WHERE object = %s"
HOURS = """
SELECT at, avg(mean) AS mean, min(lowest) AS lowest, max(highest) AS highest
  FROM reading WHERE object = %s GROUP BY at ORDER BY at"""
WIDEST = """
SELECT channel, max(highest) - min(lowest) AS width
  FROM reading WHERE object = %s GROUP BY channel ORDER BY width DESC, channel LIMIT 5"""
NEARBY_READINGS = """
SELECT object, avg(mean) AS mean
  FROM reading WHERE object = ANY(%s) AND channel = 1 GROUP BY object ORDER BY object"""
CHANNEL = """
SELECT at, mean, lowest, highest, samples FROM reading WHERE object = %s AND channel = %s ORDER BY at"""

# ---- events ----

OPEN = "SELECT id, raised_at, level, text FROM event WHERE object = %s AND open ORDER BY raised_at DESC"
LEVELS = "SELECT level, count(*) AS events FROM event WHERE object = %s GROUP BY level ORDER BY level"
LAST = "SELECT id, raised_at, level, text FROM event WHERE object = %s ORDER BY raised_at DESC LIMIT 50"
NEARBY_EVENTS = """
SELECT object, count(*) AS events
  FROM event WHERE object = ANY(%s) AND open GROUP BY object ORDER BY object"""

Row = dict[str, Any]
Answer = tuple[int, Any]
Send = Callable[[Row], Awaitable[None]]


class Away(Exception):
    """A database that does not answer, or has no free connection in time; `name` identifies it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"database {name}: {reason}")
        self.name = name


class Database:
    """One of the three databases: its pool, and calls that each hold a connection while they run."""

    def __init__(self, name: str, conninfo: str, size: int, timeout: float) -> None:
        self.name = name
        self.lost = False
        self.pool: AsyncConnectionPool[AsyncConnection[Row]] = AsyncConnectionPool(
            conninfo,
            min_size=size,
            max_size=size,
            timeout=timeout,
            open=False,
            kwargs={"autocommit": True, "row_factory": dict_row, "prepare_threshold": 0},
        )

    async def call(self, statement: str, *values: object) -> list[Row]:
        """Return the rows of a statement, which the server prepares once per connection.

        Raises Away if the database cannot be reached, or no connection is free in time.
        """
        try:
            async with self.pool.connection() as connection:
                rows = await (await connection.execute(statement, values)).fetchall()
        except PoolTimeout:
            raise self._away(f"no connection free within {self.pool.timeout:g} s") from None
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise self._away(str(error).partition("\n")[0]) from None
        self.lost = False
        return rows

    def _away(self, reason: str) -> Away:
        """Print the outage once when it begins, not for every call."""
        away = Away(self.name, reason)
        if not self.lost:
            print(f"service: {away}", file=sys.stderr, flush=True)
        self.lost = True
        return away

    def state(self) -> Mapping[str, int]:
        """Return connections in use and in total, the calls that wait for one, and how many ever waited."""
        stats = self.pool.get_stats()
        return {
            "connections": stats.get("pool_size", 0),
            "most": stats.get("pool_max", 0),
            "in_use": stats.get("pool_size", 0) - stats.get("pool_available", 0),
            "waiting": stats.get("requests_waiting", 0),
            "calls": stats.get("requests_num", 0),
            "waited": stats.get("requests_queued", 0),
            "waited_ms": stats.get("requests_wait_ms", 0),
            "refused": stats.get("requests_errors", 0),
        }


class Api:
    """The answers of all paths; `databases` are those of documents, readings and events."""

    def __init__(self, databases: Sequence[Database], view: str) -> None:
        self.databases = databases
        self.newest = NEWEST.format(view=view)

    async def answer(self, path: str) -> Answer:
        """Return status and body for a path."""
        match path.strip("/").split("/"):
            case ["health"]:
                await asyncio.gather(*(database.call("SELECT 1") for database in self.databases))
                return 200, {"databases": [database.name for database in self.databases]}
            case ["pool"]:
                return 200, {database.name: database.state() for database in self.databases}
            case ["objects", number] if number.isdecimal() and len(number) < 10:
                return await self.object(int(number))
            case ["objects", number, "analysis"] if number.isdecimal() and len(number) < 10:
                return await self.analysis(int(number))
        return 404, {"error": f"there is no {path}"}

    async def object(self, number: int) -> Answer:
        """Return one object, or 404."""
        rows = await self.databases[0].call(OBJECT, number)
        return (200, rows[0]) if rows else (404, {"error": f"there is no object {number}"})

    async def analysis(self, number: int) -> Answer:
        """Return all data of an object: twelve calls one after another, then one for each channel."""
        status, found = await self.object(number)
        if status != 200:
            return status, found
        documents, readings, events = (database.call for database in self.databases)
        neighbours = await documents(NEIGHBOURS, found["site"], number)
        around = [row["id"] for row in neighbours]
        return 200, {
            **found,
            "neighbours": neighbours,
            "documents": {
                "newest": await documents(self.newest),
                "history": await documents(HISTORY, number),
                "states": await documents(STATES, number),
            },
            "readings": {
                "day": await readings(DAY, number),
                "hours": await readings(HOURS, number),
                "widest": await readings(WIDEST, number),
                "nearby": await readings(NEARBY_READINGS, around),
                "channels": await asyncio.gather(
                    *(readings(CHANNEL, number, channel) for channel in CHANNELS)
                ),
            },
            "events": {
                "open": await events(OPEN, number),
                "levels": await events(LEVELS, number),
                "last": await events(LAST, number),
                "nearby": await events(NEARBY_EVENTS, around),
            },
        }


class Application:
    """The ASGI application: sends status, headers and body of the API's answers, and ends cleanly."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.ending = False
        self.under_way = 0

    async def __call__(self, scope: Mapping[str, Any], _receive: object, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        self.under_way += 1
        try:
            status, body = await self._answer(scope["method"], scope["path"])
            # One line per value, like indented JSON, at the speed of compact JSON.
            text = json.dumps(body, separators=(",\n", ": "), default=str).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else text})
        finally:
            self.under_way -= 1

    async def _answer(self, method: str, path: str) -> Answer:
        if self.ending:
            return 503, {"error": "the service is ending"}
        if method not in ("GET", "HEAD"):
            return 405, {"error": "only GET is answered"}
        try:
            return await self.api.answer(path)
        except Away as error:
            return 503, {"error": f"database {error.name} is not available"}
        except Exception as error:  # noqa: BLE001 -- a defect must not end the service
            print(f"service: {path}: {type(error).__name__}", file=sys.stderr, flush=True)
            return 500, {"error": "internal error; see the log of the service"}

    async def end(self, server: Server) -> None:
        """Accept no new requests, give running ones a few seconds to finish, and stop."""
        self.ending = True
        for _ in range(300):
            if not self.under_way:
                break
            await asyncio.sleep(0.01)
        server.stop()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Settings:
    """The settings from the environment."""

    host: str
    port: int
    view: str
    size: int
    timeout: float
    addresses: Mapping[str, str]


class Refusal(Exception):
    """The reason why the service does not start, in one line."""


def settings(given: Mapping[str, str]) -> Settings:
    """Read the environment. Raises Refusal."""
    names = {name: f"DATABASE_URL{suffix}" for name, suffix in SUFFIXES.items()}
    missing = [name for name in ("PORT", *names.values()) if name not in given]
    if missing:
        raise Refusal(f"{missing[0]} is not set")
    try:
        size, timeout = int(given.get("POOL", "60")), float(given.get("POOL_TIMEOUT", "30"))
        port = int(given["PORT"])
    except ValueError as wrong:
        raise Refusal(f"PORT, POOL and POOL_TIMEOUT must be numbers: {wrong}") from None
    view = given.get("VIEW", VIEWS[0])
    if view not in VIEWS:
        raise Refusal(f'VIEW must be one of {", ".join(VIEWS)}; found "{view}"')
    if size < len(names):
        raise Refusal(f"POOL must be 3 or more, one connection for each database; found {size}")
    addresses = {name: given[variable] for name, variable in names.items()}
    return Settings(given.get("HOST", "127.0.0.1"), port, view, size, timeout, addresses)


async def serve(asked: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises Refusal."""
    # The pool would log every attempt; this service prints one line instead.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    few = max(1, asked.size // 4)
    sizes = {"documents": asked.size - 2 * few, "readings": few, "events": few}
    databases = [
        Database(name, address, sizes[name], asked.timeout) for name, address in asked.addresses.items()
    ]
    patience = min(asked.timeout, 10)
    application = Application(Api(databases, asked.view))
    server = Server(
        application,
        address=asked.host,
        port=asked.port,
        interface=Interfaces.ASGINL,
        backlog=1024,
        backpressure=10_000,  # requests wait for the pool instead, and /pool shows it
        http2_settings=HTTP2Settings(max_concurrent_streams=1000),
        websockets=False,
        log_enabled=False,
    )
    loop, ending = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    try:
        await asyncio.gather(*(database.pool.open(wait=True, timeout=patience) for database in databases))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: ending.add(loop.create_task(application.end(server))))
        await server.serve()
    except PoolTimeout:
        raise Refusal(f"its databases do not answer within {patience:g} s") from None
    except (OSError, RuntimeError) as error:  # granian's own error has a stack trace after the first line
        reason = str(error).partition("\n")[0]
        raise Refusal(f"cannot listen on {asked.host}:{asked.port}: {reason}") from None
    finally:
        for database in databases:
            await database.pool.close(timeout=1)


def main() -> int:
    """Return the exit status."""
    try:
        asyncio.run(serve(settings(os.environ)))
    except Refusal as refusal:
        print(f"service: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # all is closed; granian's thread may not have noticed, and would abort as Python ends
