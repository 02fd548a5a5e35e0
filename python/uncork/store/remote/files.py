"""The local files of a mirrored run: their facts, and copies of files at the address."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from uncork.errors import StoreError
from uncork.store.layout import Manifest
from uncork.store.remote.mirrors import ABSENT

_OF_THIS_MACHINE: Final = frozenset({"figures.json"})
"""Cached files in a run's folder that are not sent, because each machine creates its own."""
_AN_HOUR_S: Final = 3600.0


def run_facts(run: Path | str) -> tuple[int, int] | None:
    """Return the size and time of a run's manifest; None if there is none."""
    try:
        status = os.stat(f"{run}/manifest.json")  # noqa: PTH116 -- Path is slow for ten thousand runs
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def files_of(run: Path) -> dict[str, tuple[int, str]]:
    """Return the files of a run to send, each with its size and digest."""
    files = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))
        own = name in _OF_THIS_MACHINE or name.startswith("tag.")
        if path.is_file() and not hidden and not own:
            files[name] = file_facts(path)
    return files


def file_facts(path: Path) -> tuple[int, str]:
    """Return the size of a file, and its digest."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
    return path.stat().st_size, digest


def has_file(run: Path, name: str, facts: tuple[int, str]) -> bool:
    """Return whether a run has a file with these facts. Tables are never rewritten, so compare sizes."""
    path = run / name
    try:
        return path.stat().st_size == facts[0] and (path.suffix == ".parquet" or file_facts(path) == facts)
    except OSError:
        return False


def put_copy(path: Path, content: bytes) -> None:
    """Write a copy of a file at the address, atomically but without waiting for the disk.

    Raises:
        StoreError: if the copy cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise StoreError(f"cannot write {path}: {error.strerror}") from error


def put_manifest(run: Path, manifest: Manifest, *, absent: bool) -> None:
    """Write a run's manifest; `absent` means that some of its files have not been fetched yet.

    A new folder is dated an hour back: nothing else changes it now, so the list of runs need not treat it as
    one that may still change.

    Raises:
        StoreError: if the manifest cannot be written.
    """
    new = not run.exists()
    if absent:
        put_copy(run / ABSENT, b"")
    put_copy(run / "manifest.json", (json.dumps(asdict(manifest), indent=2) + "\n").encode())
    if new:
        earlier = time.time() - _AN_HOUR_S
        with contextlib.suppress(OSError):
            os.utime(run, (earlier, earlier))


def bring_tags(run: Path, before: Iterable[str], tags: Iterable[str]) -> None:
    """Update a run's local tags from the earlier tags at the address to the current ones."""
    with contextlib.suppress(OSError):
        for tag in set(before) - set(tags):
            (run / f"tag.{tag}").unlink(missing_ok=True)
        for tag in set(tags) - set(before):
            (run / f"tag.{tag}").touch()


def vanish(run: Path) -> None:
    """Delete the copy of a run that is no longer at the address; it disappears from lists at once."""
    aside = run.with_name(f".pruned-{secrets.token_hex(4)}-{run.name}")
    with contextlib.suppress(OSError):
        run.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
