"""Whether statements scan a whole table, or an index finds exactly the rows that they need. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement

if TYPE_CHECKING:
    from uncork.model.database.index import IndexShape
    from uncork.model.database.statement import StatementShape
    from uncork.model.results.database import TableFacts


# ---- which statements scan a whole table, and whether they need few of its rows ----


_READS_WHOLE: Final = 0.5
"""Blocks per call, as a fraction of the table's blocks, from which on a call scanned the table, not an
index."""
_SELECTIVE: Final = 0.05
"""Fraction of a table's rows up to which an index beats a full scan, by PostgreSQL's own cost model."""
_AGGREGATED: Final = 0.2
"""Fraction of a table's rows that pass the filter of an aggregating query, by its plan, up to which an index
helps. Above it, the query needs most of the table."""
_CALLS: Final = 5
"""Fewest calls that show a statement to return few rows each time, and not by chance."""
_READS: Final = 20
_READS_PER_S: Final = 0.5
_WHERE: Final = re.compile(r"\bwhere\b(.*)", re.DOTALL)
_CAST: Final = r"(?:\s*::\s*[\w\"\[\]. ]+?)?"
_EQUAL: Final = re.compile(
    rf"=\s*(?:any\s*\(+)?\?|\?{_CAST}\s*=\s*[a-z_\"]|\bin\s*\(+\?|\bi?like\s+\?|@@|@>\s*\?"
)
"""A column compared with a value, on either side: a condition that an index can serve. Object-relational
mappers write ``?::integer = item.order_id`` too."""
_GROUPED: Final = re.compile(
    r"\b(?:count|sum|avg|min|max|bool_and|bool_or|every|(?:string|array|jsonb?|jsonb?_object)_agg)\s*\(|"
    r"\bgroup by\b|\bdistinct\b"
)
"""An aggregating query: the number of rows it returns does not show how many rows it needed."""
_NODE: Final = re.compile(
    r"^ *(?:-> +)?(?P<name>\S.*?) +\(cost=[\d.]+\.\.[\d.]+ rows=(?P<rows>\d+) width=\d+\)"
)
_SCAN: Final = re.compile(r"^(?:Parallel )?Seq Scan on (?P<table>(?:\"[^\"]+\"|\S)+)")
_WORKERS: Final = re.compile(r"^ *Workers Planned: (?P<workers>\d+)")
_LEADER: Final = (1.0, 0.7, 0.4, 0.1, 0.0)
"""The leader's part of a parallel scan by the number of workers, as in PostgreSQL's get_parallel_divisor."""


def _mentions(text: str, table: TableFacts) -> bool:
    name = re.escape(table.name.rpartition(".")[2].lower())
    return re.search(rf"(?<![\w$]){name}(?![\w$])", text) is not None


def reads_whole(statement: Statement, table: TableFacts, evidence: Evidence) -> bool:
    """Return whether each call of a statement scans a whole table, by the number of blocks per call."""
    if not _mentions(statement.text, table) or not table.seq_scans or not table.bytes:
        return False
    blocks = statement.a_call(statement.blocks)
    if blocks is None:
        return evidence.database is None or evidence.database.counted_ns is None
    return blocks * evidence.block_bytes >= _READS_WHOLE * table.bytes


def selective(statement: Statement, table: TableFacts, evidence: Evidence) -> bool:
    """Return whether a statement often needs few rows of a table, which an index would serve.

    The condition must compare a column with a value. The rows that a query returns show how many it needed,
    unless it aggregates them: such a query must also belong to the application's traffic.
    """
    condition = _WHERE.search(statement.text)
    if condition is None or not _EQUAL.search(condition[1]):
        return False
    if statement.calls is None or statement.rows is None:
        reads = table.whole_reads or 0.0
        return reads >= _READS and reads / evidence.seconds >= _READS_PER_S
    if _GROUPED.search(statement.text):
        passing = _passing(statement, table, evidence)
        return evidence.is_traffic(statement) and (passing is None or passing <= _AGGREGATED)
    few = statement.rows <= _SELECTIVE * evidence.rows(table.name) * statement.calls
    return few and statement.calls >= _CALLS


def _passing(statement: Statement, table: TableFacts, evidence: Evidence) -> float | None:
    """Return the fraction of a table's rows that pass a statement's filter, by its plan; None if unknown."""
    plans = () if evidence.database is None else evidence.database.plans
    plan = next((plan for plan in plans if plan.template == statement.number), None)
    rows = None if plan is None else scanned_rows(plan.text, table.name.rpartition(".")[2])
    whole = evidence.rows(table.name)
    return None if rows is None or not whole else rows / whole


def scanned_rows(plan: str, table: str) -> float | None:
    """Return how many rows a plan expects to pass the filter of its sequential scan of a table.

    None if the plan does not scan it. A parallel scan lists the rows of one process, so they are multiplied
    by the number of processes that the planner reckons with.
    """
    workers = 0
    for line in plan.splitlines():
        planned = _WORKERS.match(line)
        if planned is not None:
            workers = int(planned["workers"])
        node = _NODE.match(line)
        scan = None if node is None else _SCAN.match(node["name"])
        if node is None or scan is None or scan["table"].strip('"') != table:
            continue
        parallel = node["name"].startswith("Parallel")
        return float(node["rows"]) * (workers + _LEADER[min(workers, 4)] if parallel and workers else 1.0)
    return None


# ---- whether an index that exists finds exactly the rows that a statement needs ----


_INDEXED: Final = frozenset({"Index Scan", "Index Only Scan", "ModifyTable", "LockRows"})
"""Nodes of a plan that find a table's rows by an index only, or change and lock what is found."""


def served_completely(statement: Statement, table: TableFacts, evidence: Evidence) -> bool:
    """Return whether an index finds exactly the rows of a statement that uses this table only."""
    shape = statement.shape
    if shape is None or shape.kind not in ("select", "update", "delete"):
        return False
    if not shape.tables or any(use.name != table.name for use in shape.tables if use.kind == "table"):
        return False
    if any(use.kind not in ("table", "common") for use in shape.tables) or shape.offset or shape.distinct:
        return False
    if shape.aggregates or shape.grouping or shape.windows or shape.unions:
        return False
    scans = (
        []
        if statement.plan is None
        else [node for node in statement.plan.root.walk() if node.relation == table.name]
    )
    if any(node.kind not in _INDEXED or node.condition("Filter") for node in scans):
        return False
    return any(
        each.shape is not None and each.facts.warning != "invalid" and _fits(shape, each.shape)
        for each in evidence.indexes.get(table.name, ())
    )


def _fits(shape: StatementShape, index: IndexShape) -> bool:
    """Return whether an index's first columns are those compared for equality, then those of order."""
    own = [predicate for predicate in shape.predicates if predicate.value != "subquery"]
    if any(predicate.alternative or predicate.negated or not predicate.column for predicate in own):
        return False
    own = [predicate for predicate in own if not (index.predicate and predicate.column in index.predicate)]
    equal = {predicate.column for predicate in own if predicate.operator == "="}
    ranges = {predicate.column for predicate in own if predicate.operator != "="} - equal
    ordered = [key.column for key in shape.order if key.column not in equal]
    first = set(index.columns[: len(equal)])
    rest = list(index.columns[len(equal) :])
    return (
        first == equal
        and len(ranges) <= 1
        and (not ranges or rest[:1] == list(ranges))
        and rest[: len(ordered)] == ordered
        and bool(equal or ranges or (ordered and shape.limit))
    )
