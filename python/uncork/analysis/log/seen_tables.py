"""What the executed plans of a log show of tables: their rows and their size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode, StatementPlan
    from uncork.model.results.database import TableFacts

_BLOCK = 8192
_TUPLE_COST = 0.0125
"""The planner's charge for a row of a scan with one condition, with PostgreSQL's default costs."""


@dataclass(slots=True)
class _Seen:
    """The most that any plan shows of a table."""

    rows: float = 0.0
    blocks: float = 0.0


def tables_of(plans: Iterable[StatementPlan]) -> Mapping[str, TableFacts]:
    """Return the tables that executed plans scan as a whole. Pure.

    A scan that LIMIT ended early has read fewer rows than the table has, so of several scans the largest
    counts. What statements did to the tables is unknown, so all counters are 0.
    """
    found: dict[str, _Seen] = {}
    for node in (node for plan in plans for node in _scans(plan.root)):
        one = found.setdefault(node.relation, _Seen())
        each = 1.0 if node.parallel else max(1.0, node.loops or 1.0)
        rows = ((node.actual_rows or 0.0) + (node.removed or 0.0)) / each
        if rows >= one.rows:
            planned = max(1.0, node.cost - _TUPLE_COST * rows)
            one.rows, one.blocks = rows, planned if node.blocks is None else node.blocks / each
    return {name: _table(name, one) for name, one in found.items()}


def _scans(root: PlanNode) -> Iterator[PlanNode]:
    for node in root.walk():
        if node.kind == "Seq Scan" and node.relation and node.loops:
            yield node


def _table(name: str, one: _Seen) -> TableFacts:
    from uncork.model.results.database import TableFacts  # noqa: PLC0415 -- few logs have plans

    return TableFacts(
        oid=0,
        name=name,
        kind="table",
        bytes=round(one.blocks * _BLOCK),
        index_bytes=0,
        rows=one.rows,
        live=None,
        dead=None,
        seq_scans=0,
        seq_rows=0,
        index_scans=0,
        index_rows=0,
        inserted=0,
        updated=0,
        hot_updated=0,
        deleted=0,
        heap_read=0,
        heap_hit=0,
        vacuumed_us=None,
        analysed_us=None,
        frozen_age=None,
        bloat_bytes=None,
        island=None,
        whole_reads=None,
        modified=None,
        autovacuum=None,
    )
