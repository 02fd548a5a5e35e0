"""The archive's web service, modelled on datagrepper: pages of bus messages as JSON.

    GET /raw?topic=..&category=..&user=..&package=..&delta=..&page=..&rows_per_page=..
    GET /id?id=..
    GET /health

`/raw` returns a page of the newest matching messages, and the total number of matches. `delta` is a window in
seconds that ends now; if a request has none, the default window applies, if there is one. A request that
misses the deadline gets a 504, as from the gateway before the real service, and its query is cancelled.

Environment variables: HOST, PORT, DATABASE_URL; POOL, the number of connections; WINDOW, the default window
in days (empty: none); NOW, the time at which windows end, because the data was made once; DEADLINE in
seconds; LINKS, how users and packages are linked to messages: "plain" tables of ids; "timed" tables, which
also hold the time of the message; "keyed" tables, where id and time together are the message's key; or
"arrays" of names in the message.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import psycopg
from granian.constants import Interfaces
from granian.server.embed import Server
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

LINKS = ("plain", "timed", "keyed", "arrays")
ASKED = ("topic", "category", "user", "package", "delta", "page", "rows_per_page")
COLUMNS = 'm.id, m.msg_id, m."timestamp", m.topic, m.category, m.msg'
MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings from the environment."""

    host: str
    port: int
    database: str
    pool: int
    window: timedelta | None
    now: datetime
    deadline_s: float
    links: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Settings:
        """Read the environment. Raises ValueError if a variable is missing or invalid."""
        missing = [name for name in ("PORT", "DATABASE_URL") if name not in environment]
        if missing:
            raise ValueError(f"{missing[0]} is not set")
        window, links = environment.get("WINDOW", ""), environment.get("LINKS", "plain")
        if links not in LINKS:
            raise ValueError(f'LINKS is "{links}"; it must be one of {", ".join(LINKS)}')
        return cls(
            host=environment.get("HOST", "127.0.0.1"),
            port=int(environment["PORT"]),
            database=environment["DATABASE_URL"],
            pool=int(environment.get("POOL", "10")),
            window=timedelta(days=float(window)) if window else None,
            now=datetime.fromisoformat(environment.get("NOW", "2021-10-01T00:00:00+00:00")),
            deadline_s=float(environment.get("DEADLINE", "5")),
            links=links,
        )


@dataclass(frozen=True, slots=True)
class Raw:
    """The queries for one request to `/raw`: two statements and their values; the page's takes two more."""

    count: str
    page: str
    values: tuple[object, ...]


def raw(asked: Mapping[str, str], settings: Settings) -> Raw:
    """Return the statements that answer a request.

    Messages are joined only if needed: links alone give the number of a user's messages, and links with the
    time also give the newest ones.
    """
    named = [name for name in ("user", "package") if name in asked]
    linked = named[0] if named and settings.links != "arrays" else None
    timed = linked is not None and settings.links in ("timed", "keyed")
    time = 'l."timestamp"' if timed else 'm."timestamp"'
    conditions: list[tuple[str, object]] = []
    since = _since(asked, settings)
    if since is not None:
        conditions.append((f"{time} >= %s", since))
    conditions += [(f"m.{name} = %s", asked[name]) for name in ("topic", "category") if name in asked]
    for name in named:
        if settings.links == "arrays":
            conditions.append((f"m.{name}s @> ARRAY[%s]", asked[name]))
        elif name == linked:
            conditions.append((f"l.{name}_id = (SELECT id FROM {name}s WHERE name = %s)", asked[name]))
        else:
            conditions.append((_LINKED_TOO.format(name=name), asked[name]))
    where = " AND ".join(text for text, _ in conditions)
    where = f" WHERE {where}" if where else ""
    if linked is None:
        counted = joined = "messages m"
    else:
        links = f"{linked}s_messages l"
        same = "m.id = l.message" + (f' AND m."timestamp" = {time}' if settings.links == "keyed" else "")
        joined = f"{links} JOIN messages m ON {same}"
        counted = joined if "m." in where else links
    return Raw(
        count=f"SELECT count(*) FROM {counted}{where}",
        page=f"SELECT {COLUMNS} FROM {joined}{where} ORDER BY {time} DESC LIMIT %s OFFSET %s",
        values=tuple(value for _, value in conditions),
    )


_LINKED_TOO = (
    "EXISTS (SELECT FROM {name}s_messages o"
    " WHERE o.message = l.message AND o.{name}_id = (SELECT id FROM {name}s WHERE name = %s))"
)


def _since(asked: Mapping[str, str], settings: Settings) -> datetime | None:
    if "delta" in asked:
        return settings.now - timedelta(seconds=_number(asked, "delta", 0))
    return None if settings.window is None else settings.now - settings.window


def _number(asked: Mapping[str, str], name: str, otherwise: int) -> int:
    text = asked.get(name, str(otherwise))
    if not text.isdecimal() or len(text) > 9:
        raise BadRequest(f'{name} must be a number, not "{text}"')
    return int(text)


class BadRequest(Exception):
    """An invalid request; the message says why."""


Row = dict[str, Any]
Pool = AsyncConnectionPool[psycopg.AsyncConnection[Row]]
Answer = tuple[int, Row]


class Service:
    """Answers requests from a pool of connections."""

    def __init__(self, settings: Settings, pool: Pool) -> None:
        self._settings = settings
        self._pool = pool

    async def __call__(self, scope: Any, proto: Any) -> None:
        """Answer one request through the RSGI interface."""
        status, answer = await self._answer(scope.path, dict(parse_qsl(scope.query_string)))
        body = json.dumps(answer, default=datetime.isoformat).encode()
        proto.response_bytes(status, [("content-type", "application/json")], body)

    async def _answer(self, path: str, asked: dict[str, str]) -> Answer:
        paths = {"/raw": self._raw, "/id": self._id, "/health": self._health}
        if path not in paths:
            return 404, {"error": f"there is no {path}"}
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                return await paths[path](asked)
        except BadRequest as error:
            return 400, {"error": str(error)}
        except TimeoutError:
            return 504, {"error": f"not answered within {self._settings.deadline_s:g} s"}
        except psycopg.DataError as error:
            return 400, {"error": str(error)}
        except psycopg.Error as error:
            print(f"{path}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
            return 503, {"error": "the database cannot answer"}

    async def _raw(self, asked: dict[str, str]) -> Answer:
        unknown = [name for name in asked if name not in ASKED]
        if unknown:
            raise BadRequest(f'there is no parameter "{unknown[0]}"; expected one of {", ".join(ASKED)}')
        rows = min(max(_number(asked, "rows_per_page", 25), 1), MOST_ROWS)
        number = max(_number(asked, "page", 1), 1)
        queries = raw(asked, self._settings)
        async with self._pool.connection() as connection:
            counted = await connection.execute(queries.count, queries.values)
            [total] = (await counted.fetchone() or {"count": 0}).values()
            found = await connection.execute(queries.page, (*queries.values, rows, (number - 1) * rows))
            messages = await found.fetchall()
        pages = -(-total // rows)
        return 200, {"total": total, "pages": pages, "count": len(messages), "raw_messages": messages}

    async def _id(self, asked: dict[str, str]) -> Answer:
        if "id" not in asked:
            raise BadRequest("the parameter id is missing")
        async with self._pool.connection() as connection:
            found = await connection.execute(
                f"SELECT {COLUMNS} FROM messages m WHERE msg_id = %s", [asked["id"]]
            )
            message = await found.fetchone()
        return (404, {"error": "there is no such message"}) if message is None else (200, message)

    async def _health(self, asked: dict[str, str]) -> Answer:
        async with self._pool.connection() as connection:
            await connection.execute("SELECT")
        return 200, {"healthy": True}


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    # Plan each request again with its values, as the real service's driver does.
    options = {"prepare_threshold": None, "autocommit": True, "row_factory": dict_row}
    pool: Pool = AsyncConnectionPool(
        settings.database, min_size=settings.pool, max_size=settings.pool, kwargs=options, open=False
    )
    async with pool:
        await pool.wait(timeout=10)
        service = Service(settings, pool)
        server = Server(
            service,
            settings.host,
            settings.port,
            interface=Interfaces.RSGI,
            log_enabled=False,
            websockets=False,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, server.stop)
        await server.serve()


if __name__ == "__main__":
    try:
        asyncio.run(serve(Settings.of(os.environ)))
    except (ValueError, psycopg.OperationalError) as error:
        sys.exit(f"service: {str(error).splitlines()[0]}")
    os._exit(0)  # all is closed; granian's thread may not have noticed, and would abort as Python ends
