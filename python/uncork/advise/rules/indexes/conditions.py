"""Rewrite a condition so that it compares a column as it is stored. Pure.

Each rewrite means the same for all values that have the column's type. A text that is not recognised returns
an empty text: then the candidate is a sentence only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

_NAME: Final = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
_TYPE: Final = (
    r"[A-Za-z_]\w*(?:\s+(?:precision|varying|with(?:out)?\s+time\s+zone))?"
    r"(?:\s*\(\s*\d+(?:\s*,\s*\d+)?\s*\))?"
)
_OPERAND: Final = rf"\$\d+(?:\s*::\s*{_TYPE})?"
_DAY: Final = re.compile(
    r"\$\d+(?:\s*::\s*date)?(?:\s*[+-]\s*\$\d+(?:\s*::\s*(?:int[248]?|integer|smallint|bigint))?)*",
    re.IGNORECASE,
)
"""A value that is a date and not a time."""
_VALUE: Final = rf"(?P<value>{_OPERAND}(?:\s*[+-]\s*{_OPERAND})*)"
_AFTER: Final = (
    r"(?=\s*(?:$|;|\)|(?:AND|OR|ORDER|GROUP|LIMIT|OFFSET|HAVING|FOR|UNION|EXCEPT|INTERSECT|RETURNING|FETCH|"
    r"WINDOW)\b))"
)
_WRITTEN: Final = {
    "character varying": r"(?:character\s+varying|varchar)",
    "double precision": r"(?:double\s+precision|float8|float)",
    "numeric": r"(?:numeric|decimal)",
    "bigint": r"(?:bigint|int8)",
    "integer": r"(?:integer|int4|int)",
}


def as_range(sql: str, column: str) -> str:
    """Return a statement that compares a timestamp with the bounds of a day, without a cast."""

    def bounds(match: re.Match[str]) -> str:
        if _DAY.fullmatch(match["value"]) is None:
            return ""
        side, day = match["side"], _as(match["value"], "date")
        return f"({side} >= {day} AND {side} < {day} + 1)"

    called = rf"(?<![\w$.])date\s*\(\s*{_side(column)}\s*\)"
    return _once(sql, [called, *_casts(column, "date")], bounds)


def also_in_day(sql: str, column: str) -> str:
    """Return a statement that also compares a timestamp with the bounds of the day whose text it compares.

    The old condition stays, so that a text in another format of dates finds no other row.
    """

    def both(match: re.Match[str]) -> str:
        side, text = match["side"], _as(match["value"], "text")
        old = match[0][: match.start("value") - match.start()].rstrip()
        return f"({side} >= ({text})::date AND {side} < ({text})::date + 1 AND {old} {text})"

    kinds = rf"\s*::\s*(?:text|varchar|{_WRITTEN['character varying']})"
    sides = [
        form for days in _casts(column, "date") for form in (f"{days}{kinds}", rf"\(\s*{days}\s*\){kinds}")
    ]
    return _once(sql, sides, both)


def also_as_stored(sql: str, column: str, stored: str, *, cast: str = "", value_cast: str = "") -> str:
    """Return a statement that also compares a column with the value in the column's own type.

    The old condition stays, so that a value that is rounded on the way finds no other row. `cast` is the type
    to which the statement casts the column, `value_cast` the type to which it casts the value; one is given.
    """

    def both(match: re.Match[str]) -> str:
        value = _as(match["value"], cast or value_cast)
        old = match[0][: match.start("value") - match.start()].rstrip()
        return f"({match['side']} = {value}::{stored} AND {old} {value})"

    if cast:
        return _once(sql, _casts(column, cast), both)
    written = _WRITTEN.get(value_cast, re.escape(value_cast))
    return _once(sql, [_side(column)], both, rf"(?P<value>\$\d+\s*::\s*{written})")


def as_containment(sql: str, column: str, kind: str) -> str:
    """Return a statement that searches arrays for a value with ``@>``, which a GIN index serves.

    `kind` is the column's type: an array of a parameter without a cast would have the type text[]. The
    result is empty if `kind` is unknown.
    """
    pattern = rf"(?P<value>{_OPERAND})\s*=\s*ANY\s*\(\s*{_side(column)}\s*\)"
    found = list(re.finditer(pattern, sql, re.IGNORECASE))
    if len(found) != 1 or not kind.endswith("[]"):
        return ""
    (one,) = found
    return f"{sql[: one.start()]}{one['side']} @> ARRAY[{one['value']}]::{kind}{sql[one.end() :]}"


def with_type(sql: str, column: str, kind: str) -> str:
    """Return a statement with the type that a client gives to the parameter compared with a column."""
    return _once(sql, [_side(column)], lambda match: f"{match[0]}::{kind}", r"(?P<value>\$\d+)")


def _side(column: str) -> str:
    plain = re.escape(column)
    return rf'(?<![\w$".])(?P<side>(?:{_NAME}\s*\.\s*)?(?:"{plain}"|{plain}(?![\w$])))'


def _casts(column: str, kind: str) -> list[str]:
    """Return the forms in which a statement casts a column."""
    written, side = _WRITTEN.get(kind, re.escape(kind)), _side(column)
    return [
        rf"{side}\s*::\s*{written}\b",
        rf"\(\s*{side}\s*\)\s*::\s*{written}\b",
        rf"(?<![\w$.])CAST\s*\(\s*{side}\s+AS\s+{written}\s*\)",
    ]


def _once(sql: str, sides: Sequence[str], new: Callable[[re.Match[str]], str], value: str = _VALUE) -> str:
    """Return a statement with its only condition of this form replaced; empty without exactly one."""
    found = [
        match for side in sides for match in re.finditer(rf"{side}\s*=\s*{value}{_AFTER}", sql, re.IGNORECASE)
    ]
    if len(found) != 1:
        return ""
    (one,) = found
    text = new(one)
    return sql[: one.start()] + text + sql[one.end() :] if text else ""


def _as(value: str, kind: str) -> str:
    """Return a value with a cast to a type, unless it has that cast."""
    if re.fullmatch(r"\$\d+", value):
        return f"{value}::{kind}"
    written = _WRITTEN.get(kind, re.escape(kind))
    if re.fullmatch(rf"\$\d+\s*::\s*{written}", value, re.IGNORECASE):
        return value
    return f"({value})::{kind}"
