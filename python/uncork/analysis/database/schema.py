"""Build the facts of tables, indexes and keys, and the catalogue, from what was stored of them. Pure."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

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
from uncork.model.results.database import ForeignKeyFacts, IndexFacts, Island, TableFacts
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
from uncork.profile import deltas, relations
from uncork.profile.system import system_use
from uncork.store.tables import typed_rows

Row = Mapping[str, Any]

MOST_TABLES: Final = 1_000
"""The most tables that a report lists: those of islands, then the largest; all of them are stored."""
_TABLE_COUNTERS: Final = (
    *("seq_scans", "seq_rows", "index_scans", "index_rows", "inserted", "updated", "hot_updated", "deleted"),
    *("heap_read", "heap_hit"),
)
_OF_TABLE: Final = (
    *("oid", "kind", "rows", "live", "dead", "vacuumed_us", "analysed_us", "frozen_age"),
    *("modified", "autovacuum"),
)
"""Columns of the stored table that `TableFacts` has as they are."""
NEEDED_BEFORE: Final = {
    "database_relations": ("oid", *_TABLE_COUNTERS),
    "database_indexes": ("oid", "scans"),
}
"""The columns that `schema_facts` needs of the snapshot before the watch, by stored table."""
NOT_NEEDED: Final = frozenset({"moment", "rows_read", "scanned_us"})
"""Columns that it does not need at all. With many thousand indexes, rows take much memory."""


def schema_facts(
    moments: Mapping[str, tuple[Sequence[Row], Sequence[Row]]],
    tables: Mapping[str, pa.Table],
    server: Mapping[str, Any],
    unread: Collection[str] = (),
) -> dict[str, Any]:
    """Return tables, indexes, foreign keys and islands as fields of `DatabaseResult`. Pure.

    `unread` names what the first snapshot could not read: the growth of its counters is unknown.
    """
    block = server["block_size"]
    found, indexes = moments["database_relations"][1], moments["database_indexes"][1]
    grown = _grown(moments["database_relations"], _TABLE_COUNTERS, read="tables" not in unread)
    scanned = _grown(moments["database_indexes"], ("scans",), read="indexes" not in unread)
    names = {row["oid"]: qualified_name(row["schema"], row["name"]) for row in found}
    parts = {row["oid"] for row in found if row["partition_of"] is not None}
    fresh = {row["oid"] for row in found if relations.fresh_statistics(row, block)}
    indexes_of: dict[int, list[Row]] = defaultdict(list)
    for row in indexes:
        indexes_of[row["table_oid"]].append(row)
    keys = [row for row in tables["database_foreign_keys"].to_pylist() if row["table_oid"] in names]
    sizes = _sizes(found)
    rows_of = {row["oid"]: row["rows"] for row in found}
    groups = _islands(keys, sizes, names)
    island_of = {oid: number for number, members in enumerate(groups, 1) for oid in members}
    facts = [
        _table({**row, **change}, island_of, sizes, block) for row, change in zip(found, grown, strict=True)
    ]
    facts.sort(key=lambda fact: (fact.island is None, -(fact.bytes or 0) - fact.index_bytes, fact.name))
    shown = facts[: max(MOST_TABLES, len(island_of))]
    shown.sort(key=lambda one: (-(one.bytes or 0) - one.index_bytes, one.name))
    of_reset = ("pg_stat_database", deltas.RESET, server["database"])
    after = moments["database_counters"][1]
    resets = (row["value"] for row in after if (row["view"], row["counter"], row["object"]) == of_reset)
    reset = next(resets, None)
    return {
        "tables": tuple(shown),
        "tables_more": len(facts) - len(shown),
        "indexes": tuple(_indexes(indexes, scanned, names, parts, fresh, block)),
        "counted_since_us": None if reset is None else round(reset),
        "foreign_keys": tuple(
            ForeignKeyFacts(
                name=row["name"],
                table=names[row["table_oid"]],
                table_oid=row["table_oid"],
                referred=names.get(row["referred_oid"], ""),
                referred_oid=row["referred_oid"],
                columns=row["columns"],
                indexed=relations.rests_on_index(row, indexes_of[row["table_oid"]]),
                **_referring(row, rows_of.get(row["table_oid"])),
            )
            for row in keys
        ),
        "islands": tuple(
            Island(number, tuple(names[oid] for oid in members), sum(sizes[oid] for oid in members))
            for number, members in enumerate(groups, 1)
        ),
    }


def _referring(key: Row, rows: float | None) -> dict[str, float | None]:
    """Estimate how many rows of a table refer to one row by a foreign key, on average and at most.

    A negative number of distinct values is a fraction of the rows, as in pg_stats.
    """
    distinct, nulls = key["distinct_values"], key["null_share"] or 0.0
    if not rows or rows < 0 or not distinct:
        return {"rows_each": None, "most_each": None}
    values = distinct if distinct > 0 else -distinct * rows
    mean = max(1.0, rows * (1.0 - nulls) / values) if nulls < 1.0 else None
    top = key["top_share"]
    return {"rows_each": mean, "most_each": None if top is None or mean is None else max(mean, top * rows)}


def _grown(
    moments: tuple[Sequence[Row], Sequence[Row]], counters: Sequence[str], *, read: bool
) -> Iterator[dict[str, Any]]:
    """Yield the growth of counters of each row after the watch, without its other columns."""
    before, after = moments
    names = ("oid", *counters)
    slim = ({name: row[name] for name in names} for row in after)
    return deltas.row_deltas(before, slim, counters, read=read)


def qualified_name(schema: str, name: str) -> str:
    """Return the name of a relation or function as reports show it: without the schema if that is public."""
    return name if schema == "public" else f"{schema}.{name}"


def _sizes(rows: Sequence[Row]) -> dict[int, int]:
    own = {row["oid"]: (row["bytes"] or 0) + (row["index_bytes"] or 0) for row in rows}
    parents = {row["oid"]: row["partition_of"] for row in rows}
    sizes = dict(own)
    for oid, size in own.items():
        parent = parents[oid]
        while parent in sizes:
            sizes[parent] += size
            parent = parents[parent]
    return sizes


def _islands(keys: Sequence[Row], sizes: Mapping[int, int], names: Mapping[int, str]) -> list[list[int]]:
    """Return islands of tables, the largest first, and within each the largest table first."""
    links = [(row["table_oid"], row["referred_oid"]) for row in keys if row["referred_oid"] in names]
    groups = [
        sorted(members, key=lambda oid: (-sizes[oid], names[oid])) for members in relations.islands(links)
    ]
    return sorted(groups, key=lambda members: (-sum(sizes[oid] for oid in members), names[members[0]]))


def _table(row: Row, island_of: Mapping[int, int], sizes: Mapping[int, int], block: int) -> TableFacts:
    whole = sizes[row["oid"]] if row["kind"] == "partitioned table" else row["bytes"]
    return TableFacts(
        **{name: row[name] for name in (*_OF_TABLE, *_TABLE_COUNTERS)},
        name=qualified_name(row["schema"], row["name"]),
        bytes=whole,
        index_bytes=row["index_bytes"] or 0,
        bloat_bytes=relations.table_bloat(row, block),
        island=island_of.get(row["oid"]),
        whole_reads=relations.whole_reads(row, block),
    )


def _indexes(
    ever: Sequence[Row],
    between: Iterable[Row],
    names: Mapping[int, str],
    parts: set[int],
    fresh: set[int],
    block: int,
) -> list[IndexFacts]:
    warnings = relations.index_doubts(ever)
    found = []
    for row, change in zip(ever, between, strict=True):
        warning, same = warnings[row["oid"]]
        if warning == "unused" and row["table_oid"] in parts:
            warning = ""  # the index of one partition cannot be dropped alone
        found.append(
            IndexFacts(
                oid=row["oid"],
                name=qualified_name(row["schema"], row["name"]),
                table=names.get(row["table_oid"], ""),
                definition=row["definition"],
                bytes=row["bytes"],
                scans=change["scans"],
                scans_ever=row["scans"],
                bloat_bytes=relations.index_bloat(row, block, fresh=row["table_oid"] in fresh),
                warning=warning,
                same_as=same,
            )
        )
    return sorted(found, key=lambda one: (-(one.bytes or 0), one.name))


# ---- the catalogue of a watched database ----


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
