"""What statements write through functions that they call, and through triggers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rules.writes.written import Written, written
from uncork.model.database.catalogue import FunctionFacts

__all__ = ["functions_of", "updated_within"]

_UPDATE: Final = re.compile(r"(?<![\w$])update\s+[^;]+")
_EQUAL: Final = re.compile(r"(=\s*)(?:new\.|old\.)?(?:[\w$]+|'[^']*')(?=\s*(?:and\b|$|\)))")


def updated_within(one: Statement, seen: Evidence) -> tuple[str, Written] | None:
    """Return the only table that functions of a statement update, with the function's name; else None."""
    found = {
        what.table: (function.name, what)
        for function in functions_of(one, seen)
        for what in _updates(function.source)
    }
    return next(iter(found.values())) if len(found) == 1 else None


def functions_of(one: Statement, seen: Evidence) -> Iterator[FunctionFacts]:
    """Yield the functions of users that a statement calls, and those of triggers that it fires."""
    what = written(one)
    called = set() if one.shape is None else set(one.shape.functions)
    if what is not None:
        called |= {
            trigger.function.partition("(")[0]
            for trigger in seen.catalogue.triggers
            if trigger.table == what.table and trigger.enabled and what.kind in map(str.lower, trigger.events)
        }
    short = {name.rpartition(".")[2] for name in called}
    for function in seen.catalogue.functions:
        if function.name.rpartition(".")[2] in short:
            yield function


def _updates(source: str) -> Iterator[Written]:
    """Yield what the UPDATE statements of a function write; its variables count as parameters."""
    for match in _UPDATE.finditer(source.lower()):
        head, where, condition = match[0].partition("where")
        values = _EQUAL.sub(lambda value: f"{value[1]}?", condition)
        what = written(Statement(-1, f"{head}{where}{values}".strip()))
        if what is not None and what.sets:
            yield what
