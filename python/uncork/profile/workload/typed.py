"""Give parameters the types that a client gave them, if the server cannot infer them. Pure.

The server rejects ``generate_series($1, $2)`` and ``$1 + $2``: several functions or operators take parameters
of unknown type. The client's driver named the types, which no view shows to other sessions. They follow from
the values that were seen, and from the columns with which parameters are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Final

from uncork.profile.shapes.nodes import tokens_of
from uncork.profile.workload.known import Known
from uncork.profile.workload.roles import Parameter, TakenApart, take_apart

_WHOLE: Final = re.compile(r"[+-]?\d{1,18}")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE)
_BOOLEANS: Final = frozenset({"t", "f", "true", "false"})
_LARGEST: Final = 2**31 - 1
_ORDERED: Final = ("integer", "bigint", "numeric", "double precision")
"""Types of numbers, in the order in which they are tried: drivers send whole numbers as the first ones."""


def typed_texts(sql: str, sets: Sequence[Sequence[str | None]], known: Known) -> Iterator[str]:
    """Yield texts of a statement with casts of parameters, the most likely ones first.

    The first texts leave parameters that are compared with a column as they are.
    """
    apart = take_apart(
        sql, {name: [column.name for column in found] for name, found in known.catalogue.columns.items()}
    )
    if apart is None:
        return
    for columns in (False, True):
        for least in range(len(_ORDERED)):
            types = {
                parameter.number: kind
                for parameter in apart.parameters
                if (kind := _type_of(parameter, apart, sets, known, columns=columns, least=least))
            }
            if types:
                yield _with_casts(sql, types)


def _type_of(
    parameter: Parameter,
    statement: TakenApart,
    sets: Sequence[Sequence[str | None]],
    known: Known,
    *,
    columns: bool,
    least: int,
) -> str:
    """Return the type of a parameter; empty to leave it as it is."""
    if parameter.role == "shift":
        beside = [each for each in statement.parameters if each.role in ("lower", "upper", "equal")]
        before = [
            each for each in beside if each.number < parameter.number
        ]  # the nearest is what it is added to
        column = known.column([*beside[:1], *before][-1]) if beside else None
        kind = "" if column is None else column.column.type
        return {"": "", "date": "integer"}.get(kind, "interval" if kind.startswith("time") else kind)
    if parameter.role != "other":
        column = known.column(parameter) if columns and parameter.shape == "value" else None
        if column is None or parameter.role not in ("lower", "upper", "equal", "unequal"):
            return ""
        return column.column.storage_type
    return _type_of_values([sequence[parameter.number - 1] for sequence in sets], least)


def _type_of_values(values: Sequence[str | None], least: int) -> str:
    """Return the type of all values, a number at least as wide as the type at the place `least`."""
    given = [value for value in values if value is not None]
    if not given:
        return ""
    if all(_WHOLE.fullmatch(text) for text in given):
        large = any(abs(int(text)) > _LARGEST for text in given)
        return _ORDERED[max(least, int(large))]
    if all(_NUMBER.fullmatch(text) for text in given):
        return _ORDERED[max(least, 2)]
    if all(text.lower() in _BOOLEANS for text in given):
        return "boolean"
    if all(map(_is_date, given)):
        return "date"
    return "timestamp with time zone" if all(map(_is_time, given)) else "text"


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _with_casts(sql: str, types: Mapping[int, str]) -> str:
    """Return a statement with a cast of each parameter that has none."""
    whole, end, pieces = sql.encode(), 0, []
    for start, stop, kind in tokens_of(sql):
        number = int(whole[start + 1 : stop]) if kind == "PARAM" else 0
        if number in types and not whole[stop:].lstrip().startswith(b"::"):
            pieces.append(f"{whole[end:stop].decode()}::{types[number]}")
            end = stop
    return "".join([*pieces, whole[end:].decode()])
