"""TLS to services that uncork has started itself: their certificates prove nothing, and are not verified."""

from __future__ import annotations

import ssl


def own_service_tls(*protocols: str) -> ssl.SSLContext:
    """Return a context that accepts any certificate, and offers these protocols (ALPN)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    return context


def speaks_only_http2(error: BaseException) -> bool:
    """Return whether a server refused TLS because the client offered HTTP/1.1 only."""
    return isinstance(error, ssl.SSLError) and error.reason in (
        "TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
        "NO_APPLICATION_PROTOCOL",
    )
