"""Write an experiment about the service of a stored load: gather what is known, and hand it to the draft."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uncork.engines.conninfo import resolve
from uncork.engines.database_copy import SourceDatabase, dump_programs, read_source, version_of
from uncork.engines.services.inspection import is_here
from uncork.errors import ConnectError
from uncork.experiment.service_draft import DraftDatabase, ServiceDraft
from uncork.experiment.service_start import ServiceStart, file_paths, service_start
from uncork.model.services.program import HIDDEN, RunningProgram
from uncork.model.units import count_words, format_bytes
from uncork.store.layout import read_manifest
from uncork.store.loads import LoadReader
from uncork.store.run_documents import LoadedService, read_service

_NS_A_MINUTE: Final = 60 * 10**9
_LEAST_MINUTES: Final = 2
_MOST_MINUTES: Final = 10
_ROUNDS: Final = 5
_NAME: Final = 30
_LARGEST: Final = 65_536
"""Bytes of the largest file that is searched for a connection string."""


@dataclass(frozen=True, slots=True)
class DraftedService:
    """A draft, what it is about in a few words, and the options that `plan` and `run` need with its file."""

    draft: ServiceDraft
    about: str
    run_words: str


def is_service_load(folder: Path) -> bool:
    """Return whether a run is a load by HTTP. Raises StoreError."""
    return read_manifest(folder).kind == "load" and LoadReader(folder).plan()["driver"] == "http"


def service_draft_of(
    folder: Path,
    dsn: str | None,
    changes: Mapping[str, str],
    environments: Sequence[tuple[str, str]],
) -> DraftedService:
    """Return the draft of an experiment about the service of a load.

    Args:
        folder: the run of a load by HTTP.
        dsn: the database to copy, instead of the load's.
        changes: SQL of variants, by name.
        environments: variables and values; each is a variant.

    Raises:
        ConnectError, UsageError: if the connection string is invalid.
        StoreError: if the run is damaged.
    """
    manifest, plan = read_manifest(folder), LoadReader(folder).plan()
    loaded = read_service(folder) or LoadedService(None, None)
    http = plan["http"]
    conninfo = loaded.postgres if dsn is None else dsn
    database, words = (None, "") if conninfo is None else _database(conninfo)
    start = _start(loaded, plan, conninfo)
    about = (
        f"{count_words(len(plan['scripts']), 'kind')} of requests to {http['authority']}, "
        f"by {count_words(plan['clients'], 'connection')}"
    )
    origin = [
        f"Written by `uncork new --from {manifest.id}`: {about}. uncork starts the service for each variant, "
        "on a copy of its database, and sends it the requests of that load.",
        'Fill in each place marked with "FILL IN"; `uncork plan` lists the places that are left.',
    ]
    if http["tls"] is not None:
        origin.append(
            "The load used TLS. The requests of an experiment do not, so the service must accept that."
        )
    draft = ServiceDraft(
        name="service",
        question=f"What makes the service at {http['authority']} faster?",
        origin=origin,
        plan=plan,
        start=start if isinstance(start, ServiceStart) else None,
        unknown=start if isinstance(start, str) else "",
        database=database,
        changes=changes,
        environments={_variant(name, value): (name, value) for name, value in environments},
        budget=_budget(plan, 1 + len(changes) + len(environments)),
    )
    return DraftedService(draft, about, words)


def _start(loaded: LoadedService, plan: Mapping[str, Any], database: str | None) -> ServiceStart | str:
    host, port = plan["http"]["host"], plan["http"]["port"]
    if loaded.program is None:
        if is_here(host):
            return "the load stored no process that listened on its port, which may belong to another user"
        return f"the load was sent to {host}, and uncork sees only processes of its own machine"
    return service_start(loaded.program, port, database, _files(loaded.program))


def _files(program: RunningProgram) -> dict[str, str]:
    """Return the texts of the small files that a program's arguments and variables name."""
    found = {}
    for name in file_paths(program):
        path = Path(program.folder, name)
        with suppress(OSError, ValueError):
            if path.is_file() and path.stat().st_size <= _LARGEST:
                found[name] = path.read_text()
    return found


# ---- the database ----


def _database(conninfo: str) -> tuple[DraftDatabase, str]:
    """Return the database to copy, and the options of a run that can copy it."""
    plain = plain_conninfo(conninfo)
    notes = []
    if plain != conninfo:
        notes.append("The password comes from PGPASSWORD or ~/.pgpass.")
    words = f" --dsn {shlex.quote(plain)}"
    try:
        source = read_source(plain if HIDDEN in conninfo else conninfo)
    except ConnectError as error:
        reason = str(error).rstrip("?.")
        notes.append(f"It could not be read when this file was written: {reason}.")
        return DraftDatabase(plain, notes), ""
    programs = dump_programs(source.major)
    notes = [*_how(source, None if programs is None else version_of(programs), words), *notes]
    local = resolve(plain)
    embedded = programs is not None and (local.on_socket or is_here(local.host))
    settings = source.settings if embedded else {}
    return DraftDatabase(plain, notes, settings), "" if programs is not None else words


def _how(source: SourceDatabase, version: int | None, words: str) -> list[str]:
    """Return how the database is copied, and why."""
    size = f"database {source.name} ({format_bytes(source.bytes)})"
    sessions = count_words(source.sessions, "session")
    if version is not None:
        found = [
            f"A copy of {size} by pg_dump and pg_restore {version}, into the embedded server: the service "
            f"can stay connected ({sessions} now)."
        ]
        if source.template and source.creates:
            found.append(
                f"`uncork run{words}` measures on the service's own server instead; remove [server.settings] "
                "then. While no session is connected, it copies the database as a template, which is faster."
            )
        return found
    found = [
        f"A copy of {size} as a template on its own server, because no pg_dump of PostgreSQL "
        f"{source.major} or newer is installed here. The run needs{words}."
    ]
    if source.sessions:
        found.append(f"Stop the service before the run: {sessions} would prevent the copy.")
    if not source.creates:
        found.append("The role may not create databases: allow it with ALTER ROLE ... CREATEDB.")
    elif not source.template:
        found.append("The role does not own the database, and cannot copy it: connect as its owner.")
    return found


def plain_conninfo(conninfo: str) -> str:
    """Return a connection string without its password."""
    if "://" in conninfo:
        plain = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1@", conninfo)
        return re.sub(r"([?&])password=[^&\s]*&?", r"\1", plain).rstrip("?&")
    return re.sub(r"\s*\bpassword\s*=\s*('(?:[^'\\]|\\.)*'|\S+)", "", conninfo).strip()


# ---- variants, and the budget ----


def _variant(name: str, value: str) -> str:
    word = re.sub(r"[^A-Za-z0-9_-]", "-", f"{name}-{value}")[:_NAME].strip("-")
    return word if word[:1].isalpha() else f"with{word}"


def _budget(plan: Mapping[str, Any], variants: int) -> str:
    """Return time for five rounds that load each variant, and the baseline twice, as long as before."""
    duration_ns = plan["stop"].get("duration_ns") or 0
    minutes = -(-_ROUNDS * (variants + 1) * duration_ns // _NS_A_MINUTE)
    return f"{min(max(minutes, _LEAST_MINUTES), _MOST_MINUTES)}min"
