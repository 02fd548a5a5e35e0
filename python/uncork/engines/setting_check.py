"""Settings of servers: their defaults, and which names, values and extensions a server accepts."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from uncork import _native
from uncork.engines.places import cache_folder
from uncork.spawn.child import run

DEFAULT_SETTINGS: dict[str, object] = {
    # A trial starts from a known state: vacuumed and checkpointed. Background work that starts at
    # random times is off; an experiment about it can turn it on again.
    "autovacuum": False,
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
    # Exact costs per operation and per statement.
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "pg_stat_statements.save": False,
    "track_io_timing": True,
    # Enough for the data of all arms at once.
    "shared_buffers": "512MB",
    "max_connections": 200,
    # Data is restored by copying files, or by cloning them if the file system can.
    "wal_compression": False,
}


def configuration_text(settings: Mapping[str, object], *, port: int, socket_folder: Path) -> str:
    """Return the text of postgresql.conf. An experiment cannot change the address and the socket."""
    fixed = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": str(socket_folder),
        "unix_socket_permissions": "0700",
    }
    return "".join(f"{name} = {_literal(value)}\n" for name, value in {**settings, **fixed}.items())


def setting_text(value: object) -> str:
    """Return a value of an experiment file as PostgreSQL writes it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


_FATAL: Final = re.compile(r"(?:FATAL|HINT):\s+(.*)")
_CONTEXTS_OF_A_SERVER: Final = frozenset({"postmaster", "sighup", "internal"})
_SECONDS: Final = 20


def binaries_here(chosen: Path | None) -> Path | None:
    """Return the folder of the binaries that a run would start; None if it must be downloaded first."""
    if chosen is None:
        facts = json.loads(_native.build_info())
        folder = cache_folder() / f"postgresql-{facts['postgresql_version']}-{facts['target']}" / "bin"
    else:
        folder = chosen
    return folder if (folder / "postgres").is_file() else None


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """What an existing server says about an experiment, by variant.

    `lacking` is the reason why an extension of a variant is not available; `refused` has the
    variant, the setting and the reason of each setting that the server refuses.
    """

    version: int
    lacking: Mapping[str, str]
    refused: Sequence[tuple[str, str, str]]


class SettingChecker:
    """Asks a `postgres` program, which checks its options before it looks for any data."""

    def __init__(self, binaries: Path) -> None:
        self._program = str(binaries / "postgres")
        described = self._ask("--describe-config")
        rows = (line.split("\t") for line in described[1].splitlines())
        self._contexts = {row[0]: row[1] for row in rows if len(row) > 2}

    def major(self) -> int | None:
        """Return the major version of PostgreSQL; None if the program does not tell it."""
        found = re.search(r"\d+", self._ask("--version")[1])
        return None if found is None else int(found[0])

    def refused(
        self, settings: Mapping[str, object], *, of_database: Collection[str] = ()
    ) -> Iterator[tuple[str, str]]:
        """Yield the name of each setting that the server would refuse, and the reason.

        Settings in `of_database` are refused, too, if only the whole server can have them.
        """
        if not settings:
            return
        if self._reason(settings) is not None:
            for name, value in settings.items():
                reason = self._reason({name: value})
                if reason is not None:
                    yield name, reason
        for name in of_database:
            if self._contexts.get(name.lower()) in _CONTEXTS_OF_A_SERVER:
                yield name, "cannot differ between variants; move it to [server.settings]"

    def _reason(self, settings: Mapping[str, object]) -> str | None:
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={setting_text(value)}")]
        status, _, errors = self._ask("-C", "server_version", *words)
        found = [text.rstrip(".") for text in _FATAL.findall(errors)]
        return ". ".join(found) if status == 1 and found else None

    def _ask(self, *words: str) -> tuple[int, str, str]:
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = run(
                [self._program, *words],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                env=environment,
                cwd="/",
            )
            return done.returncode, str(done.stdout), str(done.stderr)
        return 0, "", ""


def refused_by_server(
    control: psycopg.Connection, settings: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Yield the name of each setting that an existing server would refuse for a database, and the reason.

    Each is set for one transaction, which is rolled back.
    """
    for name, value in settings.items():
        try:
            with control.transaction(force_rollback=True):
                control.execute("SELECT set_config(%s, %s, true)", (name, setting_text(value)))
        except psycopg.Error as error:
            reason = error.diag.message_primary or str(error)
            hint = "" if error.diag.message_hint is None else f". {error.diag.message_hint.rstrip('.')}"
            if isinstance(error, psycopg.errors.CantChangeRuntimeParam):
                hint = "; without --dsn, uncork starts a server of its own for such a variant"
            yield name, reason + hint


# ---- extensions ----


LIBRARIES = {
    "citus": "citus",
    "pg_cron": "pg_cron",
    "pg_stat_statements": "pg_stat_statements",
    "pgaudit": "pgaudit",
    "timescaledb": "timescaledb",
}
"""Extensions that work only if the server loads their library at start, with the library's name."""


def extensions_lacking(control: psycopg.Connection, extensions: Sequence[str]) -> str | None:
    """Return which extension is not available on the server, and why; None if all are."""
    here = _available(control, extensions)
    loaded = _loaded(control)
    for name in extensions:
        if name not in here:
            return f"the extension {name} is not installed on the server"
        if LIBRARIES.get(name, name) not in loaded and name in LIBRARIES:
            return (
                f"the extension {name} is installed but not loaded: add {LIBRARIES[name]} to "
                "shared_preload_libraries, and restart the server"
            )
    return None


def libraries_to_load(control: psycopg.Connection, extensions: Sequence[str]) -> list[str]:
    """Return the libraries of available extensions that the server must load at start, but does not."""
    loaded = _loaded(control)
    here = _available(control, extensions)
    needed = (LIBRARIES[name] for name in extensions if name in LIBRARIES and name in here)
    return [library for library in dict.fromkeys(needed) if library not in loaded]


def _available(control: psycopg.Connection, extensions: Sequence[str]) -> set[str]:
    query = "SELECT name FROM pg_available_extensions WHERE name = ANY(%s)"
    return {str(name) for (name,) in control.execute(query, [list(extensions)]).fetchall()}


def _loaded(control: psycopg.Connection) -> set[str]:
    (text,) = control.execute("SELECT current_setting('shared_preload_libraries')").fetchone() or ("",)
    return {name.strip().strip('"') for name in str(text).split(",")}
