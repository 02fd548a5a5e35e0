"""Tell the sources of advice apart: connection strings, logs and stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uncork.errors import StoreError, UncorkError, UsageError
from uncork.profile.objects.address import is_object_address
from uncork.store.layout import find_run


@dataclass(frozen=True, slots=True)
class AdviceSources:
    """Folders of stored runs, logs to read, and a server to watch: a connection string, or None for none.

    `logs` are files, globs and addresses. An empty connection string is the server of the PG* variables.
    """

    folders: tuple[Path, ...]
    logs: tuple[str, ...]
    server: str | None


def tell_apart(root: Path, sources: Sequence[str], *, connects: bool = False) -> AdviceSources:
    """Return what each source is; without sources, the server of the PG* variables is watched.

    `connects` says that other options name a server, which is watched beside stored runs and logs.
    Raises UsageError if a source is nothing that exists, or there are two servers.
    """
    folders: list[Path] = []
    logs: list[str] = []
    server: str | None = None
    for source in sources:
        if is_object_address(source):
            logs.append(source)
            continue
        if "://" in source or "=" in source:
            if server is not None:
                raise UsageError("advise watches one server; give one connection string")
            server = source
            continue
        try:
            folders.append(find_run(root, source))
        except (StoreError, UsageError) as error:
            if not _is_log(source):
                raise UsageError(_unknown(source, error)) from error
            logs.append(source)
    if server is None and (connects or not sources):
        server = ""
    return AdviceSources(tuple(folders), tuple(logs), server)


def _is_log(source: str) -> bool:
    return source == "-" or Path(source).exists() or any(sign in source for sign in "*?[")


def _unknown(source: str, error: UncorkError) -> str:
    return (
        f"{source}: there is no such log file or run ({error}); to watch a database of this name, write "
        f'"dbname={source}"'
    )
