"""The server on which changes are tried: a copy of the source on a server of its own, or a given database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from shutil import disk_usage
from types import MappingProxyType, TracebackType
from typing import Final, Self

from uncork.engines.copying.chosen_settings import start_settings
from uncork.engines.copying.database import copy_source
from uncork.engines.copying.scratch import count_statements
from uncork.engines.database_copy import read_source
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.places import servers_folder
from uncork.engines.planner_statistics import RESTORES
from uncork.errors import SetupError, UncorkError
from uncork.experiment.cure.setups import CopyKeeps
from uncork.model.database.copy import CopyFacts, NotCopied
from uncork.model.units import format_bytes
from uncork.workbench.signals import uninterrupted

_FULL: Final = "of the copy's server became full"
_NAME: Final = "uncork_copy"
_LARGEST_BUFFERS: Final = 4 << 30
"""Shared buffers of the copy's server at most, in bytes: its machine does other work too."""
_BUFFER: Final = 8192


def expected_keeps(source: str, given: str | None) -> CopyKeeps:
    """Return what a copy will have as the source has it; statistics are only promised until it is made.

    Raises:
        ConnectError: if the source cannot be reached.
    """
    if given is not None:
        return CopyKeeps(statistics=True, pages=True)
    return CopyKeeps(statistics=read_source(source).major >= RESTORES, pages=False)


def databases_at_once(arms: int) -> int:
    """Return how many copies of the data exist while an experiment runs: for `arms` changes and a baseline.

    The copy itself, the template with which all variants begin, a template for each variant, and a live
    database for each variant and for the baseline's second run.
    """
    return 2 + (arms + 1) + (arms + 2)


class CopiedDatabase:
    """A copy of a database, from `make` until the end of its context, which removes it.

    Args:
        source: connection string of the database to copy.
        given: connection string of a database that is a copy already; None to make one. It is not removed.
        binaries: a folder with `initdb` and `postgres` of another version than the embedded one.
        settings: settings of the copy's server besides those of the source.
    """

    def __init__(
        self,
        source: str,
        given: str | None,
        binaries: Path | None,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._source, self._given, self._binaries = source, given, binaries
        self._more = settings
        self._server: EmbeddedServer | None = None
        self.facts: CopyFacts | None = None
        self.major = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        try:
            if isinstance(error, UncorkError):
                self.check_disk(error)
        finally:
            with uninterrupted():
                self._server.stop()

    def check_disk(self, error: UncorkError) -> None:
        """Raise the reason for an error if it is that the disk is full, and the error does not say so.

        Raises:
            SetupError: then.
        """
        if self._server is None or not self._server.disk_is_full or _FULL in str(error):
            return
        folder = servers_folder()
        raise SetupError(
            f"the disk {_FULL}: {format_bytes(disk_usage(folder).free)} are left in {folder}; free some "
            "space, set UNCORK_SERVERS to a folder on a larger disk, or copy a sample of the rows with --disk"
        ) from error

    @property
    def conninfo(self) -> str:
        """The connection string of the copy."""
        if self._given is not None:
            return self._given
        if self._server is None:
            raise SetupError("the copy was not made")
        return self._server.conninfo(_NAME)

    def make(self, *, max_read: int, disk: int, told: Callable[[str], None]) -> CopyFacts:
        """Make the copy, or look at the given one; return what it holds.

        `max_read` is how many bytes a second to read of the source at most, `disk` how many bytes the copy's
        tables may take.

        Raises:
            ConnectError: if a server cannot be reached.
            SetupError: if the copy cannot be made.
        """
        if self._given is not None:
            found = read_source(self._given)
            self.major = found.major
            self.facts = CopyFacts(
                "a given database", (), (), found.bytes, 0.0, sampled=False, source_statistics=True
            )
            return self.facts
        source = read_source(self._source)
        binaries = self._binaries or _binaries_of(source.major)
        self._server = EmbeddedServer(
            {**_settings(start_settings(self._source)), **self._more}, binaries=binaries
        )
        self._server.start()
        self.major = count_statements(self._server.conninfo())
        facts = copy_source(self._source, self.conninfo, max_read=max_read, disk=disk, told=told)
        self.facts = _with_version(facts, source.major, self.major)
        return self.facts


def _settings(wanted: Mapping[str, str]) -> dict[str, object]:
    """Return the settings of the copy's server: those of the source that need a start."""
    found: dict[str, object] = dict(wanted)
    if _bytes(str(found.get("shared_buffers", "0"))) > _LARGEST_BUFFERS:
        found["shared_buffers"] = f"{_LARGEST_BUFFERS >> 20}MB"
    return found


def _bytes(setting: str) -> int:
    """Return the bytes of a size as SHOW prints it: ``128MB``; a bare number counts blocks."""
    units = {"kB": 10, "MB": 20, "GB": 30, "TB": 40}
    for unit, shift in units.items():
        if setting.endswith(unit):
            return int(setting.removesuffix(unit)) << shift
    return int(setting) * _BUFFER if setting.isdigit() else 0


def _binaries_of(major: int) -> Path | None:
    """Return a folder with the server's programs of this version, where packages install them, or None."""
    for parent in ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt"):
        for name in (str(major), f"postgresql@{major}"):
            folder = Path(parent) / name / "bin"
            if (folder / "initdb").is_file() and (folder / "postgres").is_file():
                return folder
    return None


def _with_version(facts: CopyFacts, source: int, copy: int) -> CopyFacts:
    if source == copy:
        return facts
    other = NotCopied(
        f"version {source} of the server",
        f"only PostgreSQL {copy} is here",
        f"statements are planned by PostgreSQL {copy}; those whose plan differs are not judged. Name a "
        f"folder with the programs of PostgreSQL {source} with --pg-bin",
    )
    return replace(facts, missing=(*facts.missing, other))
