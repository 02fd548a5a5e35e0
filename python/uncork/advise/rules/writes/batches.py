"""The statement that does for many rows what another does for one. Pure."""

from __future__ import annotations

import re
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rules.writes.written import Written, written
from uncork.model.database.names import quoted, sql_name

_PARAMETER: Final = r"=\s*\$(\d+)(?![\w\[])(?:::[\w ]+)?"
_VALUES: Final = re.compile(r"values\s*\(\s*\$\d+(?:\s*,\s*\$\d+)*\s*\)[\s;]*$", re.IGNORECASE)
"""One row of values, each of which is a parameter."""


def batched(statement: Statement, evidence: Evidence) -> str:
    """Return one statement for many keys or rows in arrays; empty if types or the text are not understood."""
    what = written(statement)
    if what is None or what.kind == "lock":
        return _lookup(statement)
    if what.kind == "delete":
        return _lookup(statement) if len(what.keys) == 1 else ""
    if what.upsert or (what.kind == "update" and (not what.keys or what.counter)):
        return ""
    return _insert(statement, what, evidence) if what.kind == "insert" else _update(statement, what, evidence)


def _lookup(statement: Statement) -> str:
    """Compare the only parameter with an array: WHERE id = $1 becomes WHERE id = ANY ($1)."""
    shape = statement.shape
    if shape is None or shape.aggregates or shape.grouping or shape.distinct or shape.limit or shape.unions:
        return ""
    found = re.findall(_PARAMETER, statement.sql)
    if len(found) != 1 or statement.sql.count("$") != 1:
        return ""
    return re.sub(_PARAMETER, r"= ANY ($\1)", statement.sql).rstrip("; ") + ";"


def _types(table: str, columns: tuple[str, ...], evidence: Evidence) -> list[str]:
    facts = [evidence.column(table, column) for column in columns]
    return [fact.type for fact in facts if fact is not None]


def _arrays(types: list[str]) -> str:
    return ", ".join(f"${number}::{name}[]" for number, name in enumerate(types, 1))


def _insert(statement: Statement, what: Written, evidence: Evidence) -> str:
    types = _types(what.table, what.sets, evidence)
    if not what.sets or len(types) != len(what.sets) or not _VALUES.search(statement.sql):
        return ""
    names = ", ".join(map(quoted, what.sets))
    return f"INSERT INTO {sql_name(what.table)} ({names}) SELECT * FROM unnest({_arrays(types)});"  # noqa: S608


def _update(statement: Statement, what: Written, evidence: Evidence) -> str:
    if not all(
        re.search(rf'(?<![\w"]){re.escape(name)}"?\s*=\s*\$\d+\s*(?:,|where)', statement.sql, re.I)
        for name in what.sets
    ):
        return ""
    columns = (*what.keys, *what.sets)
    types = _types(what.table, columns, evidence)
    if len(types) != len(columns) or set(what.keys) & set(what.sets):
        return ""
    sets = ", ".join(f"{quoted(name)} = new.{quoted(name)}" for name in what.sets)
    same = " AND ".join(f"old.{quoted(name)} = new.{quoted(name)}" for name in what.keys)
    return (
        f"UPDATE {sql_name(what.table)} AS old SET {sets} "  # noqa: S608
        f"FROM unnest({_arrays(types)}) AS new ({', '.join(map(quoted, columns))}) WHERE {same};"
    )
