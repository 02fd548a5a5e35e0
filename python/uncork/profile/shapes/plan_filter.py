"""Take the filter of a scan in a plan apart with the grammar. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from uncork.model.database.names import quoted, sql_name
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import Predicate
from uncork.profile.statement_shape import statement_shape

_SUBPLAN: Final = re.compile(r"\((?:hashed )?SubPlan \d+\)")
_INIT_PLAN: Final = re.compile(r"\(InitPlan \d+\)\.col\d+")
"""EXPLAIN prints these in place of subqueries: one for each row, and one that is executed once."""


def filter_predicates(node: PlanNode, tables: Mapping[str, Collection[str]]) -> tuple[Predicate, ...]:
    """Return the comparisons of a scan's filter, as those of a statement; empty if they are not SQL.

    `tables` are the column names of the catalogue's tables, as for `statement_shape`.
    """
    condition = _INIT_PLAN.sub("$1", _SUBPLAN.sub("TRUE", node.condition("Filter")))
    if not condition or not node.relation:
        return ()
    alias = quoted(node.alias or node.relation.rpartition(".")[2])
    shape = statement_shape(f"SELECT FROM {sql_name(node.relation)} AS {alias} WHERE {condition}", tables)
    found = () if shape is None else shape.predicates
    return tuple(predicate for predicate in found if predicate.table == node.relation)
