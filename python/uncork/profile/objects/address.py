"""Parse the address of logs in an object store, on a web server or on another machine. Pure."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from uncork.errors import UsageError
from uncork.model.records import Record

Backend = Literal["s3", "gs", "az", "http", "ssh"]

_BACKENDS: Final[dict[str, Backend]] = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "az"),
    **dict.fromkeys(("http", "https"), "http"),
    "ssh": "ssh",
}
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BUCKET: Final = re.compile(r"[A-Za-z0-9$][A-Za-z0-9._$-]*")
_SSH: Final = re.compile(
    r"(?:(?P<user>\w[\w.+$-]*)@)?(?P<host>\w[\w.-]*|\[[0-9a-fA-F:.]+\])(?::(?P<port>[0-9]{1,5}))?"
)
_HOST_OF_AZURE: Final = re.compile(r"([^@/]+)@([a-z0-9]+)\.(?:dfs|blob)\.core\.windows\.net", re.IGNORECASE)


class ObjectAddress(Record):
    """The address of logs: the name of one object, a prefix, or a glob.

    `bucket` is a bucket or a container; for a web server, scheme and host; for ssh, user, host and port.
    `key` follows it, decoded (not for ssh). `query` and `login` are secrets of a web address: they are
    neither shown nor stored, and `shown` is without them.
    """

    backend: Backend
    bucket: str
    key: str
    shown: str
    account: str = ""
    query: str = field(default="", repr=False)
    login: str = field(default="", repr=False)

    def name(self, key: str) -> str:
        """Return how reports name an object of the same bucket."""
        return f"{self.shown.removesuffix(self.key)}{key}" if self.backend != "http" else self.shown


class LogObject(Record):
    """An object that holds a log, as it was when it was found.

    `modified_s` is when it was last written, in seconds since 1970. `etag` changes with its content; it is
    None if the server does not send any.
    """

    name: str
    address: ObjectAddress
    key: str
    size: int
    modified_s: int
    etag: str | None


def is_object_address(text: str) -> bool:
    """Return whether a text is an address of objects: s3://, gs://, az://, https://, ssh:// and synonyms."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and match[1].lower() in _BACKENDS


def parse_object_address(text: str) -> ObjectAddress:
    """Parse the address of logs.

    Raises UsageError if the scheme is unknown, or the address names no bucket.
    """
    match = _ADDRESS.fullmatch(text.strip())
    backend = _BACKENDS.get(match[1].lower()) if match else None
    if match is None or backend is None:
        scheme = match[1] if match else text
        raise UsageError(
            f'unknown scheme "{scheme}://" of a log; use s3://, gs://, az://, https:// or ssh://, or name '
            "a file"
        )
    if backend == "http":
        return _web_address(text.strip())
    if backend == "ssh":
        return _ssh_address(match[2])
    rest = match[2]
    bucket, _, key = rest.partition("/")
    account = ""
    if azure := _HOST_OF_AZURE.fullmatch(bucket) if backend == "az" else None:
        bucket, account = azure[1], azure[2]
    if not _BUCKET.fullmatch(bucket):
        shown = f"{match[1]}://{rest.rpartition('@')[2]}"
        raise UsageError(f"{shown} names no bucket; write {match[1]}://BUCKET/PREFIX")
    return ObjectAddress(backend, bucket, key, f"{match[1].lower()}://{rest}", account)


def _web_address(text: str) -> ObjectAddress:
    parts = urlsplit(text)
    login, _, host = parts.netloc.rpartition("@")
    shown = f"{parts.scheme.lower()}://{host}{parts.path}"
    key = unquote(parts.path).lstrip("/")
    if not host or not key or key.endswith("/"):
        raise UsageError(f"{shown}: a web server lists no files; name each log by its address")
    bucket = f"{parts.scheme.lower()}://{host}"
    return ObjectAddress("http", bucket, key, shown, query=parts.query, login=unquote(login))


def ssh_words(address: ObjectAddress) -> list[str]:
    """Return the arguments of ssh that name the machine of an address."""
    match = _SSH.fullmatch(address.bucket)
    assert match is not None  # noqa: S101 -- parsed before
    port = ["-p", match["port"]] if match["port"] else []
    user = ["-l", match["user"]] if match["user"] else []
    return [*port, *user, "--", match["host"].strip("[]")]


def _ssh_address(rest: str) -> ObjectAddress:
    bucket, slash, key = rest.partition("/")
    user, _, host = bucket.rpartition("@")
    if ":" in user:
        raise UsageError(f"ssh://{user.partition(':')[0]}@{host}/{key}: ssh takes no password; use a key")
    if not _SSH.fullmatch(bucket) or not slash:
        raise UsageError(
            f"ssh://{rest} names no file; write ssh://USER@HOST:PORT/PATH, with an absolute path"
        )
    return ObjectAddress("ssh", bucket, key, f"ssh://{rest}")
