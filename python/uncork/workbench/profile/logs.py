"""Profile logs: read them, store what they show, and analyze it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncork.engines.checkouts import current_branch, current_commit
from uncork.errors import SetupError
from uncork.profile.logs import LogReading, LogRequest, read_logs
from uncork.store.layout import check_writable
from uncork.workbench.clock import now_text
from uncork.workbench.profile.preload import loading
from uncork.workbench.profile.storing import store_evidence

if TYPE_CHECKING:
    from uncork.model.results.log import LogResult

STORED: Final = "gathered.bin"
"""The file in a run's folder with what a later run can follow."""


_LATER = (
    *("uncork.store.profile_tables", "uncork.profile.grammar", "uncork.analysis.log.result"),
    *("uncork.report.log.document", "uncork.workbench.run_record"),
)
"""Modules needed only after reading; loading them takes as long as reading a hundred megabytes."""


_NAMED = 5


class NothingUnderstood(SetupError):
    """No line of any file is a log entry. The message says what to do."""


@dataclass(frozen=True, slots=True)
class LogRun:
    """A profiled log: its run's folder, and the result."""

    folder: Path
    result: LogResult


def profile_logs(
    root: Path,
    request: LogRequest,
    *,
    command: str,
    read: Callable[[LogRequest], LogReading] = read_logs,
) -> LogRun:
    """Read logs, store what they show as a run under `root`, and analyze it.

    `read` reads them once, or while they grow. Nothing is stored if no line is a log entry.

    Raises:
        NothingUnderstood: if no line is a log entry.
        SetupError: if a file cannot be opened, or the run cannot be written.
        StoreError: if events cannot be written.
        UsageError: if the log_line_prefix is not valid.
    """
    check_writable(root)
    begun, started_at = time.monotonic_ns(), now_text()
    with _events(None if request.events is None else request.events.folder):
        with loading(*_LATER), ThreadPoolExecutor(1) as asking:
            # git takes as long as reading fifty megabytes.
            commit, branch = asking.submit(current_commit), asking.submit(current_branch)
            reading = read(request)
        from uncork.analysis.log.result import log_result, log_run_facts  # noqa: PLC0415
        from uncork.report.log.answer import answer_log  # noqa: PLC0415
        from uncork.workbench.profile.log_updates import repeated_updates  # noqa: PLC0415 -- see _LATER
        from uncork.workbench.run_record import draft, start_run  # noqa: PLC0415 -- see _LATER

        try:
            refuse_nothing(reading, request.prefix)
        except NothingUnderstood:
            reading.forget()
            raise
        again = repeated_updates(request, reading)
        if request.events is not None:
            names = [file["name"] for file in reading.facts["files"]]
            request.events.write_names(reading.statements, names)
    elapsed_ns, facts = time.monotonic_ns() - begun, reading.facts
    tables = {**reading.tables, "log_repeated_updates": again}
    manifest = draft(
        kind="log",
        name=f"log-{_word(request.names[0])}",
        question=f"log: {', '.join(map(_last_part, request.names[:3]))}",
        server="",
        options={"command": command},
        started_at=started_at,
        commit=commit.result,
        branch=branch.result,
    )
    run = start_run(root, manifest, announce=False, undone="nothing was stored")
    result = store_evidence(
        run,
        "interrupted" if facts["stopped"] else "complete",
        elapsed_ns,
        facts,
        tables,
        lambda manifest: answer_log(log_result(log_run_facts(manifest, facts), facts, tables)),
        {} if reading.stored is None else {STORED: reading.stored},
    )
    reading.forget()
    return LogRun(run.folder, result)


def refuse_nothing(reading: LogReading, prefix: str | None = None) -> None:
    """Refuse logs without any entry, with a message that says what was found.

    `prefix` is the log_line_prefix that the user gave.

    Raises:
        NothingUnderstood: if no line is a log entry that counts.
    """
    facts = reading.facts
    if facts["entries"] or facts["stopped"]:
        return
    if facts["untimed"]:
        raise NothingUnderstood(
            f"none of the {facts['untimed']} entries has a time, so no time range can be selected: leave out "
            "-b and -e (or --against-begin and --against-end), and log times from now on with %m in "
            "log_line_prefix"
        )
    if facts["left_out"]:
        raise NothingUnderstood(_none_passes(facts))
    if facts["outside"]:
        raise NothingUnderstood(
            f"none of the {facts['outside']} entries is within the time range (-b, -e, in UTC)"
        )
    files = facts["files"]
    if not files:
        raise NothingUnderstood("none of the files was created")
    names = ", ".join(file["name"] for file in files[:3]) + (" and more" if len(files) > 3 else "")
    troubles = [f"{file['name']}: {file['trouble']}" for file in files if file["trouble"]]
    if troubles:
        raise NothingUnderstood(f"no file could be read: {'; '.join(troubles[:3])}")
    if not any(file["bytes"] for file in files):
        raise NothingUnderstood(
            f"nothing to read: {names} is empty" if len(files) == 1 else "all files are empty"
        )
    if prefix is not None:
        raise NothingUnderstood(
            f"{names}: no line begins with the log_line_prefix '{prefix}' of -p; leave -p out, because most "
            "prefixes are recognised, or give the server's own (SHOW log_line_prefix)"
        )
    raise NothingUnderstood(
        f"{names}: no line looks like a PostgreSQL log entry (stderr, csvlog or jsonlog); if the server has "
        "its own log_line_prefix, give it: -p '%m [%p] '"
    )


def _none_passes(facts: Mapping[str, Any]) -> str:
    """Say which filter left out all entries, and which names the log has instead."""
    found = sorted(facts["left_out"], key=lambda one: -one["entries"])
    by = found[0]["by"]
    option = f"--{by.replace(' ', '-')}"
    count = sum(server["entries"] for server in found)
    message = f"none of the {count} entries passes the filters; most fail {option} first"
    if by == "time of day":
        return f"{message}: times are in UTC unless an offset follows, such as 08:00-17:00+02:00"
    names = [f'"{server["name"]}"' for server in found if server["by"] == by and server["name"]]
    if not names:
        escape = {"database": "%d", "user": "%u", "application": "%a", "host": "%h"}[by]
        return f"{message}: the log names no {by}; add {escape} to the server's log_line_prefix"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{message}: the log's names of the {by} are {', '.join(names[:_NAMED])}{more}"


@contextmanager
def _events(folder: Path | None) -> Iterator[None]:
    """Create the folder for events; delete what was written to it if reading fails.

    Raises:
        SetupError: if the folder cannot be created, or is not empty.
    """
    if folder is None:
        yield
        return
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SetupError(f"--events {folder}: the folder is not empty; name a new one")
    except OSError as error:
        raise SetupError(f"--events {folder}: {error.strerror or error}") from error
    try:
        yield
    except BaseException:
        for path in folder.glob("*.parquet"):
            path.unlink()
        if made:
            folder.rmdir()
        raise


def _last_part(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2] or name


def _word(name: str) -> str:
    stem = _last_part(name).split(".")[0] if name != "-" else "stdin"
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-") or "log"
