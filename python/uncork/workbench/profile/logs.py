"""Profile logs: read them, keep what they tell, say what it means."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.analysis.log.result import log_run_facts
from uncork.errors import SetupError
from uncork.profile.logs import LogReading, LogRequest, read_logs
from uncork.workbench.profile.preload import loading
from uncork.workbench.profile.seen import Seen, now_text, store_evidence

if TYPE_CHECKING:
    from uncork.model.results.log import LogResult

__all__ = ["LogRun", "NothingUnderstood", "profile_logs"]


_LATER = (
    *("uncork.store.evidence", "uncork.store.logs", "postgast", "uncork.analysis.log.result"),
    "uncork.report.log.terminal",
)
"""What is needed only behind reading, and takes as long to load as some hundred megabytes to read."""


class NothingUnderstood(SetupError):
    """No line of any file is an entry of a log. Its message says what to do."""


@dataclass(frozen=True, slots=True)
class LogRun:
    """A log that was read: where its run is, and what a report says of it."""

    folder: Path
    result: LogResult


def profile_logs(
    root: Path,
    request: LogRequest,
    *,
    command: str,
    read: Callable[[LogRequest], LogReading] = read_logs,
) -> LogRun:
    """Read logs, store what they tell as a run under `root`, and say what it means.

    `read` is how: once, or while they grow. Nothing is stored when nothing is understood.

    Raises:
        NothingUnderstood: when no line is an entry.
        SetupError: if a file cannot be opened, or the run cannot be written.
        UsageError: if the prefix is none that a server takes.
    """
    begun, started_at = time.monotonic_ns(), now_text()
    with _events(request.events):
        with loading(*_LATER):
            reading = read(request)
        from uncork.analysis.log.result import log_result  # noqa: PLC0415
        from uncork.report.log.answer import answer_log  # noqa: PLC0415
        from uncork.store.logs import write_event_names  # noqa: PLC0415 -- see _LATER

        _refuse_nothing(reading)
        if request.events is not None:
            names = [file["name"] for file in reading.facts["files"]]
            write_event_names(request.events, reading.statements, names)
    seen = Seen(
        kind="log",
        name=f"log-{_word(request.paths[0])}",
        question=f"log: {', '.join(path.name or str(path) for path in request.paths[:3])}",
        server="",
        status="interrupted" if reading.facts["stopped"] else "complete",
        started_at=started_at,
        elapsed_ns=time.monotonic_ns() - begun,
        command=command,
        facts=reading.facts,
        tables=reading.tables,
    )
    facts, tables = reading.facts, reading.tables
    return LogRun(
        *store_evidence(
            root, seen, lambda manifest: answer_log(log_result(log_run_facts(manifest, facts), facts, tables))
        )
    )


def _refuse_nothing(reading: LogReading) -> None:
    """Refuse logs of which nothing was understood, in words that say what was found."""
    facts = reading.facts
    if facts["entries"] or facts["stopped"]:
        return
    if facts["outside"]:
        raise NothingUnderstood(
            f"none of the {facts['outside']} entries lies in the time asked for (-b, -e, in UTC)"
        )
    files = facts["files"]
    if not files:
        raise NothingUnderstood("none of the files came to be")
    names = ", ".join(file["name"] for file in files[:3]) + (" and more" if len(files) > 3 else "")
    troubles = [f"{file['name']}: {file['trouble']}" for file in files if file["trouble"]]
    if troubles:
        raise NothingUnderstood(f"nothing could be read: {'; '.join(troubles[:3])}")
    if not any(file["bytes"] for file in files):
        raise NothingUnderstood(
            f"nothing to read: {names} is empty" if len(files) == 1 else "all files are empty"
        )
    raise NothingUnderstood(
        f"{names}: no line looks like an entry of a PostgreSQL log (stderr, csvlog or jsonlog); if lines "
        "have a log_line_prefix of their own, give it: -p '%m [%p] '"
    )


@contextmanager
def _events(folder: Path | None) -> Iterator[None]:
    """Make the folder for events; if they do not come to their end, nothing of them is left.

    Raises:
        SetupError: if the folder cannot be made, or is not empty.
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


def _word(path: Path) -> str:
    stem = path.name.split(".")[0] if str(path) != "-" else "stdin"
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-") or "log"
