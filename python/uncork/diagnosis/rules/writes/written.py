"""What statements write or lock: themselves, for many rows, and through functions and triggers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from uncork.diagnosis.evidence import Evidence, Statement, known_shape
from uncork.model.database.catalogue import FunctionFacts, TriggerFacts
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.statement import StatementShape
from uncork.model.units import count_words

# ---- what a statement writes or locks: the table, the columns that choose rows, and the assigned ones ----


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
_ROW_WORDS: Final[dict[Kind, str]] = {
    "insert": "inserts {rows} into {table}",
    "update": "updates {rows} of {table}",
    "delete": "deletes {rows} from {table}",
    "lock": "locks {rows} of {table}",
}
"""What a client does to rows of a table."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a statement writes. `kind` is "lock" for SELECT ... FOR UPDATE.

    `keys` are the columns of the table that it compares with a parameter or a constant for
    equality, `sets` the columns that it assigns or inserts. `counter` is the column to which it
    adds or from which it subtracts, "" if none. `upsert` is true for ON CONFLICT DO UPDATE.
    `limited` is true for LIMIT, `skips` for SKIP LOCKED.
    """

    kind: Kind
    table: str
    keys: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    counter: str = ""
    upsert: bool = False
    limited: bool = False
    skips: bool = False

    @property
    def events(self) -> frozenset[str]:
        """The events for which triggers of the table run."""
        return frozenset({self.kind, "update"} if self.upsert else {self.kind})

    def words(self, rows: int) -> str:
        """Return in words what it does with so many rows."""
        return _ROW_WORDS[self.kind].format(rows=count_words(rows, "row"), table=self.table)


def written(statement: Statement) -> Written | None:
    """Return what a statement writes or locks; None if it only reads, or if its text is not understood."""
    words = ("update",) if statement.text.startswith("select") else ("insert", "update", "delete")
    if not any(word in statement.text for word in words):
        return None  # to take it apart would take much longer
    return _by_shape(statement.shape, statement.text) or _by_text(statement.text)


def one_row(statement: Statement) -> bool:
    """Return whether each call of a statement writes a single row, or none, as far as was counted."""
    rows = statement.a_call(statement.rows)
    if rows is not None:
        return rows <= ONE_ROW
    return statement.shape.kind != "insert" or statement.shape.rows in (None, 1)


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


# ---- the statement that does for many rows what another does for one ----


_PARAMETER: Final = r"=\s*\$(\d+)(?![\w\[])(?:::[\w ]+)?"
_VALUES: Final = re.compile(r"values\s*\(\s*\$\d+(?:\s*,\s*\$\d+)*\s*\)[\s;]*$", re.IGNORECASE)
"""One row of values, each of which is a parameter."""


def batched(statement: Statement, evidence: Evidence) -> str:
    """Return one statement for many keys or rows in arrays; empty if types or the text are not understood."""
    write = written(statement)
    if write is None or write.kind == "lock":
        return _lookup(statement)
    if write.kind == "delete":
        return _lookup(statement) if len(write.keys) == 1 else ""
    if write.upsert or (write.kind == "update" and (not write.keys or write.counter)):
        return ""
    return (
        _insert(statement, write, evidence) if write.kind == "insert" else _update(statement, write, evidence)
    )


def _lookup(statement: Statement) -> str:
    """Compare the only parameter with an array: WHERE id = $1 becomes WHERE id = ANY ($1)."""
    shape = statement.shape
    if not shape.kind or shape.aggregates or shape.grouping or shape.distinct or shape.limit or shape.unions:
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


def _insert(statement: Statement, write: Written, evidence: Evidence) -> str:
    types = _types(write.table, write.sets, evidence)
    if not write.sets or len(types) != len(write.sets) or not _VALUES.search(statement.sql):
        return ""
    names = ", ".join(map(quoted, write.sets))
    return f"INSERT INTO {sql_name(write.table)} ({names}) SELECT * FROM unnest({_arrays(types)});"  # noqa: S608


def _update(statement: Statement, write: Written, evidence: Evidence) -> str:
    if not all(
        re.search(rf'(?<![\w"]){re.escape(name)}"?\s*=\s*\$\d+\s*(?:,|where)', statement.sql, re.I)
        for name in write.sets
    ):
        return ""
    columns = (*write.keys, *write.sets)
    types = _types(write.table, columns, evidence)
    if len(types) != len(columns) or set(write.keys) & set(write.sets):
        return ""
    sets = ", ".join(f"{quoted(name)} = new.{quoted(name)}" for name in write.sets)
    same = " AND ".join(f"old.{quoted(name)} = new.{quoted(name)}" for name in write.keys)
    return (
        f"UPDATE {sql_name(write.table)} AS old SET {sets} "  # noqa: S608
        f"FROM unnest({_arrays(types)}) AS new ({', '.join(map(quoted, columns))}) WHERE {same};"
    )


# ---- what statements execute and write through functions that they call, and through triggers ----


_DEEPEST: Final = 3
"""Functions within each other that are followed."""


@dataclass(frozen=True, slots=True)
class Within:
    """A statement in the body of a function that `outer` executes, itself or through other functions.

    `statement` has the number and the counters of `outer`, but not its rows. `trigger` is empty if
    the function is called.
    """

    outer: Statement
    statement: Statement
    function: str
    trigger: str


def executed_within(outer: Statement, evidence: Evidence) -> tuple[Within, ...]:
    """Return the statements that a statement may execute within functions; a function counts once."""
    found: list[Within] = []
    known: set[str] = set()
    level = [outer]
    for _ in range(_DEEPEST):
        new = []
        for function, trigger in [pair for statement in level for pair in _calls(statement, evidence)]:
            if function.name in known or function.calls == 0:
                continue
            known.add(function.name)
            for sql, shape in evidence.take_body(function.source) if function.source else ():
                inner = replace(
                    outer,
                    text=sql.lower(),
                    sql=sql,
                    shape_of=known_shape(shape),
                    rows=None,
                    plans=(),
                    assigned=(),
                    compared={},
                )
                new.append(inner)
                name = "" if trigger is None else trigger.name
                found.append(Within(outer, inner, function.name, name))
        level = new
    return tuple(found)


def updated_within(statement: Statement, evidence: Evidence) -> tuple[str, Written] | None:
    """Return the only table that functions of a statement update, with the function's name; else None."""
    found: dict[str, tuple[str, Written]] = {}
    for each in executed_within(statement, evidence):
        write = written(each.statement)
        if write is not None and (write.kind == "update" or write.upsert) and write.sets:
            found[write.table] = (each.function, write)
    return next(iter(found.values())) if len(found) == 1 else None


def functions_of(statement: Statement, evidence: Evidence) -> Iterator[FunctionFacts]:
    """Yield the user-defined functions that a statement calls, directly or by triggers."""
    known = set()
    for function, _ in _calls(statement, evidence):
        if function.name not in known:
            known.add(function.name)
            yield function


def _calls(statement: Statement, evidence: Evidence) -> Iterator[tuple[FunctionFacts, TriggerFacts | None]]:
    """Yield the functions that a statement calls, then the functions of its triggers with the trigger."""
    if not evidence.catalogue.functions:
        return
    write = written(statement)
    called: dict[str, TriggerFacts | None]
    called = {name.rpartition(".")[2]: None for name in statement.shape.functions}
    if write is not None:
        for trigger in evidence.catalogue.triggers:
            if trigger.fires_for(write.table, write.events):
                called.setdefault(trigger.function.partition("(")[0].rpartition(".")[2], trigger)
    for function in evidence.catalogue.functions:
        short = function.name.rpartition(".")[2]
        if short in called:
            yield function, called[short]
