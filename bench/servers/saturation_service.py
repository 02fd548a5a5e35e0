"""A small service that can be made to run short of one resource, for `bench/saturations.py`.

``python saturation_service.py PORT WHAT`` with WHAT one of

- ``sleep``: answers after sleeping for 20 ms;
- ``compute``: computes for some milliseconds in Python, in its one thread;
- ``pool:SIZE:SQL``: runs SQL on one of SIZE connections to SERVICE_DSN;
- ``connect:SQL``: opens a connection to SERVICE_DSN for each request; answers 503 if that fails;
- ``accept``: accepts one connection at a time, each for 20 ms, with a backlog of 1.

SERVICE_FILES limits its open files. It prints a line when it listens.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
import time
from collections.abc import Awaitable, Callable

import psycopg
import psycopg_pool

Answer = Callable[[], Awaitable[bool]]
"""Executes a request; returns whether it succeeded."""

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_FAILED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
_WORK = 12_000
"""Iterations of `compute`, which take some milliseconds."""


async def main(port: int, what: str) -> None:
    """Serve until the process is ended."""
    answer = await _answer(what)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(_OK if await answer() else _FAILED)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", port, backlog=1024)
    async with server:
        print("listens", flush=True)
        await server.serve_forever()


async def _answer(what: str) -> Answer:
    kind, _, rest = what.partition(":")
    if kind == "sleep":
        return _sleep
    if kind == "compute":
        return _compute
    dsn = os.environ["SERVICE_DSN"]
    if kind == "pool":
        size, _, query = rest.partition(":")
        pool = psycopg_pool.AsyncConnectionPool(
            dsn, min_size=int(size), max_size=int(size), timeout=60, open=False, kwargs={"autocommit": True}
        )
        await pool.open(wait=True)

        async def pooled() -> bool:
            async with pool.connection() as connection:
                await connection.execute(query.encode())
            return True

        return pooled

    async def connected() -> bool:
        try:
            async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
                await connection.execute(rest.encode())
        except psycopg.OperationalError:
            return False
        return True

    return connected


async def _sleep() -> bool:
    await asyncio.sleep(0.02)
    return True


async def _compute() -> bool:
    total = 0
    for number in range(_WORK * 5):
        total += number * number % 7
    return total > 0


def accept(port: int) -> None:
    """Accept one connection after the other, each for 20 ms."""
    with socket.create_server(("127.0.0.1", port), backlog=1) as listener:
        print("listens", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                time.sleep(0.02)
                if connection.recv(65536):
                    connection.sendall(_OK)


if __name__ == "__main__":
    if "SERVICE_FILES" in os.environ:
        many = int(os.environ["SERVICE_FILES"])
        resource.setrlimit(resource.RLIMIT_NOFILE, (many, many))
    if sys.argv[2] == "accept":
        accept(int(sys.argv[1]))
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
