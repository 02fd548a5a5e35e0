"""A server of HTTP/3 for tests (aioquic): it answers by path, counts requests, and errs on request."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3_ALPN, ErrorCode, FrameType, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent

SLOW_S = 0.05
"""How long ``/slow`` takes."""
_BODIES = {"/small.txt": b"x" * 101, "/big.bin": bytes(range(256)) * 600}


@dataclass
class Http3Server:
    """What a running server has seen.

    Paths: ``/small.txt`` and ``/big.bin``; ``/method`` answers with the method and the length of the body in
    headers; ``/slow`` takes `SLOW_S`; ``/silent`` never answers; ``/refuse`` answers 503; ``/abort`` resets
    the stream; ``/reject`` rejects every other request unprocessed; ``/cut`` ends an answer within a frame.
    """

    port: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    """Whole requests, by method and path."""
    connections: int = 0
    leaves_after: int | None = None
    """After so many requests a connection announces GOAWAY; the last of them is not processed."""
    closes_after: int | None = None
    """After so many requests a connection is closed with an error."""
    idle_s: float = 60.0
    protocols: tuple[str, ...] = tuple(H3_ALPN)
    cancelled: int = 0
    """Requests whose client stopped waiting."""


@contextmanager
def http3_server(certificate: Path, key: Path, **behaviour: object) -> Iterator[Http3Server]:
    """Serve on loopback with this certificate; yield what the server sees."""
    served = Http3Server(**behaviour)  # type: ignore[arg-type]
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def run() -> None:
        configuration = QuicConfiguration(
            is_client=False, alpn_protocols=list(served.protocols), idle_timeout=served.idle_s
        )
        configuration.load_cert_chain(certificate, key)
        server = await serve(
            "127.0.0.1",
            0,
            configuration=configuration,
            create_protocol=lambda *words, **options: _Connection(served, *words, **options),
        )
        served.port = server._transport.get_extra_info("sockname")[1]
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            server.close()

    task = loop.create_task(run())

    def turn() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            return
        finally:
            loop.run_until_complete(asyncio.sleep(0))

    thread = threading.Thread(target=turn, daemon=True)
    thread.start()
    assert ready.wait(20), "the server does not start"
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(20)
        loop.close()


class _Connection(QuicConnectionProtocol):
    def __init__(self, served: Http3Server, *words: object, **options: object) -> None:
        super().__init__(*words, **options)  # type: ignore[arg-type]
        self._served = served
        self._http: H3Connection | None = None
        self._asked: dict[int, tuple[str, str]] = {}
        self._lengths: Counter[int] = Counter()
        self._count = 0

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
            self._served.connections += 1
        if self._http is None:
            return
        if type(event).__name__ in ("StreamReset", "StopSendingReceived"):
            self._served.cancelled += 1
        for one in self._http.handle_event(event):
            if isinstance(one, HeadersReceived):
                headers = {name.decode(): value.decode() for name, value in one.headers}
                self._asked[one.stream_id] = headers[":method"], headers[":path"]
            elif isinstance(one, DataReceived):
                self._lengths[one.stream_id] += len(one.data)
            else:
                continue
            if one.stream_ended:
                self._asked_whole(one.stream_id)
        self.transmit()

    def _asked_whole(self, stream: int) -> None:
        served, (method, path) = self._served, self._asked.pop(stream)
        self._count += 1
        if self._count == served.leaves_after:
            frame = encode_frame(FrameType.GOAWAY, encode_uint_var(stream))
            self._quic.send_stream_data(self._http._local_control_stream_id, frame)
            return
        if served.leaves_after is not None and self._count > served.leaves_after:
            return
        served.requests[f"{method} {path}"] += 1
        if self._count == served.closes_after:
            self._quic.close(error_code=ErrorCode.H3_INTERNAL_ERROR)
        elif path == "/abort":
            self._quic.reset_stream(stream, ErrorCode.H3_INTERNAL_ERROR)
        elif path == "/reject" and self._count % 2:
            self._quic.reset_stream(stream, ErrorCode.H3_REQUEST_REJECTED)
        elif path == "/slow":
            asyncio.get_running_loop().call_later(SLOW_S, self._answer, stream, 200, b"slow", True)
        elif path == "/cut":
            self._http.send_headers(stream, [(b":status", b"200")])
            self._quic.send_stream_data(stream, b"\x00\x09only", end_stream=True)
        elif path == "/method":
            length = self._lengths.pop(stream, 0)
            extra = [(b"x-method", method.encode()), (b"x-length", str(length).encode())]
            self._answer(stream, 200, b"", False, extra)
        elif path != "/silent":
            body = _BODIES.get(path.partition("?")[0], b"")
            self._answer(stream, 503 if path == "/refuse" else 200, b"" if method == "HEAD" else body, False)

    def _answer(
        self,
        stream: int,
        status: int,
        body: bytes,
        later: bool,
        extra: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        head = [(b":status", str(status).encode()), (b"content-length", str(len(body)).encode())]
        self._http.send_headers(stream, [*head, *(extra or [])], end_stream=not body)
        if body:
            self._http.send_data(stream, body, end_stream=True)
        if later:
            self.transmit()
