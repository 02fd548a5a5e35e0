"""Rewrite parameters that follow the name of a type, which the server cannot parse. Pure.

pg_stat_statements replaces the literal of ``date '2026-01-31'`` and stores ``date $1``. PostgreSQL rejects
that text, because only a literal may follow a type's name. libpg_query's grammar accepts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from uncork.profile.shapes.nodes import Token, kind_of, messages, parsed, rewritten, tokens_of

_UNITS: Final = frozenset({"YEAR_P", "MONTH_P", "DAY_P", "HOUR_P", "MINUTE_P", "SECOND_P"})


def rewrite_typed_parameters(sql: str) -> str:
    """Return the statement with ``$1::date`` for ``date $1``, and the same for every other type.

    An interval keeps its fields: ``interval $1 day to second`` becomes ``$1::interval day to second``. The
    rest of the text is unchanged, except that a comment between the type and its parameter is dropped. A text
    that the grammar rejects is returned as it is.
    """
    if "$" not in sql:
        return sql
    tree = parsed(sql)
    if tree is None:
        return sql
    tokens = tokens_of(sql)
    places = {token.start: place for place, token in enumerate(tokens)}
    changes = []
    whole = sql.encode()
    for first, start in sorted(_typed(tree)):
        place = places[start]
        name = whole[first : tokens[place - 1].end].decode()
        last = place if name.endswith(")") else _interval_end(tokens, places[first], place)
        fields = whole[tokens[place].end : tokens[last].end].decode()
        changes.append((first, tokens[last].end, f"{tokens[place].text}::{name}{fields}"))
    return rewritten(sql, changes)


def _typed(tree: Any) -> Iterator[tuple[int, int]]:
    """Yield the bytes at which the type and the parameter start, for each parameter after a type's name."""
    for cast in messages(tree, "TypeCast"):
        start = cast.arg.param_ref.location
        if kind_of(cast.arg) == "param_ref" and 0 <= cast.type_name.location < start:
            yield cast.type_name.location, start


def _interval_end(tokens: Sequence[Token], first: int, parameter: int) -> int:
    """Return the place of the last token of ``interval $1 day to second(3)``, else the parameter's."""
    kinds = [token.kind for token in tokens]
    last = parameter
    if kinds[first] != "INTERVAL" or kinds[last + 1 : last + 2] not in ([unit] for unit in _UNITS):
        return last
    last += 1
    if kinds[last + 1 : last + 2] == ["TO"]:
        last += 2
    if kinds[last] == "SECOND_P" and kinds[last + 1 : last + 2] == ["ASCII_40"]:
        last += 3
    return last
