"""A simulated distance between client and service: half of ROUND_TRIP_MS in each direction.

It replaces a long network without a bandwidth limit. Nothing is lost, reordered or slowed down, so only the
number of round trips matters. Environment variables: HOST, PORT, SERVICE_API (the address of the service) and
ROUND_TRIP_MS. SIGTERM ends it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from typing import cast
from urllib.parse import urlsplit


class End(asyncio.Protocol):
    """One end of a connection: data that arrives here leaves at the other end, after the delay, in order."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.loop = asyncio.get_running_loop()
        self.under_way: deque[tuple[float, bytes | None]] = deque()
        self.transport: asyncio.Transport | None = None
        self.other: End | None = None
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of this end."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Forward the data."""
        self._send(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """Close the other end when all data has arrived there."""
        self._send(None)

    def _send(self, data: bytes | None) -> None:
        self.under_way.append((self.loop.time() + self.delay, data))
        if self.timer is None:
            self.timer = self.loop.call_later(self.delay, self._arrive)

    def _arrive(self) -> None:
        self.timer = None
        other = self.other
        if other is None or other.transport is None:  # the other end is not open yet
            self.timer = self.loop.call_later(0.001, self._arrive)
            return
        now = self.loop.time() + 0.0005
        while self.under_way and self.under_way[0][0] <= now:
            data = self.under_way.popleft()[1]
            if data is None:
                other.transport.close()
            elif not other.transport.is_closing():
                other.transport.write(data)
        if self.under_way:
            self.timer = self.loop.call_at(self.under_way[0][0], self._arrive)


async def main() -> int:
    """Relay until SIGTERM or SIGINT; return the exit status."""
    try:
        host, port = os.environ.get("HOST", "127.0.0.1"), int(os.environ["PORT"])
        api, delay = os.environ["SERVICE_API"], float(os.environ["ROUND_TRIP_MS"]) / 2000
        far_host, far_port = urlsplit(api).hostname or host, urlsplit(api).port or 80
    except KeyError as missing:
        return _refuse(f"{missing.args[0]} is not set")
    except ValueError as wrong:
        return _refuse(f"PORT and ROUND_TRIP_MS must be numbers: {wrong}")
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    dialling: set[asyncio.Task[None]] = set()

    def accept() -> End:
        near = End(delay)

        async def dial() -> None:
            try:
                _, far = await loop.create_connection(lambda: End(delay), far_host, far_port)
            except OSError:
                if near.transport is not None:
                    near.transport.close()
                return
            near.other, far.other = far, near

        task = loop.create_task(dial())
        dialling.add(task)
        task.add_done_callback(dialling.discard)
        return near

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        server = await loop.create_server(accept, host, port, backlog=1024)
    except OSError as error:
        return _refuse(f"cannot listen on {host}:{port}: {error.strerror}")
    async with server:
        await stopped.wait()
    return 0


def _refuse(reason: str) -> int:
    print(f"wire: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
