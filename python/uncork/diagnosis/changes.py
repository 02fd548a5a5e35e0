"""Changes that rules propose, as values: each renders the SQL that makes it and that undoes it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from uncork.diagnosis.evidence import MEMORY_UNITS, Evidence, Existing, Statement
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.finding import Candidate, CandidateKind, ClientHabit
from uncork.model.database.names import literal, quoted, sql_name


def _change(
    kind: CandidateKind,
    text: str,
    *against: str,
    sql: str = "",
    undo: str = "",
    same_answers: bool = True,
    unprovable: str = "",
    habit: ClientHabit = "",
    per_hour: float | None = None,
    check: str = "",
    other_counts: bool = False,
    on_copy: str = "",
    tried_first: bool = False,
) -> Candidate:
    return Candidate(
        *(kind, text, sql, undo, same_answers, against, unprovable),
        *(habit, per_hour, check, other_counts, on_copy, tried_first),
    )


client_change = partial(_change, "client")
statement_change = partial(_change, "statement")
ddl_change = partial(_change, "ddl")
index_change = partial(_change, "index")
maintenance = partial(_change, "maintenance")
"""Return a candidate of this kind, whose SQL only its rule writes, or which only a person can make."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the server; with `whom`, of a role or a database; with an empty one, of a session.

    If `whom` or `value` is None, nobody knows for whom or to what to set it, and there is no SQL.
    `value` and `old`, the value before, are SQL; without `old`, undoing resets the setting. With
    `restart`, the server reads it when it starts.
    """

    name: str
    value: str | None
    old: str = ""
    whom: str | None = "SYSTEM"
    restart: bool = False

    @property
    def sql(self) -> str:
        """The statements that set it."""
        return self._alter(f"SET {self.name} = {self.value};")

    @property
    def undo(self) -> str:
        """The statements that set it back."""
        return self._alter(f"SET {self.name} = {self.old};" if self.old else f"RESET {self.name};")

    def _alter(self, command: str) -> str:
        if self.whom is None or self.value is None:
            return ""
        reload = " SELECT pg_reload_conf();" if self.whom == "SYSTEM" and not self.restart else ""
        return (f"ALTER {self.whom} " if self.whom else "") + command + reload

    def candidate(self, text: str, *against: str, same_answers: bool = True) -> Candidate:
        """Return the candidate that sets it."""
        return Candidate("setting", text, self.sql, self.undo, same_answers, against)


def session_setting(name: str, value: str) -> Setting:
    """Return a setting of a session."""
    return Setting(name, value, whom="")


def role_setting(statement: Statement, evidence: Evidence, name: str, value: str | None) -> Setting:
    """Return a setting of the role that sends a statement, in its database, as far as both are known."""
    users: dict[str, float] = {}
    for piece in evidence.pieces_of(statement.number):
        if piece.user:
            users[piece.user] = users.get(piece.user, 0.0) + piece.sessions
    user = max(users, key=lambda each: users[each], default="")
    database = "" if evidence.database is None else evidence.database.database
    parts = (f"ROLE {quoted(user)}" if user else "", f"DATABASE {quoted(database)}" if database else "")
    whom = " IN ".join(filter(None, parts)) or None
    plain = value is None or re.fullmatch(r"[a-z_]+|\d+", value)
    return Setting(name, value if plain else literal(value or ""), whom=whom)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Storage parameters of a table: the new values (None resets a parameter), and the present values."""

    table: str
    new: Mapping[str, str | None]
    old: Mapping[str, str]

    @property
    def sql(self) -> str:
        """The statements that set them."""
        return self._alter(self.new)

    @property
    def undo(self) -> str:
        """The statements that set them back."""
        return self._alter({name: self.old.get(name) for name in self.new})

    def _alter(self, values: Mapping[str, str | None]) -> str:
        to_set = ", ".join(f"{name} = {value}" for name, value in values.items() if value is not None)
        to_reset = ", ".join(name for name, value in values.items() if value is None)
        commands = ((f"SET ({to_set})", to_set), (f"RESET ({to_reset})", to_reset))
        return " ".join(f"ALTER TABLE {sql_name(self.table)} {text};" for text, names in commands if names)

    def candidate(self, text: str, *against: str) -> Candidate:
        """Return the candidate that sets them."""
        return Candidate("ddl", text, self.sql, self.undo, against=against)


def autovacuum_on(table: str, text: str) -> Candidate:
    """Return the candidate that turns autovacuum on for a table, which has it turned off."""
    name = "autovacuum_enabled"
    return TableOptions(table, {name: None}, {name: "off"}).candidate(text)


def vacuum(table: str, options: str, text: str, *against: str) -> Candidate:
    """Return the candidate that executes VACUUM with these options."""
    return Candidate("maintenance", text, f"VACUUM ({options}) {sql_name(table)};", against=against)


def drop_indexes(indexes: Sequence[Existing], text: str, *against: str, unprovable: str = "") -> Candidate:
    """Return the candidate that drops indexes without blocking anybody."""
    facts = [index.facts for index in indexes]
    return Candidate(
        "index",
        text,
        "\n".join(f"DROP INDEX CONCURRENTLY {sql_name(index.name)};" for index in facts),
        "\n".join(f"{index.definition.replace(' INDEX ', ' INDEX CONCURRENTLY ', 1)};" for index in facts),
        against=against,
        unprovable=unprovable,
    )


def column_type(column: ColumnFacts, kind: str) -> str:
    """Return the statement that gives a column another type, and converts its values."""
    name = quoted(column.name)
    return f"ALTER TABLE {sql_name(column.table)} ALTER COLUMN {name} TYPE {kind} USING {name}::{kind};"


def size_text(size: int) -> str:
    """Return a size as PostgreSQL writes it in settings: ``32kB``, ``128MB``, ``4GB``."""
    whole = [unit for unit in ("GB", "MB") if size and size % MEMORY_UNITS[unit] == 0]
    unit = whole[0] if whole else "kB"
    return f"{size // MEMORY_UNITS[unit]}{unit}"
