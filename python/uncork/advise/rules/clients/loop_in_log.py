"""Statements that clients repeat one by one, as logs show them (N+1). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration

__all__ = ["RULE"]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop: templates by the log's number, executions, times in ns, and the most executions in one."""

    templates: tuple[int, ...]
    text: str
    executions: int
    longest: int
    spent_ns: int
    behind: str


def _find(seen: Evidence) -> Iterator[Finding]:
    """The bill is the time of the executions in loops, and of the waits for the client between them."""
    for loop in _loops(seen):
        numbers = tuple(seen.log_numbers[one] for one in loop.templates if one in seen.log_numbers)
        bill = _bill(loop, seen)
        if numbers and worth(bill):
            yield _finding(loop, numbers, bill)


def _loops(seen: Evidence) -> Iterator[_Loop]:
    if seen.log is None:
        return
    for one in seen.log.loops:
        behind = f"each execution of {short_template(one.parent_text, 60)}" if one.parent_text else ""
        yield _Loop(
            tuple(each.number for each in one.templates),
            one.templates[0].text,
            sum(each.executions for each in one.templates),
            max(each.longest for each in one.templates),
            sum(each.sum_ns + each.waiting_ns for each in one.templates),
            behind,
        )
    for template in seen.log.templates:
        row = template.repetition
        if row is not None:
            spent = row.sum_ns + row.waiting_ns
            yield _Loop((template.number,), template.text, row.executions, row.longest, spent, "")


def _bill(loop: _Loop, seen: Evidence) -> Bill:
    """Return the bill: of the log's time if there is only a log, else for the seconds of the log."""
    log = seen.log
    if log is None or log.first_us is None or log.last_us is None:
        return seen.bill_of_seconds(0.0)
    seconds = max(1.0, (log.last_us - log.first_us) / 1e6)
    return seen.bill_of_seconds(loop.spent_ns / 1e9 / seconds * seen.seconds)


def _finding(loop: _Loop, numbers: Sequence[int], bill: Bill) -> Finding:
    times = format_count(loop.longest)
    evidence = [
        f"{count_words(loop.executions, 'execution')} took {format_duration(float(loop.spent_ns))} with the "
        "waits for the client between them."
    ]
    if loop.behind:
        evidence.append(f"They follow {loop.behind}.")
    if len(loop.templates) > 1:
        evidence.append(f"The client sends {len(loop.templates)} statements in turn.")
    writes = loop.text.startswith(("insert", "update", "delete"))
    return Finding(
        RULE.name,
        f"A client sends one statement up to {times} times in a row instead of once",
        objects=(),
        bill=bill,
        templates=tuple(numbers),
        statement=loop.text,
        evidence=tuple(evidence),
        candidates=(
            Candidate(
                "client",
                "Write many rows with one statement (several VALUES, unnest of arrays, COPY)."
                if writes
                else "Fetch all rows with one statement (a join, or WHERE key = ANY of a list; in an ORM, "
                "eager loading).",
                habit="loops",
            ),
        ),
        proof="Compare both ways of the client with uncork run, as two workloads with the same rows.",
    )


RULE: Final = Rule("one-by-one", _find)
