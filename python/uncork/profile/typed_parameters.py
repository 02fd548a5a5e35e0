"""Rewrite parameters that follow the name of a type, which the server cannot parse. Pure.

pg_stat_statements replaces the literal of ``date '2026-01-31'`` and stores ``date $1``. PostgreSQL rejects
that text, because only a literal may follow a type's name. libpg_query's grammar accepts it.
"""

from __future__ import annotations

from typing import Any, Final

from uncork.profile.shapes.nodes import children, parsed, tokens_of

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
    places = {start: place for place, (start, _, _) in enumerate(tokens)}
    whole, end, pieces = sql.encode(), 0, []
    for type_start, start in sorted(_typed(tree)):
        place = places[start]
        name = whole[type_start : tokens[place - 1][1]].decode()
        stop = tokens[place][1]
        last = place if name.endswith(")") else _interval_end(tokens, places[type_start], place)
        fields = whole[stop : tokens[last][1]].decode()
        pieces += [whole[end:type_start].decode(), f"{whole[start:stop].decode()}::{name}{fields}"]
        end = tokens[last][1]
    return "".join([*pieces, whole[end:].decode()])


def _typed(message: Any) -> list[tuple[int, int]]:
    """Return the bytes at which the type and the parameter start, for each parameter after a type's name."""
    found = []
    if message.DESCRIPTOR.name == "TypeCast" and message.arg.WhichOneof("node") == "param_ref":
        start = message.arg.param_ref.location
        if 0 <= message.type_name.location < start:
            found.append((message.type_name.location, start))
    for _, one in children(message):
        found += _typed(one)
    return found


def _interval_end(tokens: list[tuple[int, int, str]], first: int, parameter: int) -> int:
    """Return the place of the last token of ``interval $1 day to second(3)``, else the parameter's."""
    kinds = [kind for _, _, kind in tokens]
    last = parameter
    if kinds[first] != "INTERVAL" or kinds[last + 1 : last + 2] not in ([unit] for unit in _UNITS):
        return last
    last += 1
    if kinds[last + 1 : last + 2] == ["TO"]:
        last += 2
    if kinds[last] == "SECOND_P" and kinds[last + 1 : last + 2] == ["ASCII_40"]:
        last += 3
    return last
