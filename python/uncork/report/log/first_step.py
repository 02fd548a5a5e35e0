"""What to do first about a log: examine the plan of the costliest template, or what it waits for."""

from __future__ import annotations

from typing import Final

from uncork.model.results.log import LogResult, TemplateFacts
from uncork.model.template_words import short_template
from uncork.model.units import format_duration
from uncork.report.blocks import Step
from uncork.report.words import count_words

__all__ = ["first_step"]

_WATCH: Final = "uncork profile db {database} --for 60s"


def first_step(result: LogResult) -> Step:
    """Return what to do about the first template.

    EXPLAIN shows where a plan spends its time. It does not show why a statement that is usually fast waits.
    """
    top = result.templates[0]
    if not top.waits:
        return Step(
            "Start with the first template: its section in the page shows when it ran, for whom, and its "
            "slowest execution. Run EXPLAIN (ANALYZE, BUFFERS) on that statement to see what takes the time."
        )
    database = next((one.name for one in result.databases if one.name), "")
    return Step(
        f"Find out what the first template waits for ({short_template(top.text)}). {_why(top)} Look at the "
        f"lock waits {_locks(result, top)}, at the waits for the write-ahead log (WALSync, WALWrite, SyncRep "
        "in wait_event), and at checkpoints at the times of its slow executions (log_checkpoints). This "
        "command shows the waits and who blocks whom, while the statement is slow:",
        _WATCH.format(database=f"dbname={database}" if database else "").replace("  ", " "),
    )


def _why(top: TemplateFacts) -> str:
    if top.p50_ns is None or top.kind in ("COMMIT", "END"):
        return "It has no plan: its time is the flush of the write-ahead log, or a synchronous standby."
    slow, name = (top.p95_ns, "p95") if (top.p95_ns or 0) >= 10 * top.p50_ns else (top.p99_ns, "p99")
    return (
        f"It writes, and its {name} is {format_duration(slow or 0)} although its median is "
        f"{format_duration(top.p50_ns)}: slow executions wait, which EXPLAIN does not show."
    )


def _locks(result: LogResult, top: TemplateFacts) -> str:
    """Say what the log shows of its lock waits, and how to have them logged if it shows none."""
    found = [one for one in result.blocking if one.waiting_number == top.number]
    if found:
        count, waited = sum(one.waits for one in found), sum(one.sum_ns for one in found)
        return f"(the log has {count_words(count, 'lock wait')} of it, {format_duration(waited)} in total)"
    if result.server.lock_waits:
        return "(the log has none of this statement longer than deadlock_timeout)"
    return "(the log has none: set log_lock_waits = on to log those longer than deadlock_timeout)"
