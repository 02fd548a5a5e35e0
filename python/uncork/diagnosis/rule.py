"""What a rule is, and the limits below which it finds nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from uncork.diagnosis.evidence import Evidence, Statement
from uncork.model.database.finding import Bill, Candidate, Finding

Search = Callable[[Evidence], Iterator[Finding]]
Judge = Callable[[Statement, Evidence], Finding | None]

LEAST_SHARE: Final = 0.10
"""Fraction of the busy time. Saving less than a tenth is lost in the variation from one minute to the next.

``tests/calibration/test_least_share.py`` simulates the decision where only samples show the time.
In watches of 60 s, half of this fraction is reported in at most 2 % of them, and twice of it is
missed in at most 2 %, unless statements take seconds."""
LEAST_SESSIONS: Final = 0.05
"""Sessions on average. A server that is busy for less than a second in twenty has nothing to gain."""
_HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. `name` is the class of its findings, and `search` yields them, whatever they cost.

    One cause can be seen in the plan, in waits and in counters, so that several rules find it. A
    finding gives way to findings of a higher `depth` that explain most of its cost on the same
    statements. Depth 0 is a setting that only eases the cost, such as more memory for scans. Most
    rules have depth 1. Depth 2 is a cause behind such a finding, such as dead rows that a scan
    reads. A rule that is `of_tables` finds nothing unless the size of a table is known. A finding
    whose bill has a smaller share than `least_share` is dropped, unless it has another cost.
    """

    name: str
    search: Search
    depth: int = 1
    of_tables: bool = False
    least_share: float = LEAST_SHARE

    def __call__(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield the findings that cost enough time to be reported, and those whose cost is not time."""
        for found in self.search(evidence):
            named = replace(found, rule=found.rule or self.name)
            if found.bill is None or worth(found.bill, self.least_share):
                yield named
            elif found.cost:
                yield replace(named, bill=None, templates=(), statement="")


def rule(
    name: str, *, depth: int = 1, of_tables: bool = False, least_share: float = LEAST_SHARE
) -> Callable[[Search], Rule]:
    """Return the decorator that makes a function a rule: it yields the findings of the evidence."""
    return lambda search: Rule(name, search, depth, of_tables, least_share)


def statement_rule(
    name: str, *, depth: int = 1, of_tables: bool = False, least_share: float = LEAST_SHARE
) -> Callable[[Judge], Rule]:
    """Return the decorator that makes a function a rule: it judges each statement, the costliest first.

    A finding is about this statement, unless it names several.
    """

    def search(judge: Judge, evidence: Evidence) -> Iterator[Finding]:
        for statement in evidence.costliest():
            found = judge(statement, evidence)
            if found is not None and found.templates:
                yield found
            elif found is not None:
                yield replace(found, templates=(statement.number,), statement=statement.text)

    return lambda judge: Rule(name, partial(search, judge), depth, of_tables, least_share)


def finding(
    headline: str,
    *candidates: Candidate,
    objects: Iterable[str],
    bill: Bill | None = None,
    statements: Iterable[Statement] = (),
    templates: Iterable[int | None] = (),
    text: str = "",
    cost: str = "",
    evidence: str | Iterable[str] = (),
    against: Iterable[str] = (),
    proof: str,
    rule: str = "",
) -> Finding:
    """Return a finding, of the rule that yields it unless `rule` names another one.

    `candidates` are the changes that could cure it, the best first, and `evidence` a sentence or
    several. `statements` are what it is about, the costliest first; or else the known ones of these
    `templates`, and the `text` of the first.
    """
    about = tuple(statements)
    numbers = (*(statement.number for statement in about), *templates)
    return Finding(
        rule,
        headline,
        tuple(objects),
        bill,
        tuple(number for number in numbers if number is not None),
        about[0].text if about else text,
        cost,
        (evidence,) if isinstance(evidence, str) else tuple(evidence),
        candidates,
        tuple(against),
        proof,
    )


def worth(bill: Bill, least_share: float = LEAST_SHARE) -> bool:
    """Return whether a finding costs enough time to be reported."""
    return bill.share >= least_share and bill.seconds_per_hour >= LEAST_SESSIONS * _HOUR_S
