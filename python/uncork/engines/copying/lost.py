"""Name what a copy lacks on purpose, and what that means for measurements on it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import psycopg

from uncork.engines.copying.objects import Schema
from uncork.engines.copying.schema import OWN
from uncork.model.database.copy import NotCopied

_ISOLATED: Final = "a copy must not reach other systems"
_UNKNOWN: Final = "uncork cannot create it from the catalogue"
_FAILS: Final = "statements that use it fail on the copy"
_NO_MEMBER: Final = (
    "NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = '{0}'::regclass AND e.objid = {1}.oid"
    " AND e.deptype IN ('e', 'i'))"
)


def _named(catalogue: str, prefix: str, rest: str = "") -> str:
    """Return the query for the qualified names of a catalogue's own objects."""
    return (
        f"SELECT n.nspname || '.' || o.{prefix}name FROM {catalogue} o"
        f" JOIN pg_namespace n ON n.oid = o.{prefix}namespace"
        f" WHERE {OWN} AND {_NO_MEMBER.format(catalogue, 'o')} {rest} ORDER BY 1"
    )


_KINDS: Final = (
    (
        "foreign server",
        "SELECT srvname FROM pg_foreign_server ORDER BY 1",
        _ISOLATED,
        "its tables are missing too",
    ),
    ("foreign table", _named("pg_class", "rel", "AND o.relkind = 'f'"), _ISOLATED, _FAILS),
    (
        "subscription",
        "SELECT subname FROM pg_subscription WHERE subdbid ="
        " (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1",
        _ISOLATED,
        "the copy does not receive changes, so it has less load of writes",
    ),
    (
        "publication",
        "SELECT pubname FROM pg_publication ORDER BY 1",
        "nothing subscribes to a copy",
        "writes on the copy do not pay for logical decoding",
    ),
    (
        "event trigger",
        "SELECT evtname FROM pg_event_trigger o WHERE "
        + _NO_MEMBER.format("pg_event_trigger", "o")
        + " ORDER BY 1",
        "it would act on the changes of schema that are tried on the copy",
        "changes of schema do not pay for it",
    ),
    ("type", _named("pg_type", "typ", "AND o.typtype = 'b' AND o.typelem = 0"), _UNKNOWN, _FAILS),
    ("operator", _named("pg_operator", "opr"), _UNKNOWN, _FAILS),
    ("operator class", _named("pg_opclass", "opc"), _UNKNOWN, "indexes that use it are missing"),
    ("text search configuration", _named("pg_ts_config", "cfg"), _UNKNOWN, _FAILS),
    ("text search dictionary", _named("pg_ts_dict", "dict"), _UNKNOWN, _FAILS),
    (
        "cast",
        "SELECT format_type(o.castsource, NULL) || ' to ' || format_type(o.casttarget, NULL) FROM pg_cast o"
        " WHERE o.oid >= 16384 AND " + _NO_MEMBER.format("pg_cast", "o") + " ORDER BY 1",
        _UNKNOWN,
        _FAILS,
    ),
    (
        "aggregate",
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        f" JOIN pg_aggregate a ON a.aggfnoid = p.oid WHERE {OWN} AND {_NO_MEMBER.format('pg_proc', 'p')}"
        " AND (a.aggkind <> 'n' OR a.aggmtransfn <> 0 OR a.aggserialfn <> 0 OR a.aggsortop <> 0) ORDER BY 1",
        _UNKNOWN,
        _FAILS,
    ),
    (
        "large objects",
        "SELECT count(*) || ' in all' FROM pg_largeobject_metadata HAVING count(*) > 0",
        "uncork copies tables",
        "statements that read them fail on the copy",
    ),
)
"""The kind, a query for names, why it is not copied, and what that means."""

_ALWAYS: Final = (
    NotCopied(
        "roles and privileges",
        "a copy has one role, which is a superuser",
        "no statement fails for a missing right, and policies have no effect",
    ),
    NotCopied(
        "dead rows and free space",
        "rows are written anew, one after the other",
        "effects of bloat, of vacuum and of HOT updates cannot be measured on this copy",
    ),
)


def read_lost(connection: psycopg.Connection[Any], schema: Schema) -> tuple[NotCopied, ...]:
    """Return what the source has and a copy never gets, one entry for each object.

    Raises:
        psycopg.Error: if the connection fails.
    """
    found = [
        NotCopied(f"{kind} {name}", why, lost)
        for kind, query, why, lost in _KINDS
        for (name,) in connection.execute(query.encode()).fetchall()
    ]
    if any(step.what == "extension pg_cron" for step in schema.before_rows):
        lost = "the copy has no load of scheduled jobs"
        found.append(NotCopied("jobs of pg_cron", "they would run on the copy", lost))
    for table in schema.tables:
        if table.row_security:
            lost = "statements to which its policies add a condition are not measured"
            why = "the copy's role is a superuser, to whom policies do not apply"
            found.append(NotCopied(f"row security of table {table.shown}", why, lost))
        if table.tablespace:
            lost = "the tablespace's own costs of pages, if any, have no effect on plans"
            found.append(NotCopied(f"tablespace of table {table.shown}", "the copy has one tablespace", lost))
        if table.method not in (None, "heap"):
            lost = "its size and its plans differ"
            what = f"access method {table.method} of table {table.shown}"
            found.append(NotCopied(what, "the copy uses heap", lost))
    return (*found, *_ALWAYS)


def without(schema: Schema, names: Collection[str]) -> set[int]:
    """Return the tables, by oid, that requested names do not need: those neither named nor referenced.

    A name is ``table`` or ``schema.table``. Partitions belong to their table, and referenced tables are
    needed too.
    """
    wanted = {table.oid for table in schema.tables if table.name in names or table.shown in names}
    links = [(key.table, key.references) for key in schema.foreign_keys]
    links += [(parent, table.oid) for table in schema.tables for parent in table.parents]
    links += [(table.oid, parent) for table in schema.tables for parent in table.parents if table.partition]
    while more := {to for start, to in links if start in wanted} - wanted:
        wanted |= more
    return {table.oid for table in schema.tables} - wanted
