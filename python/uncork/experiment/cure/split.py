"""Write an UPDATE that adds to a counter as one that adds to a part of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from uncork.experiment.cure.rewrites import RewriteRefused
from uncork.experiment.spec.sqltext import masked, numbers_in, statements_in

_NAME: Final = r'(?:"[^"]+"|[\w$]+)'
_TABLE: Final = rf"{_NAME}(?:\.{_NAME})?"
_UPDATE: Final = re.compile(
    rf"""\s*UPDATE\s+(?:ONLY\s+)?(?P<table>{_TABLE})(?:\s+(?:AS\s+)?(?!SET\b){_NAME})?\s+
      SET\s+(?P<counter>{_NAME})\s*=\s*(?:{_NAME}\.)?(?P<same>{_NAME})\s*(?P<sign>[+-])\s*(?P<added>[^\s,()]+(?:\([^()]*\))?)\s+
      WHERE\s+(?P<where>.+?)\s*;?\s*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_EQUAL: Final = re.compile(
    rf"\s*\(?\s*(?:{_NAME}\.)?(?P<column>{_NAME})\s*=\s*(?P<value>[^\s()]+(?:\([^()]*\))?|'(?:[^']|'')*')\s*\)?\s*",
    re.DOTALL,
)
_INSERT: Final = re.compile(
    rf"INSERT\s+INTO\s+(?P<table>{_TABLE})\s*\((?P<columns>[^()]*)\)\s*"
    r"VALUES\s*\((?P<values>.*)\)\s*ON\s+CONFLICT\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_OTHER: Final = "The statement is not of the form UPDATE ... SET counter = counter + value WHERE key = value."


@dataclass(frozen=True, slots=True)
class Split:
    """A counter in parts: the script that makes them, the statement that adds, and the sums on both sides."""

    setup: str
    sql: str
    check: str
    baseline_check: str


def split_counter(update: str, change: str) -> Split:
    """Return how a captured UPDATE adds to a counter in parts.

    Args:
        update: the captured statement, with ``$1``, ``$2``, ... for its values.
        change: the SQL of the change: it creates the table of parts, and its last statement is an INSERT that
            adds 1 to a random part of the keys ``$1``, ``$2``, ....

    Raises:
        RewriteRefused: if the statement has another form, or the change fits no such statement.
    """
    found = _UPDATE.fullmatch(update)
    *setup, insert = statements_in(change) or [""]
    target = _INSERT.fullmatch(insert.strip())
    if target is None or not setup:
        raise RewriteRefused("The change has no statement that adds to a part.")
    if not re.match(r"\s*UPDATE\b", update, re.IGNORECASE):
        raise RewriteRefused(
            "The counter changes within a function or a trigger, which only a person can split."
        )
    if found is None or _plain(found["counter"]) != _plain(found["same"]):
        raise RewriteRefused(_OTHER)
    keys: dict[str, str] = {}
    for part in _conditions(found["where"]):
        equal = _EQUAL.fullmatch(part)
        if equal is None:
            raise RewriteRefused(_OTHER)
        keys[_plain(equal["column"])] = equal["value"]
    columns = [word.strip() for word in target["columns"].split(",")]
    own = [
        column
        for column in columns
        if _plain(column) != "part" and _plain(column) != _plain(found["counter"])
    ]
    if {_plain(one) for one in own} != set(keys):
        raise RewriteRefused("The statement chooses its row by other columns than the parts have.")
    part = _part_value(target["values"], columns)
    added = found["added"] if found["sign"] == "+" else f"-{found['added']}"
    given = {_plain(one): keys[_plain(one)] for one in own}
    given |= {"part": part, _plain(found["counter"]): added}
    values = ", ".join(given[_plain(column)] for column in columns)
    sql = (
        f"INSERT INTO {target['table']} ({', '.join(columns)}) VALUES ({values})\n"  # noqa: S608
        f"ON CONFLICT {target['rest'].strip()}"
    )
    return Split(
        setup=";\n".join(setup) + ";",
        sql=sql,
        check=_sums(own, found["counter"], target["table"]),
        baseline_check=_sums(own, found["counter"], found["table"]),
    )


def _plain(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.lower()


def _conditions(where: str) -> list[str]:
    """Return the conditions that AND joins."""
    if re.search(r"\b(?:OR|NOT|RETURNING|SELECT)\b", masked(where), re.IGNORECASE):
        raise RewriteRefused(_OTHER)
    return re.split(r"\bAND\b", where, flags=re.IGNORECASE)


def _part_value(values: str, columns: list[str]) -> str:
    """Return the expression that chooses a part: the one value of the INSERT that is no key and not 1."""
    place = columns.index("part") if "part" in columns else -1
    found = [word.strip() for word in re.split(r",(?![^()]*\))", values)]
    if place < 0 or len(found) != len(columns) or numbers_in(found[place]):
        raise RewriteRefused("The change does not say how a part is chosen.")
    return found[place]


def _sums(keys: list[str], counter: str, table: str) -> str:
    by = ", ".join(keys)
    return f"SELECT {by}, sum({counter}) FROM {table} GROUP BY {by} ORDER BY {by}"  # noqa: S608
