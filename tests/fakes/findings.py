"""Findings as texts, which tests of rules compare with what they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fakes.goldens import compare_cases
from uncork.model.database.finding import Candidate, Finding
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

_OF_FINDING = ("objects", "templates", "statement", "cost", "evidence", "against", "proof")
_OF_CANDIDATE = (
    *("sql", "undo", "on_copy", "check", "against", "unprovable", "habit", "per_hour", "other_counts"),
    "tried_first",
)


def compare_findings(name: str, cases: Sequence[tuple]) -> None:
    """Compare the findings of each case with ``golden/advise/<name>.txt``.

    A case is its name, and what was found in one or more examples: a finding, several, or none. A change
    that an earlier finding has too is written out once.
    """
    known: set[tuple[str, ...]] = set()
    texts = []
    for case, *examples in cases:
        lines: list[str] = []
        for number, found in enumerate(examples, 1):
            findings = [found] if isinstance(found, Finding) else list(found or ())
            start = f"---- {number}: " if len(examples) > 1 else ""
            lines += [f"{start}{len(findings) or 'no'} finding{'s' * (len(findings) != 1)}"]
            lines += [line for finding in findings for line in _finding_lines(finding, known)]
        texts.append((case, "\n".join(lines)))
    compare_cases(f"advise/{name}", texts)


def _finding_lines(finding: Finding, known: set[tuple[str, ...]]) -> Iterator[str]:
    headline = finding_headline(finding)
    yield f"{finding.rule}: {headline}" + ("" if fits(headline) else " (too long for a headline)")
    if bill := finding.bill:
        high = "?" if bill.high is None else f"{bill.high:.5g}"
        yield f"  bill: {bill.seconds_per_hour:.5g} s per hour ({bill.low:.5g} to {high}), {bill.share:.4g}"
    yield from _fields(finding, _OF_FINDING)
    for candidate in finding.candidates:
        first, *rest = (f"  * {candidate.kind}: {candidate.text}", *_candidate_lines(candidate))
        yield first
        yield from ["    as above"] if rest and (first, *rest) in known else rest
        known.add((first, *rest))


def _candidate_lines(candidate: Candidate) -> Iterator[str]:
    if not candidate.same_answers:
        yield "    other answers"
    yield from (f"  {line}" for line in _fields(candidate, _OF_CANDIDATE))


def _fields(of: Finding | Candidate, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        value = getattr(of, name)
        if name in ("evidence", "against"):
            yield from (f"  {name}: {text}" for text in value)
        elif value or (value is not None and not isinstance(value, bool | str | tuple)):
            yield f"  {name}: {value}".replace("\n", "\n      ")
