"""Read the values of expressions in some rows of a table: few blocks and rows, and nothing with effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import psycopg
from psycopg import pq, sql

from uncork.engines.watch.session import WatchSession
from uncork.engines.watch.snapshot_sql import CATEGORY, EXTENT, IMMUTABLE, MARK
from uncork.model.database.workload import RowSample, Sample, SampledExpression, SampledRows

Found = TypeVar("Found", Sample, RowSample)

_BLOCKS: Final = 100
_ROWS: Final = 200
_ELEMENTS: Final = 1000
_BLOCK_ROWS: Final = 50
"""Rows of a block of a table whose number of rows is unknown."""
_JSON: Final = {"json", "jsonb"}
_OF_DOCUMENT: Final = {
    "key": "coalesce(e.key, CASE pg_catalog.jsonb_typeof(e.value) WHEN 'string' THEN e.value #>> '{}' END)",
    "part": "CASE WHEN e.key IS NULL THEN pg_catalog.jsonb_build_array(e.value) "
    "ELSE pg_catalog.jsonb_build_object(e.key, e.value) END::text",
}
"""The SQL of a value, by what it is to a document: an object, or an array, whose elements have no key."""
_PARTS: Final = (
    ", LATERAL (SELECT o.key, o.value FROM pg_catalog.jsonb_each({object}) AS o (key, value) UNION ALL "
    "SELECT NULL, a.value FROM pg_catalog.jsonb_array_elements({array}) AS a (value)) AS e (key, value)"
)
_UNNESTED: Final = {
    "array": ("{}", {"element": "e.element::text", "part": "ARRAY[e.element]::text"}),
    "tsvector": ("pg_catalog.tsvector_to_array({})", {"word": "e.element"}),
}
"""The SQL of an array, by the category of an expression, and of a value, by what it is to the array."""


def read_sample(session: WatchSession, wanted: SampledExpression) -> Sample:
    """Return values of an expression in about 200 rows of about 100 blocks.

    The server has to know everything that the expression calls as IMMUTABLE: a function that changes
    something, or depends on the session, is not called. Raises psycopg.Error if the server went away.
    """
    return _guarded(session, lambda: _read(session, wanted), Sample)


def read_rows(session: WatchSession, wanted: SampledRows) -> RowSample:
    """Return values that about 200 rows of about 100 blocks have together, without rows that have a NULL.

    Each row is followed to the rows that it refers to, which an index of their key finds. What
    `read_sample` says about functions holds here too. Raises psycopg.Error if the server went away.
    """
    return _guarded(session, lambda: _read_together(session, wanted), RowSample)


def _guarded(
    session: WatchSession, read: Callable[[], Found], without: Callable[[tuple[()], str], Found]
) -> Found:
    """Return what is read; if the server refuses that, nothing and its reason."""
    try:
        with session.pinned():
            return read()
    except psycopg.Error as error:
        if session.lost:
            raise
        reason = error.diag.message_primary or "no reason given"
        return without((), f'the server refuses to read some rows: "{reason}"')


def _read(session: WatchSession, wanted: SampledExpression) -> Sample:
    table = _identifier(wanted.table)
    extent = _extent(session, wanted.table)
    if extent is None:
        return Sample((), "it is no table")
    types = _safe_types(session, table, wanted)
    if isinstance(types, str):
        return Sample((), types)
    (category,) = session.execute(CATEGORY, {"type": types[0]}).fetchone() or ("",)
    shaped = _shaped(wanted, category)
    if shaped is None:
        return Sample((), f"uncork does not know what this operator finds in values of type {category}")
    values = session.execute(_query(table, shaped, *extent)).fetchall()
    found = tuple(value for (value,) in values if value is not None)
    return Sample(found, "" if found else "the rows that were read have none")


def _read_together(session: WatchSession, wanted: SampledRows) -> RowSample:
    extent = _extent(session, wanted.table)
    if extent is None:
        return RowSample((), "it is no table")
    for value in wanted.values:
        types = _safe_types(session, _identifier(value.table), value)
        if isinstance(types, str):
            return RowSample((), types)
    values = session.execute(_joined(wanted, *extent)).fetchall()
    found = tuple(tuple(row) for row in values if None not in row)
    return RowSample(found, "" if found else "the rows that were read have none")


def _extent(session: WatchSession, table: str) -> tuple[int, float] | None:
    """Return the blocks and the rows of a table; None if it is none."""
    schema, _, name = _qualified(table).partition(".")
    found = session.execute(EXTENT, {"schema": schema, "name": name}).fetchone()
    return None if found is None else (found[0], found[1])


def _safe_types(session: WatchSession, table: sql.Identifier, wanted: SampledExpression) -> list[int] | str:
    """Return the types of an expression and its operands, or why it must not be executed."""
    operands = [wanted.sql, *(operand for call in wanted.calls for operand in call.operands)]
    types = _types(session, table, operands)
    if isinstance(types, str):
        return f'the server refuses the expression: "{types}"'
    place = 1
    for call in wanted.calls:
        own = types[place : place + len(call.operands)]
        place += len(call.operands)
        parameters = {"schema": call.schema, "name": call.name, "types": list(own)}
        (immutable,) = session.execute(IMMUTABLE[call.kind], parameters).fetchone() or (None,)
        if not immutable:
            what = f"the {call.kind} {call.name}" if call.name else "a cast"
            return f"it calls {what}, and uncork executes only immutable functions"
    return types


def _identifier(table: str) -> sql.Identifier:
    schema, _, name = _qualified(table).partition(".")
    return sql.Identifier(schema, name)


def _qualified(table: str) -> str:
    return table if "." in table else f"public.{table}"


def _types(session: WatchSession, table: sql.Identifier, operands: Sequence[str]) -> list[int] | str:
    """Return the types of expressions, which the server parses and does not execute; else its reason."""
    listed = ", ".join(f"({operand})" for operand in operands)
    query = sql.SQL("SELECT {} {} FROM {} AS t").format(sql.SQL(MARK), sql.SQL(listed), table)
    server = session.connection.pgconn
    encoding = session.connection.info.encoding
    prepared = server.prepare(b"", query.as_bytes(session.connection))
    if prepared.status != pq.ExecStatus.COMMAND_OK:
        reason = prepared.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"no reason given"
        return reason.decode(encoding, "replace")
    described = server.describe_prepared(b"")
    return [described.ftype(place) for place in range(described.nfields)]


def _shaped(wanted: SampledExpression, category: str) -> tuple[str, str] | None:
    """Return the SQL of a value, and what follows the rows in FROM; None if the type has no such parts."""
    if wanted.shape == "value":
        return f"({wanted.sql})::text", ""
    if category == "range" and wanted.shape == "element":
        return f"coalesce(pg_catalog.lower({wanted.sql}), pg_catalog.upper({wanted.sql}))::text", ""
    if category in ("range", "network") and wanted.shape == "part":
        return f"({wanted.sql})::text", ""
    if category in _UNNESTED:
        elements, values = _UNNESTED[category]
        value = values.get(wanted.shape)
        following = f", pg_catalog.unnest({elements.format(wanted.sql)}) AS e (element)"
        return None if value is None else (value, following)
    if category not in _JSON or wanted.shape == "element":
        return None
    whole = f"({wanted.sql})::jsonb"
    object_, array = (
        f"CASE pg_catalog.jsonb_typeof({whole}) WHEN '{kind}' THEN {whole} END"
        for kind in ("object", "array")
    )
    return _OF_DOCUMENT[wanted.shape], _PARTS.format(object=object_, array=array)


def _query(table: sql.Identifier, shaped: tuple[str, str], blocks: int, rows: float) -> sql.Composed:
    """Return the query for the values of one expression."""
    value, following = shaped
    return sql.SQL("SELECT {mark} {value} FROM {rows} AS sampled{following} LIMIT {elements}").format(
        mark=sql.SQL(MARK),
        value=sql.SQL(value),
        rows=_some_rows(table, blocks, rows),
        following=sql.SQL(following),
        elements=sql.SQL(str(_ELEMENTS)),
    )


def _joined(wanted: SampledRows, blocks: int, rows: float) -> sql.Composed:
    """Return the query for the values of several expressions, each on the table with its columns."""
    parts = [_some_rows(_identifier(wanted.table), blocks, rows) + sql.SQL(" AS sampled")]
    names = {wanted.table: "own"}
    own = _listed([value.sql for value in wanted.values if value.table == wanted.table])
    parts.append(sql.SQL("CROSS JOIN LATERAL (SELECT {}) AS own").format(own))
    for place, reference in enumerate(wanted.references):
        names[reference.table] = f"referred{place}"
        columns = sql.SQL(", ").join(sql.Identifier("sampled", column) for column in reference.columns)
        keys = sql.SQL(", ").join(sql.Identifier("r", key) for key in reference.keys)
        parts.append(
            sql.SQL("JOIN LATERAL (SELECT {} FROM {} AS r WHERE ({}) = ({}) LIMIT 1) AS {} ON true").format(
                _listed([value.sql for value in wanted.values if value.table == reference.table]),
                _identifier(reference.table),
                keys,
                columns,
                sql.Identifier(names[reference.table]),
            )
        )
    taken: dict[str, int] = {}
    values = []
    for expression in wanted.values:
        place = taken[expression.table] = taken.get(expression.table, -1) + 1
        values.append(sql.Identifier(names[expression.table], f"v{place}"))
    return sql.SQL("SELECT {} {} FROM {}").format(
        sql.SQL(MARK), sql.SQL(", ").join(values), sql.SQL(" ").join(parts)
    )


def _listed(expressions: Sequence[str]) -> sql.Composed:
    """Return expressions as text, named v0, v1, ..."""
    named = (
        sql.SQL("({})::text AS {}").format(sql.SQL(expression), sql.Identifier(f"v{place}"))
        for place, expression in enumerate(expressions)
    )
    return sql.SQL(", ").join(named)


def _some_rows(table: sql.Identifier, blocks: int, rows: float) -> sql.Composed:
    """Return a subquery: of at most about 100 blocks, spread over the table, it takes about 200 rows."""
    part = min(1.0, _BLOCKS / max(1, blocks))
    held = rows if rows > 0 else blocks * _BLOCK_ROWS
    taken = min(1.0, _ROWS / max(1.0, held * part))
    sample = sql.SQL("") if part >= 1.0 else sql.SQL(f" TABLESAMPLE SYSTEM ({100.0 * part:.8f})")
    return sql.SQL("(SELECT * FROM {table}{sample} WHERE pg_catalog.random() < {taken} LIMIT {most})").format(
        table=table, sample=sample, taken=sql.SQL(f"{taken:.8f}"), most=sql.SQL(str(_ROWS))
    )
