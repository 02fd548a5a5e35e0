"""The graph of foreign keys as a Graphviz file: table sizes, islands, keys without an index."""

from __future__ import annotations

import json
from collections import defaultdict

from uncork.model.results.database import DatabaseResult, TableFacts
from uncork.model.units import format_bytes


def foreign_key_dot(result: DatabaseResult) -> str:
    """Return all tables and foreign keys as a Graphviz file, with a cluster per island."""
    lines = ["digraph tables {", '  graph [rankdir="LR"];', '  node [shape="box"];']
    members_of: dict[int | None, list[TableFacts]] = defaultdict(list)
    for table in result.tables:
        members_of[table.island].append(table)
    for island in result.islands:
        title = f"island {island.number}, {format_bytes(island.bytes)}"
        members = members_of[island.number]
        lines += [f'  subgraph "cluster_{island.number}" {{', f"    graph [label={_quoted(title)}];"]
        lines += [*(f"  {_dot_node(member)}" for member in members), "  }"]
    lines += [_dot_node(table) for table in members_of[None]]
    for key in result.foreign_keys:
        marks = "" if key.indexed else ', style="dashed", color="red", fontcolor="red"'
        words = key.columns if key.indexed else f"{key.columns}: no index"
        lines.append(f"  {key.table_oid} -> {key.referred_oid} [label={_quoted(words)}{marks}];")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_node(table: TableFacts) -> str:
    label = "\n".join((table.name, format_bytes((table.bytes or 0) + table.index_bytes)))
    return f"  {table.oid} [label={_quoted(label)}];"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
