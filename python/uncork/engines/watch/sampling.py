"""Read the values of expressions in some rows of a table: few blocks and rows, and nothing with effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg import pq, sql

from uncork.engines.watch.sampling_sql import CATEGORY, EXTENT, IMMUTABLE
from uncork.engines.watch.session import WatchSession
from uncork.engines.watch.snapshot_sql import MARK
from uncork.model.database.workload import CalledOperation, Sample, SampledExpression

__all__ = ["read_sample"]

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


def read_sample(session: WatchSession, wanted: SampledExpression) -> Sample:
    """Return values of an expression in about 200 rows of about 100 blocks.

    The server has to know everything that the expression calls as IMMUTABLE: a function that changes
    something, or depends on the session, is not called.

    Raises:
        psycopg.Error: if the server went away.
    """
    try:
        with session.pinned():
            return _read(session, wanted)
    except psycopg.Error as error:
        if session.lost:
            raise
        reason = error.diag.message_primary or "no reason given"
        return Sample((), f'the server refuses to read some rows: "{reason}"')


def _read(session: WatchSession, wanted: SampledExpression) -> Sample:
    schema, _, name = _qualified(wanted.table).partition(".")
    table = sql.Identifier(schema, name)
    extent = session.execute(EXTENT, {"schema": schema, "name": name}).fetchone()
    if extent is None:
        return Sample((), "it is no table")
    blocks, rows = extent
    operands = [wanted.sql, *(each for call in wanted.calls for each in call.operands)]
    types = _types(session, table, operands)
    if isinstance(types, str):
        return Sample((), f'the server refuses the expression: "{types}"')
    place = 1
    for call in wanted.calls:
        own = types[place : place + len(call.operands)]
        place += len(call.operands)
        if not _is_immutable(session, call, own):
            what = f"the {call.kind} {call.name}" if call.name else "a cast"
            return Sample((), f"it calls {what}, and uncork executes only immutable functions")
    (category,) = session.execute(CATEGORY, {"type": types[0]}).fetchone() or ("",)
    shaped = _shaped(wanted, category)
    if shaped is None:
        return Sample((), f"uncork does not know what this operator finds in values of type {category}")
    values = session.execute(_query(table, shaped, blocks, rows)).fetchall()
    found = tuple(value for (value,) in values if value is not None)
    return Sample(found, "" if found else "the rows that were read have none")


def _qualified(table: str) -> str:
    return table if "." in table else f"public.{table}"


def _types(session: WatchSession, table: sql.Identifier, operands: Sequence[str]) -> list[int] | str:
    """Return the types of expressions, which the server parses and does not execute; else its reason."""
    listed = ", ".join(f"({one})" for one in operands)
    query = sql.SQL("SELECT {} {} FROM {} AS t").format(sql.SQL(MARK), sql.SQL(listed), table)
    server = session.connection.pgconn
    encoding = session.connection.info.encoding
    prepared = server.prepare(b"", query.as_bytes(session.connection))
    if prepared.status != pq.ExecStatus.COMMAND_OK:
        reason = prepared.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"no reason given"
        return reason.decode(encoding, "replace")
    described = server.describe_prepared(b"")
    return [described.ftype(place) for place in range(described.nfields)]


def _is_immutable(session: WatchSession, call: CalledOperation, types: Sequence[int]) -> bool:
    parameters = {"schema": call.schema, "name": call.name, "types": list(types)}
    (immutable,) = session.execute(IMMUTABLE[call.kind], parameters).fetchone() or (None,)
    return bool(immutable)


def _shaped(wanted: SampledExpression, category: str) -> tuple[str, str] | None:
    """Return the SQL of a value, and what follows the rows in FROM; None if the type has no such parts."""
    if wanted.shape == "value":
        return f"({wanted.sql})::text", ""
    if category == "array":
        unnested = f", pg_catalog.unnest({wanted.sql}) AS e (element)"
        value = {"element": "e.element::text", "part": "ARRAY[e.element]::text"}.get(wanted.shape)
        return None if value is None else (value, unnested)
    if category not in _JSON or wanted.shape == "element":
        return None
    whole = f"({wanted.sql})::jsonb"
    object_, array = (
        f"CASE pg_catalog.jsonb_typeof({whole}) WHEN '{kind}' THEN {whole} END"
        for kind in ("object", "array")
    )
    return _OF_DOCUMENT[wanted.shape], _PARTS.format(object=object_, array=array)


def _query(table: sql.Identifier, shaped: tuple[str, str], blocks: int, rows: float) -> sql.Composed:
    """Return the query: of at most about 100 blocks, spread over the table, it takes about 200 rows."""
    part = min(1.0, _BLOCKS / max(1, blocks))
    held = rows if rows > 0 else blocks * _BLOCK_ROWS
    taken = min(1.0, _ROWS / max(1.0, held * part))
    value, following = shaped
    sample = sql.SQL("") if part >= 1.0 else sql.SQL(f" TABLESAMPLE SYSTEM ({100.0 * part:.8f})")
    return sql.SQL(
        "SELECT {mark} {value} FROM (SELECT * FROM {table}{sample} WHERE pg_catalog.random() < {taken}"
        " LIMIT {most}) AS sampled{following} LIMIT {elements}"
    ).format(
        mark=sql.SQL(MARK),
        value=sql.SQL(value),
        table=table,
        sample=sample,
        taken=sql.SQL(f"{taken:.8f}"),
        most=sql.SQL(str(_ROWS)),
        following=sql.SQL(following),
        elements=sql.SQL(str(_ELEMENTS)),
    )
