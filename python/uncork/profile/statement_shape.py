"""Take a statement apart with the grammar: what it reads, compares, sorts and changes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from uncork.model.database.statement import StatementShape
from uncork.profile.shapes.commands import command, walk_command
from uncork.profile.shapes.nodes import kind_of
from uncork.profile.shapes.queries import QUERIES, Walk
from uncork.profile.shapes.scopes import Scope
from uncork.profile.shapes.texts import accepted


def statement_shape(
    sql: str, tables: Mapping[str, Collection[str]], *, template: bool = False
) -> StatementShape | None:
    """Take one statement apart; None if the grammar rejects it, or if the text has several statements.

    `sql` has ``$1`` or literals for its values; with `template`, it has ``?`` for each value. `tables` are
    the column names of the catalogue's tables, by name; those in `public` have no schema. They tell which
    table a column belongs to if the statement does not.
    """
    tree = accepted(sql, template=template)
    if tree is None or len(tree.stmts) != 1:
        return None
    node = tree.stmts[0].stmt
    if not kind_of(node):
        return None
    walk = Walk(tables)
    if kind_of(node) in QUERIES:
        walk.query(node, Scope(None, 0), outermost=True)
    walk_command(node, walk)
    return walk.parts.shape(command(node))
