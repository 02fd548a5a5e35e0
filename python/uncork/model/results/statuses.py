"""What a report says about the statements with the most time, whether or not a rule found something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["LARGE_SHARE", "MOST_STATUSES", "Explanation", "StatementStatus", "plan_settings"]

MOST_STATUSES: Final = 3
"""Statements that have a status: those with the most time."""
LARGE_SHARE: Final = 0.2
"""Share of the time from which on a report gives no all-clear, unless the statement is fine."""

_SLOW_NS: Final = 20_000_000
"""Mean time from which on auto_explain can log plans by their duration; faster statements need a sample."""

Explanation = Literal["found", "fine", "no plan", "plan not executed", "no fault in plan", "no plan possible"]
"""What is known about the time of a statement: `found` is the subject of a finding; `fine` reads few rows for
each row that it returns or changes. The others are not explained: the log or the server shows no plan, only
a plan that was not executed, or a plan in which no rule found a fault although it reads many rows; or the
statement, such as COMMIT, has no plan."""


@dataclass(frozen=True, slots=True)
class StatementStatus:
    """A statement among the costliest. `share` is of the time of all statements, 0 to 1.

    `finding` is the number of its finding, from 1. `rows_read` and `rows_returned` are those of one execution
    in its plan (rows that it changes count as returned). Each is None if it is not known.
    """

    number: int
    text: str
    share: float
    explanation: Explanation
    finding: int | None = None
    rows_read: float | None = None
    rows_returned: float | None = None

    @property
    def is_explained(self) -> bool:
        """Whether a finding or the plan accounts for its time."""
        return self.explanation in ("found", "fine")


def plan_settings(mean_ns: float) -> str:
    """Return the settings that make a server log executed plans of statements with this mean time."""
    chosen = (
        "auto_explain.log_min_duration = '10ms'"
        if mean_ns >= _SLOW_NS
        else "auto_explain.log_min_duration = 0, auto_explain.sample_rate = 0.01"
    )
    return f"session_preload_libraries = 'auto_explain', {chosen} and auto_explain.log_analyze = on"
