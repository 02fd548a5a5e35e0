"""Build the facts of tables, indexes and foreign keys from what was stored of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from uncork.model.results.database import ForeignKeyFacts, IndexFacts, Island, TableFacts
from uncork.profile import deltas, relations

Row = Mapping[str, Any]

MOST_TABLES: Final = 1_000
"""The most tables that a report lists: those of islands, then the largest; all of them are stored."""
_TABLE_COUNTERS: Final = (
    *("seq_scans", "seq_rows", "index_scans", "index_rows", "inserted", "updated", "hot_updated", "deleted"),
    *("heap_read", "heap_hit"),
)
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
    reset = next(
        (
            row["value"]
            for row in moments["database_counters"][1]
            if (row["view"], row["counter"], row["object"])
            == ("pg_stat_database", deltas.RESET, server["database"])
        ),
        None,
    )
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
    """Return the size of each table with its indexes; a partitioned table includes its partitions."""
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
    counted = {name: row[name] for name in _TABLE_COUNTERS}
    whole = sizes[row["oid"]] if row["kind"] == "partitioned table" else row["bytes"]
    return TableFacts(
        oid=row["oid"],
        name=qualified_name(row["schema"], row["name"]),
        kind=row["kind"],
        bytes=whole,
        index_bytes=row["index_bytes"] or 0,
        rows=row["rows"],
        live=row["live"],
        dead=row["dead"],
        **counted,
        vacuumed_us=row["vacuumed_us"],
        analysed_us=row["analysed_us"],
        frozen_age=row["frozen_age"],
        bloat_bytes=relations.table_bloat(row, block),
        island=island_of.get(row["oid"]),
        whole_reads=relations.whole_reads(row, block),
        modified=row["modified"],
        autovacuum=row["autovacuum"],
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
