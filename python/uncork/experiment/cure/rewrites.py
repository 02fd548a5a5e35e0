"""Give a rewritten statement the parameters of the captured one. Pure.

A rule writes its text with the parameters of pg_stat_statements, one for each value of the template. A
captured statement can have values in its text that never differed; its other parameters then have other
numbers. The two are aligned token by token.
"""

from __future__ import annotations

import re
from typing import Final

from uncork.experiment.spec.sqltext import numbers_in, renumbered

_TOKEN: Final = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?\*/
      | (?P<token> [eE]?'(?:[^'\\]|\\.|'')*' | "(?:[^"]|"")*" | \$\d+ | \d+(?:\.\d+)?(?:[eE][+-]?\d+)?
          | [A-Za-z_\u0080-\uffff][\w$]* | . )""",
    re.VERBOSE | re.DOTALL,
)
_LITERAL: Final = re.compile(r"[eE]?'.*'|\d.*|null|true|false|\$\d+", re.DOTALL | re.IGNORECASE)


class Refused(Exception):
    """An experiment on a copy cannot prove a change; the text is the reason, as a sentence."""


def with_captured_parameters(sql: str, template: str, captured: str) -> str:
    """Return a rewritten statement with the parameters, or the values, that the captured statement has.

    ``$n`` in `sql` stands for the n-th value of the template, which has ``?`` for each value, and is empty if
    the numbers are those of `captured`. Raises Refused if the captured statement lacks a value.
    """
    values = _identity(captured) if not template else _values(template, captured)
    unknown = sorted(numbers_in(sql) - values.keys())
    if unknown:
        raise Refused(
            f"The new text needs a value for ${unknown[0]} that the captured statement does not have; the "
            "application must provide it."
        )
    return renumbered(sql, values)


def _identity(captured: str) -> dict[int, str]:
    return {number: f"${number}" for number in numbers_in(captured)}


def _values(template: str, captured: str) -> dict[int, str]:
    """Return what the captured statement has in place of each value of its template, by number from 1."""
    found: dict[int, str] = {}
    there = _tokens(captured)
    place = 0
    for token in _tokens(template):
        value = "".join(there[place : place + 1])
        if token == "?":  # noqa: S105 -- a token of SQL
            sign = value if value == "-" else ""
            place += len(sign)
            value = "".join(there[place : place + 1])
            if not _LITERAL.fullmatch(value):
                raise _other_form()
            found[len(found) + 1] = sign + value
        elif value.lower() != token.lower():
            raise _other_form()
        place += 1
    if place != len(there):
        raise _other_form()
    return found


def _other_form() -> Refused:
    return Refused(
        "The captured statement has another form than the one that the new text replaces, so its values do "
        "not fit."
    )


def _tokens(sql: str) -> list[str]:
    text = sql.strip().rstrip(";").rstrip()
    return [match["token"] for match in _TOKEN.finditer(text) if match["token"]]
