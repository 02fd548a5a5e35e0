"""Build the catalogue of a watched database from what was stored of it. Pure."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.analysis.database.schema import qualified_name
from uncork.model.database.catalogue import (
    Catalogue,
    ColumnFacts,
    ConstraintFacts,
    FunctionFacts,
    PolicyFacts,
    RoleSetting,
    ServerSetting,
    TableOptions,
    TriggerFacts,
    ViewFacts,
)
from uncork.model.system import SERVER, SystemUse
from uncork.profile import deltas
from uncork.profile.system import system_use

Row = Mapping[str, Any]
Tables = Mapping[str, pa.Table]

_COLUMN: Final = (
    *("table_oid", "number", "name", "type", "storage_type", "not_null", "default", "generated", "collation"),
    *("null_fraction", "width", "distinct", "correlation", "statistics_target"),
)
_FUNCTION: Final = ("language", "volatility", "parallel", "strict", "returns_set", "cost", "source")
_COUNTERS: Final = ("calls", "total_ms", "self_ms")
_COMPILED: Final = frozenset({"sql", "c", "internal"})
"""Languages of functions that track_functions = pl does not count."""


def catalogue_of(tables: Tables, facts: Mapping[str, Any]) -> Catalogue:
    """Build the catalogue from the tables and facts of a watched server.

    `tables` are those of `uncork.model.tables.database`, `catalogue` and `system`. Tables have the names that
    `schema_facts` gives them. A run stored before the catalogue was read gives an empty one. Memory and
    processors are what the server can use: less than the machine's if its control group limits them.
    """
    relations = _relations(tables["database_relations"])
    names = {oid: qualified_name(row) for oid, row in relations.items()}
    columns: dict[str, list[ColumnFacts]] = defaultdict(list)
    for row in _rows(tables, "database_columns", names):
        columns[names[row["table_oid"]]].append(_column(row, names[row["table_oid"]]))
    settings = {row["name"]: ServerSetting(**row) for row in tables["database_server_settings"].to_pylist()}
    use = system_use(tables)
    return Catalogue(
        columns={
            table: tuple(sorted(of_table, key=lambda one: one.number)) for table, of_table in columns.items()
        },
        constraints=tuple(
            _constraint(row, names, relations) for row in _rows(tables, "database_constraints", names)
        ),
        triggers=tuple(
            _trigger(row, names[row["table_oid"]]) for row in _rows(tables, "database_triggers", names)
        ),
        policies=tuple(
            _policy(row, names[row["table_oid"]]) for row in _rows(tables, "database_policies", names)
        ),
        functions=tuple(_functions(tables["database_functions"], settings, facts)),
        views=tuple(
            ViewFacts(qualified_name(row), row["materialized"], row["definition"] or "")
            for row in tables["database_views"].to_pylist()
        ),
        options={
            names[row["table_oid"]]: _options(row, names, relations)
            for row in _rows(tables, "database_table_options", names)
        },
        settings=settings,
        role_settings=tuple(
            RoleSetting(row["role"], row["database"], row["name"], row["value"] or "")
            for row in tables["database_role_settings"].to_pylist()
        ),
        memory_bytes=_memory(facts, use),
        processors=_processors(use),
    )


def _relations(table: pa.Table) -> dict[int, Row]:
    """Return schema, name and parent of each table by oid, from the last snapshot that has it."""
    wanted = table.select(["moment", "oid", "schema", "name", "partition_of"])
    after = wanted.filter(pc.equal(wanted["moment"], "after"))
    return {row["oid"]: row for row in after.to_pylist()}


def _rows(tables: Tables, name: str, names: Mapping[int, str]) -> Iterable[Row]:
    """Return rows of tables whose names are known."""
    return (row for row in tables[name].to_pylist() if row["table_oid"] in names)


def _column(row: Row, table: str) -> ColumnFacts:
    return ColumnFacts(
        table=table,
        **{name: row[name] for name in _COLUMN},
        common=tuple((value, frequency) for value, frequency in _list(row["common"])),
        bounds=tuple(_list(row["bounds"])),
    )


def _constraint(row: Row, names: Mapping[int, str], relations: Mapping[int, Row]) -> ConstraintFacts:
    schema = relations[row["table_oid"]]["schema"]
    return ConstraintFacts(
        name=row["name"],
        table=names[row["table_oid"]],
        table_oid=row["table_oid"],
        kind=row["kind"],
        columns=tuple(_list(row["columns"])),
        definition=row["definition"],
        valid=row["valid"],
        index=qualified_name({"schema": schema, "name": row["index"]}) if row["index"] else "",
        referred=names.get(row["referred_oid"], ""),
        referred_columns=tuple(_list(row["referred_columns"])),
        on_delete=row["on_delete"] or "",
        on_update=row["on_update"] or "",
    )


def _trigger(row: Row, table: str) -> TriggerFacts:
    return TriggerFacts(
        name=row["name"],
        table=table,
        table_oid=row["table_oid"],
        timing=row["timing"],
        per_row=row["per_row"],
        events=tuple(_list(row["events"])),
        function=qualified_name({"schema": row["function_schema"], "name": row["function"]}),
        definition=row["definition"],
        enabled=row["enabled"],
    )


def _policy(row: Row, table: str) -> PolicyFacts:
    return PolicyFacts(
        name=row["name"],
        table=table,
        table_oid=row["table_oid"],
        command=row["command"],
        permissive=row["permissive"],
        condition=row["condition"],
        volatile=row["volatile"],
        roles=tuple(_list(row["roles"])),
    )


def _functions(
    table: pa.Table, settings: Mapping[str, ServerSetting], facts: Mapping[str, Any]
) -> Iterable[FunctionFacts]:
    """Yield functions with the growth of their counters, which is 0 if a counted function was not called."""
    rows = table.to_pylist()
    before = [row for row in rows if row["moment"] == "before"]
    after = [row for row in rows if row["moment"] == "after"]
    tracked = settings["track_functions"].value if "track_functions" in settings else "none"
    unread = any(
        "counters of functions" in facts["snapshots"].get(moment, {}).get("failed", {})
        for moment in ("before", "after")
    )
    for row, grown in zip(after, deltas.row_deltas(before, after, _COUNTERS), strict=True):
        counted = row["calls"] is not None or tracked == "all"
        counted |= tracked == "pl" and row["language"] not in _COMPILED
        yield FunctionFacts(
            name=qualified_name(row),
            configured=row["configured"],
            **{name: row[name] for name in _FUNCTION},
            **_counted(grown if counted and not unread else {}),
        )


def _counted(grown: Row) -> dict[str, Any]:
    return {name: grown.get(name) for name in _COUNTERS}


def _options(row: Row, names: Mapping[int, str], relations: Mapping[int, Row]) -> TableOptions:
    parent = relations[row["table_oid"]]["partition_of"]
    return TableOptions(
        table=names[row["table_oid"]],
        table_oid=row["table_oid"],
        options=json.loads(row["options"] or "{}"),
        persistence=row["persistence"],
        partition_key=row["partition_key"],
        parent=names.get(parent, ""),
        bounds=row["bounds"],
        toast_bytes=row["toast_bytes"],
    )


def _list(text: str | None) -> Sequence[Any]:
    found: Sequence[Any] = json.loads(text or "[]")
    return found


def _memory(facts: Mapping[str, Any], use: SystemUse | None) -> int | None:
    machine = facts["system"]["memory_bytes"]
    limits = [bound.memory_bytes for bound in use.bounds if bound.role == SERVER] if use else []
    return min((limit for limit in (machine, *limits) if limit is not None), default=None)


def _processors(use: SystemUse | None) -> int | None:
    if use is None:
        return None
    limits = [
        limit
        for bound in use.bounds
        if bound.role == SERVER
        for limit in (bound.allowed_cpus, bound.quota_cpus)
    ]
    known = [math.ceil(limit) for limit in (use.cpus, *limits) if limit is not None]
    return min(known, default=None)
