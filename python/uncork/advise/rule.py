"""What a rule is, and the limits below which it finds nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement

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
    """A rule. `name` is the class of its findings, and `search` yields them, whatever they cost.

    One cause can be seen in the plan, in waits and in counters, so that several rules find it. A finding
    gives way to findings of a higher `depth` that explain most of its cost on the same statements. Depth 0 is
    a setting that only eases the cost, such as more memory for scans. Most rules have depth 1. Depth 2 is a
    cause behind such a finding, such as dead rows that a scan reads. A rule that is `of_tables` finds nothing
    unless the size of a table is known. A finding whose bill has a smaller share than `least_share` is
    dropped.
    """

    name: str
    search: Callable[[Evidence], Iterator[Finding]]
    depth: int = 1
    of_tables: bool = False
    least_share: float = LEAST_SHARE

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield the findings that cost enough time to be reported, and those whose cost is not time."""
        for finding in self.search(evidence):
            if finding.bill is None or worth(finding.bill, self.least_share):
                yield finding


def each_statement(
    judge: Callable[[Statement, Evidence], Finding | None],
) -> Callable[[Evidence], Iterator[Finding]]:
    """Return the search of a rule that judges each statement on its own, the costliest first."""

    def search(evidence: Evidence) -> Iterator[Finding]:
        for statement in evidence.costliest():
            finding = judge(statement, evidence)
            if finding is not None:
                yield finding

    return search


def worth(bill: Bill, least_share: float = LEAST_SHARE) -> bool:
    """Return whether a finding costs enough time to be reported."""
    return bill.share >= least_share and bill.seconds_per_hour >= LEAST_SESSIONS * _HOUR_S
