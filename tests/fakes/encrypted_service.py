"""A service for experiments that answers over HTTP/2 with TLS, and over HTTP/3, at ports of the same number.

It runs as a program of its own, beside its certificate (service.crt) and key (service.key).
"""

import asyncio
import os
import ssl

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded

KEYS = "service.crt", "service.key"
BODY = b'{"ok": true}'
HEAD = [(":status", "200"), ("content-type", "application/json"), ("content-length", str(len(BODY)))]


class Two(asyncio.Protocol):
    """One connection of HTTP/2."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the settings."""
        self._transport = transport
        self._http = H2Connection(H2Configuration(client_side=False))
        self._http.initiate_connection()
        transport.write(self._http.data_to_send())

    def data_received(self, data: bytes) -> None:
        """Answer each complete request."""
        for event in self._http.receive_data(data):
            if isinstance(event, StreamEnded):
                self._http.send_headers(event.stream_id, HEAD)
                self._http.send_data(event.stream_id, BODY, end_stream=True)
        self._transport.write(self._http.data_to_send())


class Three(QuicConnectionProtocol):
    """One connection of HTTP/3."""

    _http: H3Connection | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        """Answer each complete request."""
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        if self._http is None:
            return
        for one in self._http.handle_event(event):
            if isinstance(one, HeadersReceived | DataReceived) and one.stream_ended:
                head = [(name.encode(), text.encode()) for name, text in HEAD]
                self._http.send_headers(one.stream_id, head)
                self._http.send_data(one.stream_id, BODY, end_stream=True)
        self.transmit()


async def main() -> None:
    """Serve until the process is ended."""
    host, port = os.environ["HOST"], int(os.environ["PORT"])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*KEYS)
    tls.set_alpn_protocols(["h2"])
    await asyncio.get_running_loop().create_server(Two, host, port, ssl=tls)
    if "ONLY_TCP" not in os.environ:
        quic = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
        quic.load_cert_chain(*KEYS)
        await serve(host, port, configuration=quic, create_protocol=Three)
    await asyncio.Event().wait()


asyncio.run(main())
