"""Write what a person executes on the server: the changes as SQL, and the SQL that reverts them. Pure.

Both scripts consist of SQL and comments only. psql executes them, and so does a migration tool that sends one
statement at a time outside of a transaction: PostgreSQL refuses CONCURRENTLY within one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from uncork.experiment.cure.setups import on_expression, reloads, setting_in, table_named
from uncork.experiment.spec.sqltext import statements_in
from uncork.model.database.names import literal, quoted
from uncork.model.results.cure import Change
from uncork.model.units import format_count

_PART: Final = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
_BUILT: Final = re.compile(
    rf"CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<index>{_PART})\s+"
    rf"ON\s+(?:ONLY\s+)?(?:(?P<schema>{_PART})\.)?{_PART}.*",
    re.IGNORECASE | re.DOTALL,
)
_TEXT: Final = re.compile(r"\(*\s*(?:SELECT|WITH|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_TRIGGER: Final = re.compile(r"(?:CREATE|DROP)\s+(?:TRIGGER|FUNCTION)\b", re.IGNORECASE)
"""Parts of the change from one trigger to another."""
_OF_ROLE: Final = re.compile(r"ALTER\s+(?:ROLE|USER)\s", re.IGNORECASE)
_OF_DATABASE: Final = re.compile(r"ALTER\s+DATABASE\s", re.IGNORECASE)

_WEAK: Final = "It takes a SHARE UPDATE EXCLUSIVE lock: others can read and write meanwhile."
_STRONG: Final = "It takes an ACCESS EXCLUSIVE lock: nobody can read or write the table meanwhile."
_NONE: Final = "It locks no table."
_LOCKS: Final = (
    (r"(?:CREATE\s+(?:UNIQUE\s+)?|DROP\s+)INDEX\s+CONCURRENTLY\b", _WEAK),
    (
        r"CREATE\s+(?:UNIQUE\s+)?INDEX\b",
        "It takes a SHARE lock: others can read the table but not write to it meanwhile.",
    ),
    (r"(?:CREATE\s+STATISTICS|ANALYZE|REINDEX\s+\w+\s+CONCURRENTLY)\b", _WEAK),
    (r"ALTER\s+TABLE\s.*\s(?:RE)?SET\s*\(", _WEAK),
    (r"(?:ALTER\s+TABLE|DROP\s+INDEX|VACUUM|REINDEX|DROP\s+STATISTICS)\b", _STRONG),
)
"""The lock of a statement, by the first form that it begins with. Other statements lock no table."""

_CHECK: Final = """\
DO $uncork$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass({name}) AND indisvalid) THEN
    RAISE EXCEPTION USING
      MESSAGE = {message},
      HINT = {hint};
  END IF;
END $uncork$;"""


def up_sql(changes: Sequence[Change], database: str, headlines: Mapping[str, str] | None = None) -> str:
    """Return the script that makes the changes: single ones or sets, in order.

    Settings become those of the database, as they were measured. Rewritten statements become comments,
    because only the application can send them. `headlines` are those of findings, by the change's name.
    """
    lines = [
        "-- Makes the changes that uncork proved on a copy.",
        f"-- psql -v ON_ERROR_STOP=1 -d {_one_line(quoted(database))} -f up.sql",
        "-- Execute it outside of a transaction, one statement at a time.",
    ]
    for change in changes:
        lines += ["", f"-- {_one_line(change.text or change.name)}"]
        headline = (headlines or {}).get(change.name, "")
        if headline:
            lines.append(f"-- Finding: {_one_line(headline)}.")
        if change.net is not None:
            net = change.net
            lines.append(
                f"-- Measured: {format_count(net.saved)} s of sessions' time saved per hour (95 % interval: "
                f"{format_count(net.low)} to {format_count(net.high)})."
            )
        lines += [f"-- Against: {_one_line(text)}" for text in change.against]
        lines += _executed(change.sql, database, before=change.undo)
    return "\n".join([*lines, ""])


def down_sql(changes: Sequence[Change], database: str) -> str:
    """Return the script that reverts the changes, the last one first."""
    lines = [
        "-- Reverts the changes of up.sql, the last one first.",
        f"-- psql -v ON_ERROR_STOP=1 -d {_one_line(quoted(database))} -f down.sql",
        "-- Execute it outside of a transaction, one statement at a time.",
    ]
    for change in reversed(changes):
        lines += ["", f"-- Reverts: {_one_line(change.text or change.name)}"]
        old = dict(_settings(change.undo, _OF_DATABASE))
        for name in dict(_settings(change.sql)):
            value = f"SET {name} = {literal(old[name])}" if name in old else f"RESET {name}"
            lines.append(f"ALTER DATABASE {quoted(database)} {value};")
        plain = [text for text in statements_in(change.undo) if not _sets(text)]
        lines += _executed(";\n".join(plain), database, before=change.sql)
        if not change.undo.strip():
            lines.append("-- Nothing reverts it: it changes no data and no definition.")
    return "\n".join([*lines, ""])


def _executed(sql: str, database: str, *, before: str) -> Iterator[str]:
    for together, statements in groupby(statements_in(sql), lambda one: _TRIGGER.match(one) is not None):
        if together:
            yield from _swapped(tuple(statements))
        else:
            yield from _one_by_one(statements, database, before)


def _one_by_one(statements: Iterable[str], database: str, before: str) -> Iterator[str]:
    for statement in statements:
        setting = setting_in(statement)
        if setting is not None:
            name, value = setting
            yield "-- Sessions that begin afterwards use it."
            if _OF_ROLE.match(statement):
                yield f"-- It was measured for all roles. For one role only: {_one_line(statement)};"
            yield f"ALTER DATABASE {quoted(database)} SET {name} = {literal(value)};"
        elif reloads(statement):
            continue
        elif _TEXT.match(statement):
            yield "-- The application must send this statement:"
            yield from _commented(statement)
            yield "-- instead of:"
            yield from _commented("; ".join(statements_in(before)))
        else:
            yield from _ddl(statement)


def _swapped(statements: Sequence[str]) -> Iterator[str]:
    """Yield statements as one transaction: between two triggers, rows would be counted twice or never."""
    yield f"-- {_STRONG}"
    yield "-- One transaction, so that no row is written between both triggers."
    yield "BEGIN;"
    yield "SET LOCAL lock_timeout = '2s';"
    for statement in statements:
        yield f"{statement};"
    yield "COMMIT;"


def _ddl(statement: str) -> Iterator[str]:
    forms = (lock for form, lock in _LOCKS if re.match(form, statement, re.IGNORECASE | re.DOTALL))
    lock = next(forms, _NONE)
    yield f"-- {lock}"
    if "CONCURRENTLY" in statement.upper():
        # A timeout would also end the wait for older transactions, and leave an invalid index behind.
        yield "SET lock_timeout = 0;"
    elif lock != _NONE:
        yield "SET lock_timeout = '2s';"
    yield f"{statement};"
    built = _BUILT.fullmatch(statement)
    if built is not None:
        schema = f"{built['schema']}." if built["schema"] else ""
        name = f"{schema}{built['index']}"
        shown = table_named(name)
        yield _CHECK.format(
            name=literal(name),
            message=literal(f"index {shown} is invalid: its creation failed"),
            hint=literal(f"Execute DROP INDEX CONCURRENTLY {name}; and then this script again."),
        )
    if table := on_expression(statement):
        yield "-- The planner knows the values of an expression only after ANALYZE."
        yield "SET lock_timeout = '2s';"
        yield f"ANALYZE {table};"


def _settings(sql: str, form: re.Pattern[str] | None = None) -> Iterator[tuple[str, str]]:
    for statement in statements_in(sql):
        setting = setting_in(statement)
        if setting is not None and (form is None or form.match(statement)):
            yield setting


def _sets(statement: str) -> bool:
    reset = re.fullmatch(
        r"(?:RESET|ALTER\s+(?:SYSTEM|DATABASE|ROLE|USER)\b.*\sRESET)\s+\S+", statement, re.I | re.S
    )
    return reset is not None or setting_in(statement) is not None


def _commented(text: str) -> Iterator[str]:
    return (f"--   {line}" for line in text.splitlines())


def _one_line(text: str) -> str:
    return " ".join(text.split())
