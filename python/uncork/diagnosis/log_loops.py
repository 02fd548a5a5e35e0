"""Decide whether a log shows a loop of a client, or requests that merely follow each other. Pure.

Within a transaction, a template that runs ten times or more is repeated: that is a fact. Outside of
transactions, a pooled connection carries many requests, and its statements may alternate because
requests do. A loop differs in two ways. The statement before it is followed by the loop nearly
every time, not just when chance has it. And either its stretches are separated by pauses, or the
number of repetitions is steady: if independent requests alternate, the number between two requests
of another kind has a geometric distribution, whose standard deviation equals its mean.
``tests/calibration/test_loops.py`` simulates the false alarms.

A pipeline is no loop that waits: the client sends further statements before the answers arrive. The server
then executes many at once, with hardly a pause in between. Such a client has many rows at hand for certain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from uncork.model.results.log import LogResult, Repetition, TemplateFacts

_LEAST_PART: Final = 0.5
"""Fraction of the parent's executions that the loop must follow."""
_LEAST_STRETCHES: Final = 3
"""Fewest stretches that show a loop separated by pauses: one or two may begin with any statement."""
_LEAST_PARENTS: Final = 10
_MOST_VARIATION: Final = 0.5
"""Fewest executions of the parent, and the largest coefficient of variation of the repetitions
after each, that show a steady loop. In a geometric distribution it is close to 1."""
_ROWS: Final = 20
_LONGEST: Final = 1.5
_IN_ROWS: Final = 0.8
"""Fewest rows of executions that show a steady loop, how many times the mean the longest may have,
and the least fraction of all executions that they contain."""
_IN_TRANSACTIONS: Final = 0.1
"""Least part of a template's rows that transactions explain, to be a loop within them."""
_AT_ONCE: Final = 0.15
_LEAST_AT_ONCE: Final = 2
"""Least fraction of the groups of 32 executions that the server executed without waiting, and the
fewest such groups, that show a pipeline. Clients that send more slowly than the server executes
leave pauses in the other groups. On a machine with load 5 to 20, pipelines had 0.22 to 0.87 of
them. A loop with round trips of 70 µs or more has none; the fastest over a local socket, with 40
µs, had up to 0.43. ``tests/calibration/test_pipelines.py`` simulates both."""


@dataclass(frozen=True, slots=True)
class ClientLoop:
    """A loop: its templates, the one with most time first, with the times of its executions in nanoseconds.

    `waiting_ns` is how long the server waited for the client between them, `longest` the most
    executions of a template in one pass. `parent_text` is the statement before the loop, empty if
    it is unknown. With `pipelined`, the client does not wait for each answer: in `waiting_ns`, the
    server handles messages, or the client sends them more slowly than the server executes them.
    """

    templates: tuple[int, ...]
    text: str
    executions: int
    longest: int
    sum_ns: int
    waiting_ns: int
    parent_text: str
    in_transaction: bool
    pipelined: bool = False


def is_loop(*, executions: int, parents: int, parent_executions: int, stretches: int, squares: float) -> bool:
    """Return whether executions of a template after a parent, outside of transactions, are a loop.

    `parents` of all `parent_executions` have the template after them; `squares` is the sum of the
    squares of the numbers of executions after each.
    """
    if not executions or not parents or parents < _LEAST_PART * parent_executions:
        return False
    variation = max(0.0, squares * parents / executions**2 - 1) ** 0.5
    steady = parents >= _LEAST_PARENTS and variation <= _MOST_VARIATION
    return steady or stretches >= _LEAST_STRETCHES


def is_steady(*, rows: int, repeated: int, longest: int, executions: int) -> bool:
    """Return whether rows of executions outside of transactions, with nothing in between, are a loop.

    `repeated` of all `executions` of the template are in rows. A client that sends nothing else has
    few rows, which end with its session: it may serve one request after another.
    """
    return rows >= _ROWS and longest * rows <= _LONGEST * repeated and repeated >= _IN_ROWS * executions


def is_pipeline(groups: int | None, at_once: int | None) -> bool:
    """Return whether a client sends further statements before answers arrive.

    `at_once` of the `groups` of 32 executions in a row followed each other without a pause of a round trip.
    """
    return bool(groups and at_once) and (at_once or 0) >= max(_LEAST_AT_ONCE, _AT_ONCE * (groups or 0))


def client_loops(result: LogResult) -> Iterator[ClientLoop]:
    """Yield the loops of a log: with other statements in between, and rows of a single template.

    Transactions wait for their client within rows and loops; what loops do not explain of that is in rows.
    """
    within_ns = sum(transaction.repeated_wait_ns for transaction in result.transactions)
    for loop in result.loops:
        waiting_ns = sum(template.waiting_ns for template in loop.templates)
        within_ns -= waiting_ns if loop.in_transaction else 0
        yield ClientLoop(
            tuple(template.number for template in loop.templates),
            loop.templates[0].text,
            sum(template.executions for template in loop.templates),
            max(template.longest for template in loop.templates),
            sum(template.sum_ns for template in loop.templates),
            waiting_ns,
            loop.parent_text,
            loop.in_transaction,
            loop.pipelined,
        )
    rows = [
        (template, template.repetition) for template in result.templates if template.repetition is not None
    ]
    for template, row in sorted(rows, key=lambda item: -item[1].waiting_ns):
        longest = _longest_transaction(template, result)
        part = min(1.0, max(0, within_ns) / max(1, row.waiting_ns)) if longest else 0.0
        if part >= _IN_TRANSACTIONS:
            within_ns -= round(part * row.waiting_ns)
            yield _row(template, row, part, min(row.longest, longest))
        elif row.pipelined or is_steady(
            rows=row.rows, repeated=row.executions, longest=row.longest, executions=template.executions
        ):
            yield _row(template, row, 1.0, 0)


def _row(template: TemplateFacts, row: Repetition, part: float, within: int) -> ClientLoop:
    """Return a part of the rows of a template; `within` is the length of the longest in a transaction."""
    return ClientLoop(
        (template.number,),
        template.text,
        round(part * row.executions),
        within or row.longest,
        round(part * row.sum_ns),
        round(part * row.waiting_ns),
        "",
        bool(within),
        row.pipelined,
    )


def _longest_transaction(template: TemplateFacts, result: LogResult) -> int:
    """Return the most statements of a transaction with rows, of the applications that sent a template."""
    names = {application.name for application in template.applications} or {""}
    return max(
        (
            transaction.statements_max
            for transaction in result.transactions
            if transaction.application in names and transaction.repeated_wait_ns
        ),
        default=0,
    )
