"""Addresses of stores: what is a folder, what lies behind a scheme, and what of it may be shown."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from uncork.errors import UsageError

__all__ = ["Address", "parse_address"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_PASSWORD: Final = re.compile(r"^([^:/@]*):.*@", re.DOTALL)
"""What stands between a user and a host; to the last @, as a password may hold any character."""
_FOLDERS: Final = ("file", "local")
_READ_ONLY: Final = ("http", "https")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "FSSPEC_S3_ENDPOINT_URL")
_SHORT: Final = 60


@dataclass(frozen=True, slots=True)
class Address:
    """A store behind a scheme, such as ``s3://bucket/prefix``.

    `text` is what was given, password and all, and is for the backend alone; `shown` is for people, and is
    all that is ever written. `key` names a folder of this machine for it: another for each service that the
    same words may mean.
    """

    text: str = field(repr=False)
    scheme: str
    shown: str
    key: str


def parse_address(text: str, environment: Mapping[str, str]) -> Path | Address:
    """Read what was given as a place for runs: a folder, or an address. Pure.

    Raises:
        UsageError: if it is an address that can be no store.
    """
    match = _SCHEME.fullmatch(text.strip())
    if "::" in text and "://" in text:
        hidden = _PASSWORD.sub(r"\1:***@", text)
        raise UsageError(f"{hidden}: addresses in one another are not understood; give the last of them")
    if match is None:
        return Path(text)
    scheme, rest = match[1].lower(), match[2].rstrip("/")
    shown = f"{scheme}://" + _PASSWORD.sub(r"\1:***@", rest)
    if scheme in _FOLDERS:
        if not rest.startswith("/"):
            raise UsageError(f"{shown}: {scheme}:// is followed by a whole path, as in {scheme}:///mnt/runs")
        return Path(rest)
    if scheme in _READ_ONLY:
        raise UsageError(f"{shown}: nothing can be written by {scheme}; s3://, gs://, az:// and sftp:// can")
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
