"""Send requests over HTTP/2, with prior knowledge or TLS, to services that do not support HTTP/1.1."""

from __future__ import annotations

import importlib
import socket
import time
from typing import Any

from uncork.errors import VersionError
from uncork.model.extras import install_extra
from uncork.model.http_trial import AskedRequest
from uncork.model.service import Served
from uncork.model.services.tls import own_service_tls

_WINDOW = 1 << 30
_OWN = ("connection", "host", "keep-alive", "transfer-encoding", "upgrade")
"""Headers that HTTP/2 replaces or does not allow."""


class Http2Connection:
    """One connection that sends one request at a time.

    Raises:
        VersionError: if the package h2 is not installed.
    """

    def __init__(self, served: Served, *, timeout_s: float) -> None:
        try:
            self._events: Any = importlib.import_module("h2.events")
            connection: Any = importlib.import_module("h2.connection")
        except ImportError:
            raise VersionError(
                f"service {served.name} speaks only HTTP/2, and uncork needs the package h2 to compare its "
                f"answers: {install_extra('services')}"
            ) from None
        self._authority = f"{served.host}:{served.port}"
        self._scheme = "https" if served.tls else "http"
        self._socket = socket.create_connection((served.host, served.port), timeout=timeout_s)
        if served.tls:
            self._socket = own_service_tls("h2").wrap_socket(self._socket)
        self._h2 = connection.H2Connection()
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW)
        self._socket.sendall(self._h2.data_to_send())

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def answer(self, request: AskedRequest, path: str, deadline: float) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the response.

        Raises:
            OSError: if there is no response; TimeoutError if the deadline has passed.
        """
        stream = self._h2.get_next_available_stream_id()
        head = [
            (":method", request.method),
            (":scheme", self._scheme),
            (":authority", self._authority),
            (":path", path),
            *((name.lower(), text) for name, text in request.headers if name.lower() not in _OWN),
        ]
        self._h2.send_headers(stream, head, end_stream=request.body is None)
        if request.body is not None:
            self._send(stream, request.body.encode(), deadline)
        self._h2.increment_flow_control_window(_WINDOW, stream_id=stream)
        self._socket.sendall(self._h2.data_to_send())
        status, body = 0, b""
        while True:
            for event in self._received(deadline):
                if getattr(event, "stream_id", stream) != stream:
                    continue
                if isinstance(event, self._events.ResponseReceived):
                    status = int(dict(event.headers)[b":status"])
                elif isinstance(event, self._events.DataReceived):
                    body += event.data
                elif isinstance(event, self._events.StreamEnded):
                    return status, body
                elif isinstance(event, self._events.StreamReset | self._events.ConnectionTerminated):
                    raise ConnectionResetError(f"HTTP/2 error {event.error_code}")

    def _send(self, stream: int, body: bytes, deadline: float) -> None:
        while body:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
            if room:
                self._h2.send_data(stream, body[:room])
                body = body[room:]
            self._socket.sendall(self._h2.data_to_send())
            if body and not room:
                self._received(deadline)
        self._h2.end_stream(stream)

    def _received(self, deadline: float) -> list[Any]:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("closed without an answer")
        events: list[Any] = self._h2.receive_data(data)
        self._socket.sendall(self._h2.data_to_send())
        return events
