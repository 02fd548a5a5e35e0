"""Take the definition of an index apart with the grammar. Pure."""

from __future__ import annotations

from typing import Any

from uncork.model.database.index import IndexKey, IndexShape


def index_shape(definition: str, name: str, table: str) -> IndexShape | None:
    """Return the parts of a CREATE INDEX statement as pg_get_indexdef writes it; None if it is none.

    `name` and `table` are the names that the shape gets.
    """
    import postgast  # noqa: PLC0415 -- loads a parser of 14 MB

    try:
        parsed = postgast.parse(definition)
    except (postgast.PgQueryError, ValueError):
        return None
    if len(parsed.stmts) != 1 or parsed.stmts[0].stmt.WhichOneof("node") != "index_stmt":
        return None
    index = parsed.stmts[0].stmt.index_stmt
    return IndexShape(
        table=table,
        keys=tuple(_key(index_param.index_elem) for index_param in index.index_params),
        method=index.access_method or "btree",
        included=tuple(param.index_elem.name for param in index.index_including_params),
        predicate=_sql(index.where_clause) if index.HasField("where_clause") else "",
        unique=index.unique,
        name=name,
    )


def _key(element: Any) -> IndexKey:
    import postgast  # noqa: PLC0415

    nulls = postgast.pg_query_pb2.SortByNulls.Name(element.nulls_ordering)
    return IndexKey(
        column=element.name,
        expression="" if element.name else _sql(element.expr),
        descending=postgast.pg_query_pb2.SortByDir.Name(element.ordering) == "SORTBY_DESC",
        nulls_first={"SORTBY_NULLS_FIRST": True, "SORTBY_NULLS_LAST": False}.get(nulls),
        opclass=".".join(part.string.sval for part in element.opclass),
        collation=".".join(part.string.sval for part in element.collation),
    )


def _sql(expression: Any) -> str:
    """Return an expression as SQL."""
    import postgast  # noqa: PLC0415

    query = postgast.parse("SELECT 1")
    target = query.stmts[0].stmt.select_stmt.target_list[0].res_target
    target.val.CopyFrom(expression)
    return str(postgast.deparse(query)).removeprefix("SELECT ")
