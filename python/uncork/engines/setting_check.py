"""Check the names and values of server settings without starting a server."""

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
from uncork.engines.settings import setting_text
from uncork.spawn.child import run

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

    `lacking` is the reason why an extension of a variant is not available; `refused` has the variant, the
    setting and the reason of each setting that the server refuses.
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
