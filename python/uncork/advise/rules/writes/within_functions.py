"""What statements execute and write through functions that they call, and through triggers. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement, known_shape
from uncork.advise.rules.writes.written import Written, written

if TYPE_CHECKING:
    from uncork.model.database.catalogue import FunctionFacts, TriggerFacts

_DEEPEST: Final = 3
"""Functions within each other that are followed."""


@dataclass(frozen=True, slots=True)
class Within:
    """A statement in the body of a function that `outer` executes, itself or through other functions.

    `statement` has the number and the counters of `outer`, but not its rows. `trigger` is empty if the
    function is called.
    """

    outer: Statement
    statement: Statement
    function: str
    trigger: str


def executed_within(outer: Statement, evidence: Evidence) -> tuple[Within, ...]:
    """Return the statements that a statement may execute within functions; a function counts once."""
    found: list[Within] = []
    known: set[str] = set()
    level = [outer]
    for _ in range(_DEEPEST):
        new = []
        for function, trigger in [pair for statement in level for pair in _calls(statement, evidence)]:
            if function.name in known or function.calls == 0:
                continue
            known.add(function.name)
            for sql, shape in evidence.take_body(function.source) if function.source else ():
                inner = replace(
                    outer,
                    text=sql.lower(),
                    sql=sql,
                    shape_of=known_shape(shape),
                    rows=None,
                    plans=(),
                    assigned=(),
                    compared={},
                )
                new.append(inner)
                name = "" if trigger is None else trigger.name
                found.append(Within(outer, inner, function.name, name))
        level = new
    return tuple(found)


def updated_within(statement: Statement, evidence: Evidence) -> tuple[str, Written] | None:
    """Return the only table that functions of a statement update, with the function's name; else None."""
    found: dict[str, tuple[str, Written]] = {}
    for each in executed_within(statement, evidence):
        what = written(each.statement)
        if what is not None and (what.kind == "update" or what.upsert) and what.sets:
            found[what.table] = (each.function, what)
    return next(iter(found.values())) if len(found) == 1 else None


def functions_of(statement: Statement, evidence: Evidence) -> Iterator[FunctionFacts]:
    """Yield the user-defined functions that a statement calls, directly or by triggers."""
    known = set()
    for function, _ in _calls(statement, evidence):
        if function.name not in known:
            known.add(function.name)
            yield function


def _calls(statement: Statement, evidence: Evidence) -> Iterator[tuple[FunctionFacts, TriggerFacts | None]]:
    """Yield the functions that a statement calls, then the functions of its triggers with the trigger."""
    if not evidence.catalogue.functions:
        return
    what = written(statement)
    called: dict[str, TriggerFacts | None] = {}
    if statement.shape is not None:
        called = {name.rpartition(".")[2]: None for name in statement.shape.functions}
    if what is not None:
        events = {what.kind, "update"} if what.upsert else {what.kind}
        for trigger in evidence.catalogue.triggers:
            if (
                trigger.table == what.table
                and trigger.enabled
                and events & set(map(str.lower, trigger.events))
            ):
                called.setdefault(trigger.function.partition("(")[0].rpartition(".")[2], trigger)
    for function in evidence.catalogue.functions:
        short = function.name.rpartition(".")[2]
        if short in called:
            yield function, called[short]
