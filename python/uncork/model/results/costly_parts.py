"""What uncork knows of the statements and waits that take the most time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from uncork.model.records import Record

LARGE_SHARE: Final = 0.2
"""Share of the time from which on a part must be found or fine, or no report says that all is well."""


class CostlyPart(Record):
    """One of the statements or waits with the most time, and what is known of it.

    `name` is the template of the statement, or the wait; `share` is its part of the busy time, 0 to 1. A part
    is *found* if finding number `finding`, from 1, is about it; *fine* if the server's counters show that it
    does no more than it must; else *not explained*. `evidence` says why it is fine, or what is known of it
    and what would explain it.
    """

    kind: Literal["statement", "wait"]
    name: str
    share: float
    state: Literal["found", "fine", "not explained"]
    finding: int | None = None
    evidence: str = ""


def unexplained_part(parts: Iterable[CostlyPart]) -> CostlyPart | None:
    """Return the first unexplained part that takes a fifth of the time or more; None allows an all-clear."""
    return next((part for part in parts if part.state == "not explained" and part.share >= LARGE_SHARE), None)
