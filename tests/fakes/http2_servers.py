"""The server's half of HTTP/2, frame by frame: for tests of what a client makes of servers that err."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from hpack import Decoder, Encoder
from hyperframe.frame import DataFrame, Frame, HeadersFrame, PingFrame, SettingsFrame

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FLAGS = ("END_HEADERS", "END_STREAM")


class Peer:
    """One connection, as its server has it. It greets, answers pings, and notes what it was told."""

    def __init__(self, connection: socket.socket, settings: Mapping[int, int] | None = None) -> None:
        self.connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder = Encoder()
        self.decoder = Decoder()
        self.acknowledged = 0
        """How many of our settings the client has acknowledged."""
        self.bodies: dict[int, int] = {}
        """Bytes of bodies that came, by stream."""
        self.open: set[int] = set()
        """Streams with a request that was not answered yet."""
        self.cancelled: list[int] = []
        self._received = b""
        if self._take(len(_PREFACE)) != _PREFACE:
            raise ConnectionError("the client does not speak HTTP/2")
        self.send(SettingsFrame(0, settings=dict(settings or {})))

    def send(self, *frames: Frame | bytes) -> None:
        """Send frames, or any bytes, at once."""
        parts = (frame if isinstance(frame, bytes) else frame.serialize() for frame in frames)
        self.connection.sendall(b"".join(parts))

    def frames(self) -> Iterator[Frame]:
        """Yield what the client sends, until it goes away; settings and pings are acknowledged."""
        while True:
            try:
                head = self._take(9)
                frame, length = Frame.parse_frame_header(memoryview(head))
                frame.parse_body(memoryview(self._take(length)))
            except ConnectionError:
                return
            if isinstance(frame, SettingsFrame):
                if "ACK" in frame.flags:
                    self.acknowledged += 1
                else:
                    self.send(SettingsFrame(0, flags=["ACK"]))
            elif isinstance(frame, PingFrame):
                self.send(PingFrame(0, frame.opaque_data, flags=["ACK"]))
            yield frame

    def requests(self) -> Iterator[int]:
        """Yield the stream of each request that is whole."""
        for frame in self.frames():
            if isinstance(frame, HeadersFrame):
                self.decoder.decode(frame.data)
                self.open.add(frame.stream_id)
                self.bodies[frame.stream_id] = 0
            elif isinstance(frame, DataFrame):
                self.bodies[frame.stream_id] += len(frame.data)
            elif frame.type == 3:
                self.open.discard(frame.stream_id)
                self.cancelled.append(frame.stream_id)
            if isinstance(frame, HeadersFrame | DataFrame) and "END_STREAM" in frame.flags:
                yield frame.stream_id

    def head(
        self, stream: int, fields: Sequence[tuple[str, str]] = ((":status", "200"),), *, ends: bool = False
    ) -> HeadersFrame:
        """Return the head of an answer."""
        return HeadersFrame(stream, self.encoder.encode(list(fields)), flags=FLAGS[: 1 + ends])

    def answer(self, stream: int, body: bytes = b"ok") -> None:
        """Answer a request, and forget it."""
        self.open.discard(stream)
        self.send(self.head(stream), DataFrame(stream, body, flags=["END_STREAM"]))

    def _take(self, length: int) -> bytes:
        while len(self._received) < length:
            part = self.connection.recv(65536)
            if not part:
                raise ConnectionError("the client went away")
            self._received += part
        taken, self._received = self._received[:length], self._received[length:]
        return taken


def answer_two(connection: socket.socket, count: int = 10**9) -> Peer:
    """Answer so many requests of HTTP/2 as they should be; return the connection."""
    peer = Peer(connection)
    with suppress(OSError):
        for number, stream in enumerate(peer.requests(), 1):
            peer.answer(stream)
            if number == count:
                break
    return peer
