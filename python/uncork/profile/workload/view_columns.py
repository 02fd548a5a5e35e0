"""Find the column of a table beneath a column of a view. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from uncork.profile.shapes.nodes import column_fields, kind_of, parsed
from uncork.profile.statement_parts import aliases_of


@lru_cache(maxsize=256)
def beneath(definition: str, column: str) -> tuple[str, str] | None:
    """Return the relation and its column that a column of a view passes through; None if it computes it.

    `definition` is the view's query as pg_get_viewdef prints it, which qualifies columns if several relations
    have them. A view of several queries (UNION) has no such column.
    """
    tree = parsed(definition.strip().rstrip(";"))
    if tree is None or len(tree.stmts) != 1 or kind_of(tree.stmts[0].stmt) != "select_stmt":
        return None
    node = tree.stmts[0].stmt
    select = node.select_stmt
    if select.HasField("larg") or not all(map(_is_plain, select.from_clause)):
        return None
    fields = next((each for name, each in map(_output, select.target_list) if name == column), None)
    aliases = aliases_of(node)
    relations = set(aliases.values())
    if fields is None or not relations:
        return None
    if len(fields) > 1:
        found = aliases.get(fields[-2])
    else:
        found = next(iter(relations)) if len(relations) == 1 else None
    return None if found is None else (found, fields[-1])


def _is_plain(item: Any) -> bool:
    """Return whether an item of FROM is a relation, or joins relations."""
    if kind_of(item) == "join_expr":
        return _is_plain(item.join_expr.larg) and _is_plain(item.join_expr.rarg)
    return kind_of(item) == "range_var"


def _output(item: Any) -> tuple[str, list[str] | None]:
    """Return the name of an output, and the fields of its column; None if it is no plain column."""
    target = item.res_target
    plain = kind_of(target.val) == "column_ref"
    fields = list(column_fields(target.val.column_ref)) if plain else None
    return target.name or (fields[-1] if fields else ""), fields
