"""Answer a query that a program wrote: with a run's tables in memory, and without any access to files.

`uncork sql` gives a query everything that DuckDB can do, because a person writes it: COPY writes files,
ATTACH and read_csv read them. A query that a language model writes is answered by a second database, which
holds copies of the tables that the query names. That database can open no file and no address, load no
extension, see no variable of Python, and change no setting. So no query can read or write anything else,
whatever its text: a check of statements alone does not suffice, because COPY can stand within a SELECT.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from uncork.errors import UsageError
from uncork.model.units import format_count

if TYPE_CHECKING:
    import duckdb

MOST_ROWS: Final = 5_000_000
"""Rows of one table that are copied. A larger table would need gigabytes of memory."""
_CLOSED: Final = (
    *("SET memory_limit = '1GiB'", "SET temp_directory = ''"),
    *("SET autoinstall_known_extensions = false", "SET autoload_known_extensions = false"),
    *("SET python_enable_replacements = false", "SET enable_external_access = false"),
)
_LOCKED: Final = "SET lock_configuration = true"
_TABLES: Final = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The first rows of a query's result: names and types of its columns, and whether there are more rows."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool


def ask_sandboxed(source: duckdb.DuckDBPyConnection, query: str, most: int) -> Answer:
    """Return up to `most` rows of a query on the tables of `source`, in DuckDB's SQL.

    If the query names no table of `source`, the tables are there without their rows, for SHOW
    TABLES. Raises UsageError if the query is not a single SELECT, or a table that it names has too
    many rows; duckdb.Error if DuckDB rejects the query.
    """
    import duckdb  # noqa: PLC0415 -- as in `store.query`

    _check_kind(query)
    known = [name for (name,) in source.execute(_TABLES).fetchall()]
    words = set(re.findall(r"\w+", query.lower()))
    named = [name for name in known if name.lower() in words]
    for name in named:
        _check_size(source, name)
    with duckdb.connect() as closed:
        for setting in _CLOSED:
            closed.execute(setting)
        for name in named or known:
            limit = "" if named else " LIMIT 0"
            closed.register(name, source.sql(f'FROM "{name}"{limit}').to_arrow_table())
        closed.execute(_LOCKED)
        try:
            found = closed.sql(query).limit(most + 1)
            columns = tuple(zip(found.columns, map(str, found.types), strict=True))
            rows = found.fetchall()
        except duckdb.OutOfMemoryException as error:
            raise UsageError("the query needs more than 1 GiB of memory; read fewer rows of it") from error
    return _without_file_names(Answer(columns, tuple(rows[:most]), len(rows) > most), query)


def _check_kind(query: str) -> None:
    """Raise a clear error unless the query is one SELECT.

    Safety does not depend on this check: the database has no access to files or the network.

    Raises:
        UsageError, duckdb.Error: see `ask_sandboxed`.
    """
    import duckdb  # noqa: PLC0415 -- as above

    statements = duckdb.extract_statements(query)
    if not statements:
        raise UsageError("the query is empty; write one, such as SHOW TABLES")
    if len(statements) > 1:
        raise UsageError(f"the query has {len(statements)} statements; send one at a time")
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = query.split(maxsplit=1)[0].upper()
        raise UsageError(
            f"{kind} is refused: only queries are answered (SELECT, FROM, SHOW TABLES, DESCRIBE)"
        )


def _check_size(source: duckdb.DuckDBPyConnection, name: str) -> None:
    ((rows,),) = source.execute(f'SELECT count(*) FROM "{name}"').fetchall()  # noqa: S608 -- a table's own name
    if rows > MOST_ROWS:
        raise UsageError(
            f"{name} has {format_count(rows)} rows, and up to {format_count(MOST_ROWS)} are read here; "
            "use `uncork sql` for it"
        )


def _without_file_names(answer: Answer, query: str) -> Answer:
    """Leave out the internal column `filename` unless the query names it, as `RunReader.ask` does."""
    if "filename" in query.lower():
        return answer
    kept = [place for place, (name, _) in enumerate(answer.columns) if name != "filename"]
    rows = tuple(tuple(row[place] for place in kept) for row in answer.rows)
    return Answer(tuple(answer.columns[place] for place in kept), rows, answer.more)
