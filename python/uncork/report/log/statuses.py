"""The sentences about the costliest statements of a log: which finding explains them, or what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.log import LogResult
from uncork.model.results.statuses import LARGE_SHARE, StatementStatus, plan_settings
from uncork.model.units import format_count
from uncork.report.headline import headline_template
from uncork.report.quantity_words import share_text

__all__ = ["is_all_clear", "status_sentences"]

_NO_PLANS: Final = "plans in the log"
"""What `result.missing` has, with these settings, if the log has no plan of any statement."""


def is_all_clear(result: LogResult) -> bool:
    """Return whether each statement with a large share of the time is fine, so that nothing stands out."""
    large = [status for status in result.statuses if status.share >= LARGE_SHARE]
    return all(status.explanation == "fine" for status in large)


def status_sentences(result: LogResult) -> Iterator[str]:
    """Yield a sentence for each of the costliest statements; a report shows settings that log plans once."""
    settings_shown = any(_NO_PLANS in lack.what for lack in result.missing)
    for status in result.statuses:
        text = f"{headline_template(status.text)} takes {share_text(status.share)} of the statement time"
        reason = _reason(status)
        wants_plan = status.explanation in ("no plan", "plan not executed") and status.share >= LARGE_SHARE
        if wants_plan and not settings_shown:
            settings_shown = True
            mean_ns = next(
                template.mean_ns for template in result.templates if template.number == status.number
            )
            reason += f" Set {plan_settings(mean_ns)} for a while, then profile the log again."
        yield f"{text}: {reason}"


def _reason(status: StatementStatus) -> str:
    if status.explanation == "found":
        return f"finding {status.finding}."
    read, returned = status.rows_read or 0.0, status.rows_returned or 0.0
    rows = f"reads {_rows(read)} and returns or changes {_rows(returned)}"
    if status.explanation == "fine":
        return f"fine, because its logged plan {rows}."
    if status.explanation == "no fault in plan":
        return f"not explained. Its logged plan {rows}; a connection to the server shows indexes and waits."
    if status.explanation == "no plan possible":
        return "not explained. It has no plan; a watch of the server shows what it waits for."
    if status.explanation == "plan not executed":
        return "not explained. Its logged plan has no counted rows."
    return "not explained. The log has no plan of a typical execution."


def _rows(rows: float) -> str:
    return f"{format_count(round(rows))} {'row' if round(rows) == 1 else 'rows'}"
