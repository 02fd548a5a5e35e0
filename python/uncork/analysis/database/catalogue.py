"""Build the catalogue of a watched database from what was stored of it. Pure."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

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
from uncork.model.records import build_from
from uncork.model.system import SERVER, SystemUse
from uncork.model.tables.catalogue import (
    ColumnRow,
    ConstraintRow,
    FunctionRow,
    PolicyRow,
    RoleSettingRow,
    ServerSettingRow,
    TableOptionsRow,
    TriggerRow,
    ViewRow,
)
from uncork.profile import deltas
from uncork.profile.system import system_use
from uncork.store.rows import typed_rows

Row = Mapping[str, Any]
Tables = Mapping[str, pa.Table]
OfTable = TypeVar("OfTable", ColumnRow, ConstraintRow, TriggerRow, PolicyRow, TableOptionsRow)

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
    names = {oid: qualified_name(row["schema"], row["name"]) for oid, row in relations.items()}
    columns: dict[str, list[ColumnFacts]] = defaultdict(list)
    for row in _rows(tables["database_columns"], ColumnRow, names):
        columns[names[row.table_oid]].append(_column(row, names[row.table_oid]))
    settings = {
        row.name: build_from(ServerSetting, row)
        for row in typed_rows(tables["database_server_settings"], ServerSettingRow)
    }
    use = system_use(tables)
    return Catalogue(
        columns={
            table: tuple(sorted(of_table, key=lambda column: column.number))
            for table, of_table in columns.items()
        },
        constraints=tuple(
            _constraint(row, names, relations)
            for row in _rows(tables["database_constraints"], ConstraintRow, names)
        ),
        triggers=tuple(
            _trigger(row, names[row.table_oid])
            for row in _rows(tables["database_triggers"], TriggerRow, names)
        ),
        policies=tuple(
            build_from(PolicyFacts, row, table=names[row.table_oid], roles=tuple(_list(row.roles)))
            for row in _rows(tables["database_policies"], PolicyRow, names)
        ),
        functions=tuple(_functions(tables["database_functions"], settings, facts)),
        views=tuple(
            ViewFacts(qualified_name(row.schema, row.name), row.materialized, row.definition or "")
            for row in typed_rows(tables["database_views"], ViewRow)
        ),
        options={
            names[row.table_oid]: _options(row, names, relations)
            for row in _rows(tables["database_table_options"], TableOptionsRow, names)
        },
        settings=settings,
        role_settings=tuple(
            build_from(RoleSetting, row, value=row.value or "")
            for row in typed_rows(tables["database_role_settings"], RoleSettingRow)
        ),
        memory_bytes=_memory(facts, use),
        processors=_processors(use),
    )


def _relations(table: pa.Table) -> dict[int, Row]:
    """Return schema, name and parent of each table by oid, from the last snapshot that has it."""
    wanted = table.select(["moment", "oid", "schema", "name", "partition_of"])
    after = wanted.filter(pc.equal(wanted["moment"], "after"))
    return {row["oid"]: row for row in after.to_pylist()}


def _rows(table: pa.Table, kind: type[OfTable], names: Mapping[int, str]) -> Iterable[OfTable]:
    """Return rows of tables whose names are known."""
    return (row for row in typed_rows(table, kind) if row.table_oid in names)


def _column(row: ColumnRow, table: str) -> ColumnFacts:
    return build_from(
        ColumnFacts,
        row,
        table=table,
        common=tuple((value, frequency) for value, frequency in _list(row.common)),
        bounds=tuple(_list(row.bounds)),
    )


def _constraint(
    row: ConstraintRow, names: Mapping[int, str], relations: Mapping[int, Row]
) -> ConstraintFacts:
    schema = relations[row.table_oid]["schema"]
    return build_from(
        ConstraintFacts,
        row,
        table=names[row.table_oid],
        columns=tuple(_list(row.columns)),
        index=qualified_name(schema, row.index) if row.index else "",
        referred="" if row.referred_oid is None else names.get(row.referred_oid, ""),
        referred_columns=tuple(_list(row.referred_columns)),
        on_delete=row.on_delete or "",
        on_update=row.on_update or "",
    )


def _trigger(row: TriggerRow, table: str) -> TriggerFacts:
    return build_from(
        TriggerFacts,
        row,
        table=table,
        events=tuple(_list(row.events)),
        function=qualified_name(row.function_schema, row.function),
    )


def _functions(
    table: pa.Table, settings: Mapping[str, ServerSetting], facts: Mapping[str, Any]
) -> Iterable[FunctionFacts]:
    """Yield functions with the growth of their counters, which is 0 if a counted function was not called."""
    before, after = (table.filter(pc.equal(table["moment"], moment)) for moment in ("before", "after"))
    counted_before, counted_after = (
        moment.select(["oid", *_COUNTERS]).to_pylist() for moment in (before, after)
    )
    tracked = settings["track_functions"].value if "track_functions" in settings else "none"
    unread = any(
        "counters of functions" in facts["snapshots"].get(moment, {}).get("failed", {})
        for moment in ("before", "after")
    )
    changes = deltas.row_deltas(counted_before, counted_after, _COUNTERS)
    for row, change in zip(typed_rows(after, FunctionRow), changes, strict=True):
        counted = row.calls is not None or tracked == "all"
        counted |= tracked == "pl" and row.language not in _COMPILED
        grown = change if counted and not unread else {}
        yield build_from(
            FunctionFacts,
            row,
            name=qualified_name(row.schema, row.name),
            calls=grown.get("calls"),
            total_ms=grown.get("total_ms"),
            self_ms=grown.get("self_ms"),
        )


def _options(row: TableOptionsRow, names: Mapping[int, str], relations: Mapping[int, Row]) -> TableOptions:
    return build_from(
        TableOptions,
        row,
        table=names[row.table_oid],
        options=json.loads(row.options or "{}"),
        parent=names.get(relations[row.table_oid]["partition_of"], ""),
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
