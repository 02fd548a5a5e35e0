"""Send captured statements as one operation: their texts, their values, and the time it takes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.experiment.cure.text import parameter_line
from uncork.experiment.spec.sqltext import numbers_in, plain_colons, renumbered
from uncork.model.database.workload import CapturedStatement
from uncork.model.results.cure import StatementEffect

_MOST_SETS: Final = 100
_NS: Final = 1e9


def usable_sets(statement: CapturedStatement) -> list[tuple[str | None, ...]]:
    """Return the captured sets that have a value for each parameter of a statement."""
    most = max(numbers_in(statement.sql), default=0)
    return [each for each in statement.sets if len(each) >= most][:_MOST_SETS]


def statement_texts(statements: Sequence[CapturedStatement]) -> list[str]:
    """Return the text of each statement of an operation, with a name for each parameter."""
    return [
        renumbered(
            plain_colons(statement.sql.strip().rstrip("; \n")),
            {number: f":{prefix}p{number}" for number in numbers_in(statement.sql)},
        )
        for statement, prefix, _ in _placed(statements)
    ]


def parameters_of(statements: Sequence[CapturedStatement]) -> list[str]:
    """Return the lines that give the parameters of an operation their captured values.

    Executions of one statement in an operation have different values.
    """
    found = []
    for statement, prefix, place in _placed(statements):
        sets = usable_sets(statement)
        turned = [*sets[place - 1 :], *sets[: place - 1]] if place <= len(sets) else sets
        found += [parameter_line(number, turned, prefix) for number in sorted(numbers_in(statement.sql))]
    return found


def _placed(statements: Sequence[CapturedStatement]) -> Iterator[tuple[CapturedStatement, str, int]]:
    """Yield each statement with the prefix of its parameters, and which execution of it this is, from 1."""
    seen: dict[int, int] = {}
    for statement in statements:
        place = seen[statement.template] = seen.get(statement.template, 0) + 1
        yield statement, f"s{statement.template}_" if place == 1 else f"s{statement.template}_{place}_", place


def effect_of_times(effect: StatementEffect) -> StatementEffect:
    """Return an effect on the time of an operation, from one on operations a second of all clients."""

    def inverse(value: float | None) -> float | None:
        return 1 / value if value else None

    def time_ns(rate: float | None) -> float | None:
        return effect.clients * _NS / rate if rate else None

    return replace(
        effect,
        before_ns=time_ns(effect.before_ns),
        after_ns=time_ns(effect.after_ns),
        ratio=inverse(effect.ratio),
        low=inverse(effect.high),
        high=inverse(effect.low),
    )
