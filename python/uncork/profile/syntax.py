"""Parse SQL with PostgreSQL's own grammar: where it is wrong, and what kinds of statements it holds. Pure."""

from __future__ import annotations

from typing import Any, Final

from uncork.model.records import Record

GRAMMAR: Final = 18
"""The major version of PostgreSQL whose grammar this is."""

_ALONE: Final = {
    "createdb_stmt": "CREATE DATABASE",
    "dropdb_stmt": "DROP DATABASE",
    "create_table_space_stmt": "CREATE TABLESPACE",
    "drop_table_space_stmt": "DROP TABLESPACE",
    "alter_system_stmt": "ALTER SYSTEM",
}
_CONCURRENT: Final = {"index_stmt": "CREATE INDEX", "drop_stmt": "DROP INDEX", "reindex_stmt": "REINDEX"}
_QUERIES: Final = frozenset(
    {"select_stmt", "explain_stmt", "variable_show_stmt", "execute_stmt", "fetch_stmt"}
)
_CHANGES: Final = frozenset({"insert_stmt", "update_stmt", "delete_stmt", "merge_stmt"})


class ParsedStatement(Record):
    """A statement. `alone` names a command that the server executes only outside of transactions.

    `copies` is true for a COPY whose rows the client sends or receives. `returns` is true if it returns rows.
    """

    alone: str | None
    copies: bool
    returns: bool


class ParsedSql(Record):
    """The statements of a text; or the grammar's error, with the line (from 1) where it is."""

    statements: tuple[ParsedStatement, ...]
    error: str | None = None
    line: int = 1


def parse_sql(text: str) -> ParsedSql:
    """Parse the statements of a text; parameters are written ``$1``."""
    import postgast  # noqa: PLC0415 -- loads a parser of 14 MB, which most commands do not need

    if "\0" in text:
        return ParsedSql((), "SQL cannot contain a zero byte", 1 + text[: text.index("\0")].count("\n"))
    try:
        found = postgast.parse(text)
    except postgast.PgQueryError as error:
        end = len(text.rstrip())
        position = min(error.cursorpos or end + 1, end + 1)
        return ParsedSql((), error.message, 1 + text[: position - 1].count("\n"))
    return ParsedSql(tuple(_statement(stmt.stmt) for stmt in found.stmts))


def _statement(node: Any) -> ParsedStatement:
    kind = node.WhichOneof("node") or ""
    statement = getattr(node, kind)
    return ParsedStatement(
        alone=_alone(kind, statement),
        copies=kind == "copy_stmt" and not statement.filename and not statement.is_program,
        returns=kind in _QUERIES or (kind in _CHANGES and statement.HasField("returning_clause")),
    )


def _alone(kind: str, statement: Any) -> str | None:
    if kind == "reindex_stmt":
        concurrent = "concurrently" in {option.def_elem.defname for option in statement.params}
    else:
        concurrent = kind in ("index_stmt", "drop_stmt") and statement.concurrent
    if concurrent:
        return f"{_CONCURRENT[kind]} CONCURRENTLY"
    return "VACUUM" if kind == "vacuum_stmt" and statement.is_vacuumcmd else _ALONE.get(kind)
