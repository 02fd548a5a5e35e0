"""Take the definition of an index apart with the grammar. Pure."""

from __future__ import annotations

from typing import Any

from uncork.model.database.index import IndexKey, IndexShape
from uncork.profile.shapes.nodes import chained, enum_of, kind_of, only_statement, plain_sql_of


def index_shape(definition: str, name: str, table: str) -> IndexShape | None:
    """Return the parts of a CREATE INDEX statement as pg_get_indexdef writes it; None if it is none.

    `name` and `table` are the names that the shape gets.
    """
    node = only_statement(definition)
    if node is None or kind_of(node) != "index_stmt":
        return None
    index = node.index_stmt
    return IndexShape(
        table=table,
        keys=tuple(_key(param.index_elem) for param in index.index_params),
        method=index.access_method or "btree",
        included=tuple(param.index_elem.name for param in index.index_including_params),
        predicate=plain_sql_of(index.where_clause) if index.HasField("where_clause") else "",
        unique=index.unique,
        name=name,
    )


def _key(element: Any) -> IndexKey:
    nulls = {"SORTBY_NULLS_FIRST": True, "SORTBY_NULLS_LAST": False}
    return IndexKey(
        column=element.name,
        expression="" if element.name else plain_sql_of(element.expr),
        descending=enum_of(element, "ordering") == "SORTBY_DESC",
        nulls_first=nulls.get(enum_of(element, "nulls_ordering")),
        opclass=".".join(chained(element.opclass)),
        collation=".".join(chained(element.collation)),
    )
