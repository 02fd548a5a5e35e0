"""Takes what an agent pushes, tells each push on its output, and keeps nothing."""

from __future__ import annotations

import asyncio
import os
import signal


async def main() -> None:
    """Serve until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await asyncio.start_server(serve, os.environ["HOST"], int(os.environ["PORT"]))
    await ended.wait()
    os._exit(0)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each push."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            size = await taken(reader, head.lower())
            print(f"{head.split(b' ', 2)[1].decode(errors='replace')} {size} bytes", flush=True)  # noqa: T201
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def taken(reader: asyncio.StreamReader, head: bytes) -> int:
    """Read a body and return its size."""
    if b"transfer-encoding: chunked" in head:
        whole = 0
        while size := int((await reader.readline()).split(b";")[0], 16):
            await reader.readexactly(size + 2)
            whole += size
        await reader.readline()
        return whole
    lengths = [line for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
    size = int(lengths[0].partition(b":")[2]) if lengths else 0
    await reader.readexactly(size)
    return size


if __name__ == "__main__":
    asyncio.run(main())
