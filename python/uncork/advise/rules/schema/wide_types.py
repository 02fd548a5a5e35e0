"""Columns of text that hold only UUIDs or whole numbers, and are joined or sorted. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, worth
from uncork.advise.traffic import repeated
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.plan import PlanNode
from uncork.model.units import count_words

__all__ = ["RULE"]

_TEXTS: Final = frozenset({"text", "character varying", "character"})
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"0|[1-9]\d{0,17}")
"""A whole number that bigint prints the same way: without leading zeros."""
_VALUES: Final = 10
"""Fewest known values (common ones and bounds of the histogram) that must all have the form."""
_DIGITS: Final = 10.0
"""Least average width of numbers: a shorter text takes hardly more space than the 8 bytes of bigint."""
_JOINED: Final = 0.5
_SORTED: Final = 0.25
"""Parts of the time of joins by hash or merge, and of sorts and groups, that the type uuid saves: measured
with 200 000 rows on PostgreSQL 18 (0.75 s against 0.30 s, and 0.39 s against 0.26 s)."""
_ROWS: Final = 10_000.0
"""Fewest rows that a step must handle for the type of its keys to matter."""
_KEYS: Final = {"Sort": "Sort Key", "Incremental Sort": "Sort Key", "Aggregate": "Group Key"}
_CONDITIONS: Final = {"Hash Join": "Hash Cond", "Merge Join": "Merge Cond"}


def _find(seen: Evidence) -> Iterator[Finding]:
    wide = {
        (column.table, column.name): (column, kind)
        for columns in seen.catalogue.columns.values()
        for column in columns
        if (kind := _kind(column))
    }
    if not wide:
        return
    parts: dict[int, float] = {}
    used: dict[tuple[str, str], float] = defaultdict(float)
    for one in seen.statements.values():
        if one.plan is None or not repeated(one, seen):
            continue
        found = list(_steps(one, one.plan.root, {key: column for key, (column, _) in wide.items()}))
        part = min(1.0, sum(share for share, _ in found))
        if part:
            parts[one.number] = part
            for share, keys in found:
                for key in keys:
                    used[key] += share * seen.busy(one.number)
    bill = seen.bill_of(parts)
    if used and worth(bill):
        names = sorted(used, key=lambda key: (-used[key], key))
        numbers = sorted(parts, key=lambda number: -parts[number] * seen.busy(number))
        columns = [wide[key] for key in names]
        kinds = "UUIDs" if all(kind == "uuid" for _, kind in columns) else "numbers"
        first = columns[0][0]
        yield Finding(
            RULE.name,
            f"Column {first.name} of table {first.table} stores {kinds} as text, a key of joins or sorts",
            objects=tuple(f"{table}.{name}" for table, name in names),
            bill=bill,
            templates=tuple(numbers),
            statement=seen.statements[numbers[0]].text,
            evidence=tuple(_evidence(column, kind) for column, kind in columns),
            candidates=(_candidate(columns),),
            proof="Compare the statements with both types on a copy with uncork run.",
        )


def _kind(column: ColumnFacts) -> str:
    """Return the type that fits all known values of a column of text; an empty string if none does."""
    values = {value.rstrip() for value, _ in column.common} | {value.rstrip() for value in column.bounds}
    if column.type not in _TEXTS or len(values) < _VALUES:
        return ""
    if all(_UUID.fullmatch(value) for value in values):
        return "uuid"
    digits = all(_NUMBER.fullmatch(value) for value in values)
    return "bigint" if digits and (column.width or 0.0) >= _DIGITS else ""


def _steps(
    one: Statement, root: PlanNode, wide: dict[tuple[str, str], ColumnFacts]
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
            yield (_JOINED if joins else _SORTED) * max(0.0, own) / root.cost, keys


def _scanned(node: PlanNode) -> float:
    """Return the cost of what a step reads: below the hash that belongs to the step itself."""
    return sum(_scanned(child) for child in node.children) if node.kind == "Hash" else node.cost


def _names(text: str, alias: str, column: str, alone: bool) -> bool:
    name = rf'"?{re.escape(column)}"?(?![\w$])'
    prefix = rf'(?<![\w$."])"?{re.escape(alias)}"?\.'
    return re.search(prefix + name, text) is not None or (
        alone and re.search(rf'(?<![\w$."]){name}', text) is not None
    )


def _evidence(column: ColumnFacts, kind: str) -> str:
    form = "UUIDs" if kind == "uuid" else "whole numbers"
    known = count_words(len({*dict(column.common), *column.bounds}), "value")
    size = 16 if kind == "uuid" else 8
    return (
        f"All {known} of {column.table}.{column.name} in its statistics are {form}: "
        f"{round(column.width or 0)} bytes each as {column.type}, {size} as {kind}."
    )


def _candidate(columns: Sequence[tuple[ColumnFacts, str]]) -> Candidate:
    """Return the change of all columns at once: joined columns must have the same type."""

    def alter(column: ColumnFacts, kind: str) -> str:
        name = quoted(column.name)
        return f"ALTER TABLE {sql_name(column.table)} ALTER COLUMN {name} TYPE {kind} USING {name}::{kind};"

    return Candidate(
        "ddl",
        "Give the columns their own type, and all columns that refer to them.",
        sql=" ".join(alter(column, kind) for column, kind in columns),
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
