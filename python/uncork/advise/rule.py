"""What a rule is, and the limits below which it finds nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence

if TYPE_CHECKING:
    from uncork.model.database.finding import Bill, Finding

LEAST_SHARE: Final = 0.10
"""Fraction of the busy time. Saving less than a tenth is lost in the variation from one minute to the next.

``tests/calibration/test_least_share.py`` simulates the decision where only samples show the time. In watches
of 60 s, half of this fraction is reported in at most 2 % of them, and twice of it is missed in at most 2 %,
unless statements take seconds."""
LEAST_SESSIONS: Final = 0.05
"""Sessions on average. A server that is busy for less than a second in twenty has nothing to gain."""
_HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. `name` is the class of its findings.

    One cause can be seen in the plan, in waits and in counters, so that several rules find it. A finding
    gives way to findings of a higher `depth` that explain most of its cost on the same statements. Depth 0 is
    a setting that only eases the cost, such as more memory for scans. Most rules have depth 1. Depth 2 is a
    cause behind such a finding, such as dead rows that a scan reads. A rule that is `of_tables` finds nothing
    unless the size of a table is known.
    """

    name: str
    find: Callable[[Evidence], Iterator[Finding]]
    depth: int = 1
    of_tables: bool = False


def worth(bill: Bill, least_share: float = LEAST_SHARE) -> bool:
    """Return whether a finding costs enough time to be reported."""
    return bill.share >= least_share and bill.seconds_per_hour >= LEAST_SESSIONS * _HOUR_S
