"""What a statement writes or locks: the table, the columns that choose rows, and the assigned ones. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from uncork.advise.evidence import Statement

if TYPE_CHECKING:
    from uncork.model.database.statement import StatementShape

ONE_ROW: Final = 1.5
"""Rows per call up to which a statement writes single rows."""
_NAME: Final = r"(?:only\s+)?((?:\"[^\"]+\"|[\w$]+)(?:\.(?:\"[^\"]+\"|[\w$]+))?)"
_WRITE: Final = re.compile(rf"(?:insert\s+into|update|delete\s+from)\s+{_NAME}")
_LOCKING: Final = re.compile(r"\bfor\s+(?:no\s+key\s+)?update\b")
_FROM: Final = re.compile(rf"\bfrom\s+{_NAME}")
_WHERE: Final = re.compile(r"\bwhere\b(.*)", re.DOTALL)
_SET: Final = re.compile(r"\bset\s+(.*?)(?:\bwhere\b|\breturning\b|\bfrom\b|$)", re.DOTALL)
_KEY: Final = re.compile(r"(?:[\w$\"]+\.)?\"?([\w$]+)\"?\s*=\s*\?")
_ASSIGNED: Final = re.compile(r"(?:^|,)\s*\"?([\w$]+)\"?\s*=")
_CONFLICT: Final = re.compile(r"\bon\s+conflict\s*\(([\w$\", ]+)\)")
_COUNTS: Final = re.compile(
    r"(?<![\w$.\"])\"?([\w$]+)\"?\s*=\s*(?:coalesce\s*\(\s*)?(?:[\w$\"]+\.)?\"?\1\"?"
    r"(?:\s*,\s*\?\s*\))?\s*[+-]\s"
)
"""An assignment such as ``n = n + 1``."""

Kind = Literal["insert", "update", "delete", "lock"]
ROW_WORDS: Final[dict[Kind, str]] = {
    "insert": "inserts {rows} into {table}",
    "update": "updates {rows} of {table}",
    "delete": "deletes {rows} from {table}",
    "lock": "locks {rows} of {table}",
}
"""What a client does to rows of a table."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a statement writes. `kind` is "lock" for SELECT ... FOR UPDATE.

    `keys` are the columns of the table that it compares with a parameter or a constant for equality, `sets`
    the columns that it assigns or inserts. `counter` is the column to which it adds or from which it
    subtracts, "" if none. `upsert` is true for ON CONFLICT DO UPDATE. `limited` is true for LIMIT, `skips`
    for SKIP LOCKED.
    """

    kind: Kind
    table: str
    keys: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    counter: str = ""
    upsert: bool = False
    limited: bool = False
    skips: bool = False


def written(statement: Statement) -> Written | None:
    """Return what a statement writes or locks; None if it only reads, or if its text is not understood."""
    words = ("update",) if statement.text.startswith("select") else ("insert", "update", "delete")
    if not any(word in statement.text for word in words):
        return None  # to take it apart would take much longer
    found = _by_shape(statement.shape, statement.text) if statement.shape is not None else None
    return found or _by_text(statement.text)


def one_row(statement: Statement) -> bool:
    """Return whether each call of a statement writes a single row, or none, as far as was counted."""
    rows = statement.a_call(statement.rows)
    if rows is not None:
        return rows <= ONE_ROW
    return statement.shape is None or statement.shape.kind != "insert" or statement.shape.rows in (None, 1)


def _by_shape(shape: StatementShape, text: str) -> Written | None:
    tables = [table for table in shape.tables if table.kind == "table" and table.level == 0]
    changed = [table.name for table in tables if table.changed]
    counter = _COUNTS.search(text)
    if shape.kind in ("insert", "update", "delete") and changed:
        kind: Kind = "insert" if shape.kind == "insert" else "update" if shape.kind == "update" else "delete"
        name = changed[0]
    elif shape.kind == "select" and "update" in shape.locking and tables:
        kind, name = "lock", tables[0].name
    else:
        return None
    keys = (
        predicate.column
        for predicate in shape.predicates
        if predicate.operator == "="
        and (predicate.table == name or (not predicate.table and len(tables) == 1))
        and predicate.column
        and predicate.value in ("parameter", "constant")
        and not predicate.alternative
        and not predicate.negated
    )
    return Written(
        kind,
        name,
        keys=_conflicting(text) if shape.conflict == "update" else tuple(dict.fromkeys(keys)),
        sets=shape.insert_columns if kind == "insert" else shape.set_columns,
        counter=counter[1] if counter else "",
        upsert=shape.conflict == "update",
        limited=shape.limit,
        skips="skip locked" in text,
    )


def _conflicting(text: str) -> tuple[str, ...]:
    """Return the columns of ON CONFLICT."""
    found = _CONFLICT.search(text)
    return tuple(part.strip(' "') for part in found[1].split(",")) if found else ()


def _by_text(text: str) -> Written | None:
    """Read a template, which is in lower case except for names in quotes."""
    write = _WRITE.match(text)
    if write is not None:
        kind: Kind = "insert" if text[0] == "i" else "update" if text[0] == "u" else "delete"
        name = write[1]
    elif text.startswith("select") and _LOCKING.search(text) and (source := _FROM.search(text)):
        kind, name = "lock", source[1]
    else:
        return None
    where = _WHERE.search(text)
    chosen = where is not None and " or " not in where[1]
    keys = tuple(dict.fromkeys(_KEY.findall(where[1]))) if where is not None and chosen else ()
    upsert = kind == "insert" and re.search(r"\bdo\s+update\b", text) is not None
    assigned = _SET.search(text) if kind == "update" or upsert else None
    counter = _COUNTS.search(text)
    return Written(
        kind,
        name.replace('"', "").removeprefix("public."),
        keys=_conflicting(text) if upsert else keys,
        sets=tuple(_ASSIGNED.findall(assigned[1])) if assigned else (),
        counter=counter[1] if counter else "",
        upsert=upsert,
        limited=re.search(r"\blimit\b|\bfetch\s+first\b", text) is not None,
        skips="skip locked" in text,
    )
