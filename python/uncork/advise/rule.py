"""What a rule is, and the limits below which it finds nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.model.database.finding import Finding

if TYPE_CHECKING:
    from uncork.model.database.finding import Bill, Candidate

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

    def finding(
        self,
        headline: str,
        *,
        objects: Iterable[str],
        bill: Bill | None,
        statements: Iterable[Statement] = (),
        cost: str = "",
        evidence: Iterable[str] = (),
        candidates: Iterable[Candidate] = (),
        against: Iterable[str] = (),
        proof: str,
    ) -> Finding:
        """Return a finding of this rule. `statements` are what it is about, the costliest first.

        If it costs too little time to be reported, what it costs instead (`cost`) is reported alone.
        """
        if cost and bill is not None and not worth(bill, self.least_share):
            bill, statements = None, ()
        about = tuple(statements)
        return Finding(
            self.name,
            headline,
            tuple(objects),
            bill,
            tuple(statement.number for statement in about),
            about[0].text if about else "",
            cost,
            tuple(evidence),
            tuple(candidates),
            tuple(against),
            proof,
        )

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
