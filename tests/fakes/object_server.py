"""A server of objects that speaks S3, Google's, Azure's and plain HTTP, and misbehaves on purpose."""

import hashlib
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

Fault = Literal["429", "503", "500", "403", "cut", "reset", "short", "change", "delete"]

KEY = "somebody"


@dataclass
class Stored:
    content: bytes
    modified: datetime = datetime(2026, 11, 27, 12, tzinfo=UTC)

    @property
    def etag(self) -> str:
        return hashlib.md5(self.content).hexdigest()


@dataclass
class ObjectServer:
    """Objects by bucket and key; `faults` happen once each, by key and the beginning of the range.

    Those of lists have an empty key, and the number of the list. It does not answer for
    the ranges of a `silent` key from the given byte on.
    """

    port: int = 0
    objects: dict[tuple[str, str], Stored] = field(default_factory=dict)
    buckets: set[str] = field(default_factory=lambda: {"logs"})
    faults: dict[tuple[str, int], list[Fault]] = field(default_factory=dict)
    replacement: bytes = b""
    ranges: list[tuple[str, int, int]] = field(default_factory=list)
    heads: int = 0
    lists: int = 0
    page: int = 1000
    sends_ranges: bool = True
    silent: dict[str, int] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def put(self, key: str, content: bytes, modified: datetime | None = None) -> None:
        stored = Stored(content) if modified is None else Stored(content, modified)
        self.objects["logs", key] = stored

    @property
    def s3(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": "a-secret-of-nobody",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
        }

    @property
    def gs(self) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": f"127.0.0.1:{self.port}"}

    @property
    def az(self) -> dict[str, str]:
        key = "c2VjcmV0"
        endpoint = f"http://127.0.0.1:{self.port}"
        text = f"AccountName=shop;AccountKey={key};BlobEndpoint={endpoint}"
        return {"AZURE_STORAGE_CONNECTION_STRING": text}


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    state = ObjectServer()

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # clients leave early
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_state: ObjectServer

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self.server_state.heads += 1
        self._object(head=True)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if "list-type" in query or query.get("comp") == "list":
            self._list(parts.path.strip("/"), query)
        else:
            self._object(head=False)

    def _object(self, *, head: bool) -> None:
        state = self.server_state
        bucket, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        stored = state.objects.get((bucket, key))
        if not self._is_known():
            self._error(403, "InvalidAccessKeyId")
        elif bucket not in state.buckets or stored is None:
            self._error(404, "NoSuchKey" if bucket in state.buckets else "NoSuchBucket")
        else:
            self._answer(bucket, key, stored, head=head)

    def _answer(self, bucket: str, key: str, stored: Stored, *, head: bool) -> None:
        state = self.server_state
        wanted = (
            re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", "")) if state.sends_ranges else None
        )
        begin, end = 0, len(stored.content)
        if wanted:
            begin, end = int(wanted[1]), min(end, int(wanted[2]) + 1)
        fault = None
        if not head:
            faults = state.faults.get((key, begin), [])
            fault = faults.pop(0) if faults else None
            state.ranges.append((key, begin, end))
            if begin >= state.silent.get(key, end):
                state.ended.wait(60)
        if fault == "change":
            stored = state.objects[bucket, key] = Stored(state.replacement, datetime.now(UTC))
        if fault == "delete":
            del state.objects[bucket, key]
            self._error(404, "NoSuchKey")
        elif fault in ("429", "503", "500", "403"):
            self._error(int(fault), "SlowDown")
        elif self.headers.get("if-match", f'"{stored.etag}"') != f'"{stored.etag}"':
            self._error(412, "PreconditionFailed")
        else:
            self._content(stored, begin, end, fault, partial=bool(wanted), head=head)

    def _content(
        self, stored: Stored, begin: int, end: int, fault: Fault | None, *, partial: bool, head: bool
    ) -> None:
        content = stored.content[begin:end]
        if fault == "short":
            content = content[: len(content) // 2]
        self.send_response(206 if partial else 200)
        if partial:
            last = begin + len(content) - 1
            self.send_header("content-range", f"bytes {begin}-{last}/{len(stored.content)}")
        self.send_header("etag", f'"{stored.etag}"')
        self.send_header("last-modified", format_datetime(stored.modified, usegmt=True))
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if fault in ("cut", "reset"):
            self.close_connection = True
            content = content[: len(content) // 2]
        if not head:
            self.wfile.write(content)
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _is_known(self) -> bool:
        signature = self.headers.get("authorization", "")
        return "Credential=" not in signature or KEY in signature

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        state = self.server_state
        azure = "comp" in query
        if bucket not in state.buckets:
            self._error(404, "ContainerNotFound" if azure else "NoSuchBucket")
            return
        if not self._is_known():
            self._error(403, "InvalidAccessKeyId")
            return
        faults = state.faults.get(("", state.lists), [])
        state.lists += 1
        if faults:
            self._error(int(faults.pop(0)), "SlowDown")
            return
        after = query.get("marker") or query.get("continuation-token") or query.get("start-after") or ""
        keys = sorted(
            key
            for of, key in state.objects
            if of == bucket and key.startswith(query.get("prefix", "")) and key > after
        )
        page, rest = keys[: state.page], keys[state.page :]
        items = [(key, state.objects[bucket, key]) for key in page]
        follows = page[-1] if rest else ""
        body = _azure_list(items, follows) if azure else _s3_list(items, follows)
        self._send(200, body)

    def _error(self, status: int, code: str) -> None:
        self._send(status, f"<Error><Code>{code}</Code></Error>" if code else "")

    def _send(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/xml")
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


def _s3_list(items: list[tuple[str, Stored]], follows: str) -> str:
    rows = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>{one.modified:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
        f"<ETag>&quot;{one.etag}&quot;</ETag><Size>{len(one.content)}</Size></Contents>"
        for key, one in items
    )
    token = f"<NextContinuationToken>{escape(follows)}</NextContinuationToken>" if follows else ""
    return (
        f"<ListBucketResult><IsTruncated>{'true' if follows else 'false'}</IsTruncated>{rows}{token}"
        "</ListBucketResult>"
    )


def _azure_list(items: list[tuple[str, Stored]], follows: str) -> str:
    rows = "".join(
        f"<Blob><Name>{escape(key)}</Name><Properties>"
        f"<Last-Modified>{format_datetime(one.modified, usegmt=True)}</Last-Modified><Etag>{one.etag}</Etag>"
        f"<Content-Length>{len(one.content)}</Content-Length><Content-Type>text/plain</Content-Type>"
        "<BlobType>BlockBlob</BlobType></Properties></Blob>"
        for key, one in items
    )
    return (
        f"<EnumerationResults><Blobs>{rows}</Blobs><NextMarker>{escape(follows)}</NextMarker>"
        "</EnumerationResults>"
    )
