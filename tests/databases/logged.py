"""The log of a database of known health: what its server wrote while clients worked, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from databases.scenario import Scenario, at_work
from uncork.analysis.log.result import log_result
from uncork.engines.embedded import EmbeddedServer
from uncork.model.results.log import LogResult, LogRunFacts
from uncork.profile.logs import LogRequest, read_logs
from uncork.report.log.answer import answer_log
from uncork.report.log.document import build_log_document

LOGGING = {
    "log_min_duration_statement": 0,
    "log_line_prefix": "%m [%p] %q%u@%d %a ",
    "log_lock_waits": True,
    "log_temp_files": 0,
    "log_checkpoints": True,
    "log_autovacuum_min_duration": 0,
    "log_connections": True,
    "log_disconnections": True,
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": 0,
    "auto_explain.log_analyze": True,
    "auto_explain.log_buffers": True,
    "auto_explain.log_triggers": True,
}
"""What docs/guides/logs.md says to log, and the plans of all statements."""

_RUN = LogRunFacts("log-x", "complete", "2026-01-01T00:00:00+00:00", 1, 1, "uncork profile logs x", "0")


def log_scenario(server: EmbeddedServer, scenario: Scenario, name: str, seconds: float) -> LogResult:
    """Let a scenario's clients work, and return the report on the server's log of that time."""
    begun_us = time.time_ns() // 1000
    with at_work(server, scenario, name):
        time.sleep(seconds)
        ended_us = time.time_ns() // 1000
    reading = read_logs(LogRequest((Path(server.logs[0]),), begin_us=begun_us, end_us=ended_us))
    return answer_log(log_result(_RUN, reading.facts, reading.tables))


def log_told(result: LogResult) -> Iterator[str]:
    """Yield what a reader of the report sees first."""
    yield result.answer
    yield from (f"- {reason}" for reason in result.reasons)
    yield from (f"> {step.text} {step.command}" for step in build_log_document(result, parts=0).steps)
