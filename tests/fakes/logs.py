"""Logs written line by line, and what reading them tells."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fakes.answered import log_result
from uncork.model.results.log import LogResult, LogRunFacts
from uncork.profile.logs import LogRequest, read_logs

BEGIN_US = 1_767_225_600_000_000
"""The first of January 2026 in UTC: where the logs begin."""


def line(text: str, *, at_ms: int, ms: float, application: str = "app", pid: int = 7) -> str:
    """Return an entry that is logged `at_ms` from the beginning, of a statement that took `ms`."""
    when = datetime.fromtimestamp((BEGIN_US // 1000 + at_ms) / 1000, UTC)
    stamp = f"{when:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d} UTC"
    return f"{stamp} [{pid}] u@d {application} LOG:  duration: {ms:.3f} ms  statement: {text}\n"


def result(path: Path, text: str, **options: Any) -> LogResult:
    """Write a log, read it, and return what it tells; the log is called by its name without folders."""
    path.write_text(text)
    reading = read_logs(LogRequest((path,), **{"prefix": "%m [%p] %u@%d %a ", **options}))
    reading.facts["files"][0]["name"] = path.name
    run = LogRunFacts(f"log-{path.stem}", "complete", "2026-01-01T00:00:00+00:00", 1, 1, "uncork", "0")
    return log_result(run, reading.facts, reading.tables)
