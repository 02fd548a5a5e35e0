"""A service with work in Python and SQL, as a profiler's agent would find it: rows in, figures as JSON out.

With AGENT=on Pyroscope's agent samples it, and pushes what it saw to SERVICE_SINK.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from urllib.parse import urlsplit

import psycopg

SQL = "SELECT id, kind, price, note FROM items WHERE id BETWEEN %s AND %s + 39 ORDER BY id"


async def main() -> None:
    """Serve until SIGTERM."""
    if os.environ.get("AGENT") == "on":
        import pyroscope  # type: ignore[import-untyped,import-not-found,unused-ignore] # noqa: PLC0415

        pyroscope.configure(application_name="service", server_address=os.environ["SERVICE_SINK"])
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    server = await asyncio.start_server(serve, os.environ["HOST"], int(os.environ["PORT"]))
    await ended.wait()
    server.close()
    os._exit(0)  # without waiting for what the agent has not pushed


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection, over a database connection of its own."""
    connection: psycopg.AsyncConnection[tuple[int, str, int, str]] | None = None
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = urlsplit(head.split(b" ", 2)[1].decode()).path
            if path == "/ready":
                body = b"{}"
            else:
                if connection is None:
                    connection = await psycopg.AsyncConnection.connect(
                        os.environ["DATABASE_URL"], autocommit=True
                    )
                first = int(path.rpartition("/")[2])
                rows = await (await connection.execute(SQL, (first, first))).fetchall()
                body = json.dumps(summed(rows)).encode()
            length = str(len(body)).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                + length
                + b"\r\n\r\n"
            )
            writer.write(body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
        if connection is not None:
            await connection.close()


def summed(rows: list[tuple[int, str, int, str]]) -> dict[str, object]:
    """Count words and add up prices: some hundred microseconds of Python."""
    words: Counter[str] = Counter()
    prices: Counter[str] = Counter()
    for _, kind, price, note in rows:
        words.update(note.lower().split())
        prices[kind] += price
    ranked = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:20]
    return {"rows": len(rows), "prices": dict(sorted(prices.items())), "words": ranked}


if __name__ == "__main__":
    asyncio.run(main())
