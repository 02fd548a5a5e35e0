"""Parse the address of a store: a local folder, or a scheme with a URL that is safe to show."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from uncork.errors import UsageError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_PASSWORD: Final = re.compile(r"^([^:/@]*):.*@", re.DOTALL)
"""The text between user and host, up to the last @, because a password may hold any character."""
_FOLDERS: Final = ("file", "local")
_READ_ONLY: Final = ("http", "https")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "FSSPEC_S3_ENDPOINT_URL")
_SHORT: Final = 60


@dataclass(frozen=True, slots=True)
class Address:
    """A store behind a scheme, such as ``s3://bucket/prefix``.

    `text` is the address as given, including a password, and is only for the backend. `shown` has
    no password, and is the only form that is ever written. `key` names the local folder for the
    address; it differs for services that use the same address.
    """

    text: str = field(repr=False)
    scheme: str
    shown: str
    key: str


def parse_address(text: str, environment: Mapping[str, str]) -> Path | Address:
    """Parse a place for runs: a folder or an address. Pure.

    Raises UsageError if the address cannot be a store.
    """
    match = _SCHEME.fullmatch(text.strip())
    if "::" in text and "://" in text:
        hidden = _PASSWORD.sub(r"\1:***@", text)
        raise UsageError(f"{hidden}: nested addresses are not supported; give the last of them")
    if match is None:
        return Path(text)
    scheme, rest = match[1].lower(), match[2].rstrip("/")
    shown = f"{scheme}://" + _PASSWORD.sub(r"\1:***@", rest)
    if scheme in _FOLDERS:
        if not rest.startswith("/"):
            raise UsageError(f"{shown}: {scheme}:// needs an absolute path, as in {scheme}:///mnt/runs")
        return Path(rest)
    if scheme in _READ_ONLY:
        raise UsageError(f"{shown}: cannot write to {scheme}://; use s3://, gs://, az:// or sftp://")
    if scheme != "memory" and not rest.split("/")[0].rpartition("@")[2]:
        raise UsageError(f"{shown} names no bucket or host; write {scheme}://BUCKET/PREFIX")
    endpoint = next((environment[name] for name in _ENDPOINTS if environment.get(name)), "")
    meant = f"{shown}\0{endpoint if scheme.startswith('s3') else ''}"
    word = re.sub(r"[^A-Za-z0-9.]+", "-", f"{scheme}-{rest.rpartition('@')[2]}").strip("-.")[:_SHORT]
    return Address(
        text=f"{match[1]}://{rest}",
        scheme=scheme,
        shown=shown,
        key=f"{word}-{hashlib.sha256(meant.encode()).hexdigest()[:8]}",
    )
