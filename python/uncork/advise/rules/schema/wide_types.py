"""Columns whose type is wider than their values, and that are joined or sorted. Pure.

Text that holds only UUIDs, whole numbers or times, numeric for whole numbers, and padded character(n).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import count_words

if TYPE_CHECKING:
    from uncork.model.database.catalogue import ColumnFacts
    from uncork.model.database.plan import PlanNode

_TEXTS: Final = frozenset({"text", "character varying", "character"})
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"0|[1-9]\d{0,17}")
"""A whole number that bigint prints the same way: without leading zeros."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?")
_WHOLE: Final = re.compile(r"numeric\((\d+)(?:,0)?\)")
_MOST_DIGITS: Final = 18
_PADDED: Final = 2.0
"""Width of a value with its spaces, in multiples of its own length, from which on padding costs time."""
_VALUES: Final = 10
"""Fewest known values (common ones and bounds of the histogram) that must all have the form."""
_DIGITS: Final = 10.0
"""Least average width of numbers: a shorter text takes hardly more space than the 8 bytes of bigint."""
_ROWS: Final = 10_000.0
"""Fewest rows that a step must handle for the type of its keys to matter."""
_KEYS: Final = {"Sort": "Sort Key", "Incremental Sort": "Sort Key", "Aggregate": "Group Key"}
_CONDITIONS: Final = {"Hash Join": "Hash Cond", "Merge Join": "Merge Cond"}


def _find(evidence: Evidence) -> Iterator[Finding]:
    wide = {
        (column.table, column.name): (column, better)
        for columns in evidence.catalogue.columns.values()
        for column in columns
        if (better := _better(column)) is not None
    }
    if not wide:
        return
    parts: dict[int, float] = {}
    used: dict[tuple[str, str], float] = defaultdict(float)
    for statement in evidence.statements.values():
        if statement.plan is None or not evidence.is_traffic(statement):
            continue
        found = list(
            _steps(statement, statement.plan.root, {key: better for key, (_, better) in wide.items()})
        )
        part = min(1.0, sum(share for share, _ in found))
        if part:
            parts[statement.number] = part
            for share, keys in found:
                for key in keys:
                    used[key] += share * evidence.busy(statement.number)
    if used:
        names = sorted(used, key=lambda key: (-used[key], key))
        numbers = evidence.by_cost(parts)
        columns = [wide[key] for key in names]
        first, better = columns[0]
        yield Finding(
            RULE.name,
            f"Column {first.name} of table {first.table} stores {better.what}, a key of joins or sorts",
            objects=tuple(f"{table}.{name}" for table, name in names),
            bill=evidence.bill_of(parts),
            templates=tuple(numbers),
            statement=evidence.statements[numbers[0]].text,
            evidence=tuple(_evidence(column, better) for column, better in columns),
            candidates=(_candidate(columns),),
            proof="Compare the statements with both types on a copy with uncork run.",
        )


@dataclass(frozen=True, slots=True)
class _Better:
    """A better type: what the column stores as which, and the parts of joins and of sorts that it saves."""

    type: str
    what: str
    joined: float
    sorted: float


_UUIDS: Final = _Better("uuid", "UUIDs as text", 0.5, 0.25)
_NUMBERS: Final = _Better("bigint", "numbers as text", 0.5, 0.25)
_TIMES: Final = _Better("timestamp", "times as text", 0.1, 0.29)
_INTEGERS: Final = _Better("bigint", "integers as numeric", 0.23, 0.25)
_SHORT: Final = _Better("text", "padded text", 0.07, 0.33)
"""The parts of the time of joins by hash or merge, and of sorts and groups, were measured with 200 000 rows:
UUIDs on PostgreSQL 18 (0.75 s against 0.30 s, and 0.39 s against 0.26 s), the others on 15, best of five. Of
sorts and groups, the one that saves less counts: times 90 % and 29 %, numeric 60 % and 25 %, character(36)
with 12 characters 36 % and 33 %."""


def _better(column: ColumnFacts) -> _Better | None:
    """Return the better type that fits all known values of a column; None if none does."""
    whole = _WHOLE.fullmatch(column.storage_type)
    if whole is not None:
        return _INTEGERS if int(whole[1]) <= _MOST_DIGITS else None
    values = {value.rstrip() for value, _ in column.common} | {value.rstrip() for value in column.bounds}
    if column.type not in _TEXTS or len(values) < _VALUES:
        return None
    for form, better in ((_UUID, _UUIDS), (_TIME, _TIMES)):
        if all(form.fullmatch(value) for value in values):
            return better
    width = column.width or 0.0
    if width >= _DIGITS and all(_NUMBER.fullmatch(value) for value in values):
        return _NUMBERS
    length = sum(map(len, values)) / len(values)
    return _SHORT if column.type == "character" and width >= _PADDED * max(1.0, length) else None


def _steps(
    statement: Statement, root: PlanNode, wide: Mapping[tuple[str, str], _Better]
) -> Iterator[tuple[float, list[tuple[str, str]]]]:
    """Yield the part of a plan's cost that each step saves, with the columns that it joins or sorts by."""
    relations = {node.alias or node.relation: node.relation for node in root.walk() if node.relation}
    for node in root.walk():
        joins = node.kind in _CONDITIONS
        texts = [node.condition(_CONDITIONS[node.kind])] if joins else node.key(_KEYS.get(node.kind, ""))
        keys = [
            key
            for alias, table in relations.items()
            for key in wide
            if key[0] == table and any(_names(text, alias, key[1], len(relations) == 1) for text in texts)
        ]
        handled = max([node.rows, *(child.rows for child in node.children)])
        if keys and handled >= _ROWS and root.cost:
            own = node.cost - sum(_scanned(child) for child in node.children)
            part = max(wide[key].joined if joins else wide[key].sorted for key in keys)
            yield part * max(0.0, own) / root.cost, keys


def _scanned(node: PlanNode) -> float:
    """Return the cost of what a step reads: below the hash that belongs to the step itself."""
    return sum(_scanned(child) for child in node.children) if node.kind == "Hash" else node.cost


def _names(text: str, alias: str, column: str, alone: bool) -> bool:
    name = rf'"?{re.escape(column)}"?(?![\w$])'
    prefix = rf'(?<![\w$."])"?{re.escape(alias)}"?\.'
    return re.search(prefix + name, text) is not None or (
        alone and re.search(rf'(?<![\w$."]){name}', text) is not None
    )


def _evidence(column: ColumnFacts, better: _Better) -> str:
    name, width = f"{column.table}.{column.name}", round(column.width or 0)
    if better is _INTEGERS:
        return f"{name} has the type {column.storage_type}: bigint, of 8 bytes, holds all of its values."
    known = count_words(len({*dict(column.common), *column.bounds}), "value")
    if better is _SHORT:
        return f"Each value of {name} takes {width} bytes, most of them spaces ({known} are known)."
    size = 16 if better is _UUIDS else 8
    return (
        f"All {known} of {name} in its statistics are {better.what.removesuffix(' as text')}: {width} bytes "
        f"each as {column.type}, {size} as {better.type}."
    )


def _candidate(columns: Sequence[tuple[ColumnFacts, _Better]]) -> Candidate:
    """Return the change of all columns at once: joined columns must have the same type."""

    def alter(column: ColumnFacts, kind: str) -> str:
        name = quoted(column.name)
        return f"ALTER TABLE {sql_name(column.table)} ALTER COLUMN {name} TYPE {kind} USING {name}::{kind};"

    return Candidate(
        "ddl",
        "Give the columns their own type, and all columns that refer to them.",
        sql=" ".join(alter(column, better.type) for column, better in columns),
        undo=" ".join(alter(column, column.storage_type) for column, _ in columns),
        same_answers=False,
        against=(
            "The change rewrites the tables and their indexes under a lock against reading and writing.",
            "It fails if a value outside the statistics has another form, or if a foreign key needs the "
            "old type.",
            "Clients get values of another type; statements that compare with text need a cast.",
        ),
    )


RULE: Final = Rule("wide-types", _find)
