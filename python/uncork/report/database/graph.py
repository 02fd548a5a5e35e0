"""The graph of foreign keys, as a block, DOT and SVG: table sizes, islands, keys without an index."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Final

from uncork.model.results.database import DatabaseResult, ForeignKeyFacts, Island, TableFacts
from uncork.model.units import format_bytes
from uncork.report.blocks import Graph, GraphEdge, GraphNode
from uncork.report.draw.graph_drawing import graph_file
from uncork.report.figures import number_text
from uncork.report.words import count_words

__all__ = ["foreign_key_dot", "foreign_key_graph", "foreign_key_svg"]

_MOST: Final = 150
"""Most tables drawn. With more, nobody could read the names."""


def foreign_key_graph(result: DatabaseResult, most: int = _MOST) -> Graph | None:
    """Return the graph of the largest islands, with up to `most` tables; None without foreign keys."""
    if not result.islands:
        return None
    shown: list[Island] = []
    drawn = 0
    for island in result.islands:
        if not shown or drawn + len(island.tables) <= most:
            shown.append(island)
            drawn += len(island.tables)
    number = {island.number: place for place, island in enumerate(shown)}
    nodes = tuple(
        GraphNode(table.oid, table.name, format_bytes(_size(table)), _size(table), number[table.island])
        for table in result.tables
        if table.island is not None and table.island in number
    )
    keys = {node.key for node in nodes}
    edges = tuple(
        GraphEdge(
            key.table_oid,
            key.referred_oid,
            f"{key.table} ({key.columns}) references {key.referred}{_rows_each(key)}"
            f"{'' if key.indexed else ': no index'}",
            marked=not key.indexed,
        )
        for key in result.foreign_keys
        if key.table_oid in keys and key.referred_oid in keys
    )
    bare = sum(edge.marked for edge in edges)
    left = sum(len(island.tables) for island in result.islands) - len(nodes)
    more = f"; {count_words(left, 'more table')} in islands not drawn" if left > 0 else ""
    return Graph(
        title="Tables joined by foreign keys",
        description=f"{count_words(len(nodes), 'table')} in {count_words(len(shown), 'island')}, "
        f"{count_words(len(edges), 'foreign key')}, {bare} of them without an index",
        note="An arrow points from the referencing table; it is dashed if the foreign key has no index. The "
        f"area of a circle is the size of the table with its indexes{more}.",
        islands=tuple(
            f"island {island.number}: {count_words(len(island.tables), 'table')}, "
            f"{format_bytes(island.bytes)}"
            for island in shown
        ),
        nodes=nodes,
        edges=edges,
    )


def _rows_each(one: ForeignKeyFacts) -> str:
    return "" if one.rows_each is None else f", about {number_text(one.rows_each)} for one"


def _size(one: TableFacts) -> int:
    return (one.bytes or 0) + one.index_bytes


def foreign_key_svg(result: DatabaseResult) -> str:
    """Return the graph as an SVG file; without foreign keys, a drawing that says so."""
    return graph_file(foreign_key_graph(result) or _EMPTY)


_EMPTY: Final = Graph("Tables joined by foreign keys", "There are none", "", (), (), ())


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
    lines += [_dot_node(one) for one in members_of[None]]
    for key in result.foreign_keys:
        marks = "" if key.indexed else ', style="dashed", color="red", fontcolor="red"'
        words = key.columns if key.indexed else f"{key.columns}: no index"
        lines.append(f"  {key.table_oid} -> {key.referred_oid} [label={_quoted(words)}{marks}];")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_node(one: TableFacts) -> str:
    label = "\n".join((one.name, format_bytes(_size(one))))
    return f"  {one.oid} [label={_quoted(label)}];"


def _quoted(text: str) -> str:
    """Return a text quoted for Graphviz, with its line breaks."""
    return json.dumps(text, ensure_ascii=False)
