"""Predicates read from the filters of a plan, for tables that a statement reads through a view. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import Predicate

__all__ = ["filter_predicates"]

_NAME: Final = r"\(*(?:\"?\w+\"?\.)?\"?(?P<column>\w+)\"?\)?(?:::(?P<cast>[a-z][a-z ]*\w))?\)?"
_COMPARED: Final = re.compile(rf"{_NAME} (?P<operator>=|<=?|>=?|~~\*?|@>|&&|@@) (?P<value>[^()]+|ANY .+?)\)*")
_TESTED: Final = re.compile(rf"{_NAME} IS NULL\)*")
_WORDS: Final = {"~~": "like", "~~*": "ilike"}
_LITERAL: Final = re.compile(r"'((?:[^']|'')*)'(?:::[\w ]+)?|(-?\d+(?:\.\d+)?)")
_TEXTS: Final = ("text", "")
"""PostgreSQL prints a cast of varchar columns to text, which changes nothing."""


def filter_predicates(node: PlanNode, table: str) -> Iterator[Predicate]:
    """Yield the simple comparisons of a scan's filter; all of them must hold. An OR yields none."""
    for part in node.condition("Filter").split(" AND "):
        if " OR " in part:
            continue
        tested, compared = _TESTED.fullmatch(part), _COMPARED.fullmatch(part)
        if tested is not None and not tested["cast"]:
            yield Predicate(table, tested["column"], "is null", "none", alias=node.alias)
        elif compared is not None and (compared["cast"] or "") in _TEXTS:
            operator, value = compared["operator"], compared["value"]
            found = _LITERAL.fullmatch(value)
            many = value.startswith("ANY")
            yield Predicate(
                table,
                compared["column"],
                "in" if many and operator == "=" else _WORDS.get(operator, operator),
                "constant" if found else "parameter",
                alias=node.alias,
                literal=(found[1] or found[2] or "") if found else None,
            )
