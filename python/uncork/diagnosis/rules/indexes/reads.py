"""How statements read a table now: all of it, by an index that fits, or too much of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rules.indexes.estimates import index_cost, pages, scan_cost
from uncork.diagnosis.rules.indexes.uses import Use, Want, is_named, table_of
from uncork.model.database.index import IndexShape
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import Predicate, StatementShape

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

# ---- which statements scan a whole table, and whether they need few of its rows ----


_READS_WHOLE: Final = 0.5
"""Blocks per call, as a fraction of the table's blocks, from which on a call scanned the table, not
an index."""
_SELECTIVE: Final = 0.05
"""Fraction of a table's rows up to which an index beats a full scan, by PostgreSQL's own cost model."""
_AGGREGATED: Final = 0.2
"""Fraction of a table's rows that pass the filter of an aggregating query, by its plan, up to which
an index helps. Above it, the query needs most of the table."""
_CALLS: Final = 5
"""Fewest calls that show a statement to return few rows each time, and not by chance."""
_READS: Final = 20
_READS_PER_S: Final = 0.5
"""Full scans, and full scans per second, that show traffic if nobody counted the calls of statements."""
_WHERE: Final = re.compile(r"\bwhere\b(.*)", re.DOTALL)
_CAST: Final = r"(?:\s*::\s*[\w\"\[\]. ]+?)?"
_EQUAL: Final = re.compile(
    rf"=\s*(?:any\s*\(+)?\?|\?{_CAST}\s*=\s*[a-z_\"]|\bin\s*\(+\?|\bi?like\s+\?|@@|@>\s*\?"
)
"""A column compared with a value, on either side: a condition that an index can serve.
Object-relational mappers write ``?::integer = item.order_id`` too."""
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

    The condition must compare a column with a value. The rows that a query returns show how many it
    needed, unless it aggregates them: such a query must also belong to the application's traffic.
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

    None if the plan does not scan it. A parallel scan lists the rows of one process, so they are
    multiplied by the number of processes that the planner reckons with.
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
    if shape.kind not in ("select", "update", "delete"):
        return False
    if not shape.tables or any(use.name != table.name for use in shape.tables if use.kind == "table"):
        return False
    if any(use.kind not in ("table", "common") for use in shape.tables) or shape.offset or shape.distinct:
        return False
    if shape.aggregates or shape.grouping or shape.windows or shape.unions:
        return False
    scans = [node for node in statement.nodes if node.relation == table.name]
    if any(node.kind not in _INDEXED or node.condition("Filter") for node in scans):
        return False
    return any(_fits(shape, index) for index in evidence.index_shapes(table.name))


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


# ---- how a statement reads a large table now, and which fraction of its time that takes ----


_READS_LITTLE: Final = 0.1
"""Blocks per call, as a fraction of the table's blocks, below which a call did not scan the table,
whatever its plan shows: a generic plan is not always the one that is executed."""
_SCANNED: Final = 0.3
"""Full scans of a table per call: without, the blocks are those of triggers, functions or other tables."""
_DISCARDED: Final = 10.0
"""Blocks read for each block needed, from which on an index scan that filters is worth another index."""
_BLOCKS: Final = 50.0
"""Fewest blocks per call of an index scan that filters: fewer take some ten microseconds."""
_DESCENT: Final = 4.0
"""Blocks of a search in a B-tree: its levels and one leaf."""
_MORE_KEYS: Final = 0.75
"""What PostgreSQL leaves of the first column's correlation in an index with more (btcostestimate)."""
_RECURSIONS: Final = 10.0
"""How often the planner assumes a recursive query to repeat (cost_recursive_union in PostgreSQL's source)."""
_TIMES: Final = ("Materialize", "Memoize", "Hash", "Sort")
"""Nodes that keep the rows of the node below, so that repeating them does not repeat it."""


@dataclass(frozen=True, slots=True)
class Read:
    """How a statement reads a table.

    It scans all rows, fetches too many rows by an index and filters them, or repeats such a search for each
    row of another table. `part` is the fraction of the statement's time in it, `cost` the planner's cost of a
    call, `times` how often a call repeats it, and `partners` the rows of the other side of its join.
    """

    how: Literal["scan", "filter", "repeated"]
    part: float
    cost: float
    times: float = 1.0
    partners: float = 1.0
    node: PlanNode | None = None


def blocks_a_call(statement: Statement) -> float | None:
    """Return how many blocks a call reads on average; None if nobody counted them."""
    return statement.a_call(statement.blocks)


def read_of(use: Use, statement: Statement, evidence: Evidence) -> Read | None:
    """Return how a statement reads a table if an index could change it; None if it reads little."""
    whole, blocks = pages(use.table, evidence), blocks_a_call(statement)
    repeated = _repeated(use, statement, evidence)
    if repeated is not None:
        return repeated
    found = list(_visits(statement, use, evidence))
    filtered = _filtered(use, found, statement, evidence)
    if blocks is not None and blocks < _READS_LITTLE * whole:
        return filtered
    scans = [each for each in found if each[0].kind == "Seq Scan" or _reads_all_of_index(each[0], use)]
    if scans and statement.plan is not None:
        node, times, partners = max(scans, key=lambda each: _own(each[0], evidence) * each[1])
        part = _part(node, times, statement.plan.root, use, evidence)
        return Read("scan", part, _own(node, evidence) * times, times, partners, node)
    if found and not use.alone:
        return None
    plan = statement.plan
    if found and filtered is not None and plan is not None and plan.source in ("seen", "executed"):
        return filtered
    return _counted(use, statement, evidence, planned=bool(found)) or filtered


def _reads_all_of_index(node: PlanNode, use: Use) -> bool:
    """Return whether a node filters all entries of an index, because it is smaller than its table."""
    filters = bool(node.condition("Filter")) and not node.condition("Index Cond")
    return node.kind == "Index Only Scan" and filters and not use.order


def _counted(use: Use, statement: Statement, evidence: Evidence, *, planned: bool) -> Read | None:
    """Return the scan that counters show, if no plan shows it: blocks per call, or scans of the table."""
    whole, blocks = pages(use.table, evidence), blocks_a_call(statement)
    reads = use.table.whole_reads
    if blocks is None:
        uncounted = evidence.database is None or evidence.database.counted_ns is None
        often = (reads or 0.0) >= _READS and (reads or 0.0) / evidence.seconds >= _READS_PER_S
        return (
            Read("scan", 1.0, scan_cost(use.table, evidence)) if often and uncounted and not planned else None
        )
    scans = float(use.table.seq_scans) if reads is None else reads
    if not scans or scans < _SCANNED * (statement.calls or 0) or blocks < _READS_WHOLE * whole:
        return None
    part = 1.0 if use.alone else min(1.0, whole / blocks)
    return Read(
        "scan",
        part,
        scan_cost(use.table, evidence),
        partners=max(1.0, statement.a_call(statement.rows) or 1.0),
    )


def saved(read: Read, want: Want, use: Use, statement: Statement, evidence: Evidence) -> float:
    """Return the fraction of a statement's time that an index would save, 0 to 1."""
    blocks = blocks_a_call(statement)
    if read.how == "filter" and blocks:
        needed = _DESCENT + want.fetched
        return read.part * max(0.0, 1 - needed / blocks)
    joined = any(_is_join(each.predicate, statement) for each in want.served)
    searches = max(1.0, read.partners if joined else read.times)
    each = index_cost(use.table, want.fetched, evidence, _correlation(want, use, evidence), searches)
    new = each * searches
    new += _of_subplans(read, use, evidence) * min(
        1.0, want.fetched * searches / max(1.0, evidence.rows(use.table.name))
    )
    return read.part * max(0.0, 1 - new / max(read.cost, 1e-9))


def _correlation(want: Want, use: Use, evidence: Evidence) -> float:
    """Return how far the order of an index is that of its table, by its first column; 0 if unknown."""
    keys = (*want.wanted.equal, *want.wanted.rest)
    column = evidence.column(use.table.name, keys[0].column) if keys and keys[0].column else None
    if column is None or want.wanted.method != "btree" or len(want.wanted.equal) > 1:
        return 0.0
    return (column.correlation or 0.0) * (1.0 if len(keys) == 1 else _MORE_KEYS)


def _is_join(predicate: Predicate, statement: Statement) -> bool:
    """Return whether a search by a predicate is repeated for each row of a table that is joined with it.

    A subquery that depends on a row of the query around it searches once for each evaluation.
    """
    if predicate.value == "subquery":
        return predicate.operator == "in"
    shape = statement.shape
    if predicate.value != "column" or predicate.other is None or not shape.kind:
        return predicate.value == "column"
    levels = {use.level for use in shape.tables if use.name == predicate.other.table}
    return not levels or predicate.level in levels


def _of_subplans(read: Read, use: Use, evidence: Evidence) -> float:
    """Return the cost of the subqueries that a scan evaluates for its rows, which fewer rows make cheaper."""
    node = read.node
    if node is None or not any(
        child.role == "SubPlan" and not node.runs_once(child) for child in node.children
    ):
        return 0.0
    return max(0.0, read.cost - scan_cost(use.table, evidence) * read.times)


def _filtered(
    use: Use, found: list[tuple[PlanNode, float, float]], statement: Statement, evidence: Evidence
) -> Read | None:
    """Return the read of an index scan that fetches far more rows than it returns."""
    blocks, returned = blocks_a_call(statement), statement.a_call(statement.rows)
    if blocks is None or returned is None or not use.alone or blocks < _BLOCKS:
        return None
    scanned = any(each[0].kind == "Seq Scan" for each in found) and not use.order
    if scanned or served_completely(statement, use.table, evidence):
        return None  # an index finds the rows already: other blocks are those of dead rows
    options = evidence.catalogue.options.get(use.table.name)
    if options is not None and (options.toast_bytes or 0) > (use.table.bytes or 0):
        return None  # the blocks may be those of long values
    shape, own = statement.shape, {function.name for function in evidence.catalogue.functions}
    if shape.kind != "select" or shape.aggregates or own.intersection(shape.functions):
        return None  # the blocks may be those of triggers and functions
    if blocks < _DISCARDED * (_DESCENT + returned):
        return None
    node = found[0][0] if found else None
    return Read("filter", 1.0, blocks, node=node)


def _repeated(use: Use, statement: Statement, evidence: Evidence) -> Read | None:
    """Return the search for the first rows of an order, by an index that lacks the columns of a join.

    ``LATERAL (SELECT ... WHERE r.device = d.id ORDER BY ts LIMIT 1)`` reads an index on ``ts`` for
    each ``d`` until a row fits. Only the plan shows it, by its estimates.
    """
    if statement.plan is None or not (use.order and use.joins) or use.alone:
        return None
    for limit, times, partners in _walk(statement.plan.root, 1.0, 1.0, 1.0):
        node = limit.children[0] if limit.kind == "Limit" and limit.children else limit
        mine = node.relation and table_of(node, evidence) == use.table.name and is_named(node, use.alias)
        if limit is node or not mine or not node.kind.startswith("Index") or times <= 1:
            continue
        condition = node.condition("Filter")
        if any(re.search(rf"\b{re.escape(join.column)}\b", condition) for join in use.joins if join.column):
            part = (
                min(1.0, limit.cost * times / statement.plan.root.cost) if statement.plan.root.cost else 1.0
            )
            return Read("repeated", part, limit.cost * times, times, partners, node)
    return None


def _part(node: PlanNode, times: float, root: PlanNode, use: Use, evidence: Evidence) -> float:
    """Return the fraction of a statement's time in a node, executed or planned."""
    if use.order:
        return 1.0  # the scan, and the sort that an order makes unnecessary
    if node.milliseconds is not None and root.milliseconds:
        return min(1.0, _own_milliseconds(node) / root.milliseconds)
    whole = root.cost - sum(_excess(each, evidence) * again for each, again, _ in _walk(root, 1.0, 1.0, 1.0))
    return min(1.0, _own(node, evidence) * times / whole) if whole > 0 else 1.0


def _own(node: PlanNode, evidence: Evidence) -> float:
    """Return the cost of a scan without the subqueries that it executes once, however few rows it reads."""
    once = sum(child.cost for child in node.children if node.runs_once(child))
    return max(0.0, node.cost - once - _excess(node, evidence))


def _excess(node: PlanNode, evidence: Evidence) -> float:
    """Return what the cost of a scan says too much, if it has a subquery that could be hashed or not.

    The planner counts such a subquery (EXISTS below OR) as one that is executed for each row, even
    if the plan has the hashed one.
    """
    table = evidence.tables.get(table_of(node, evidence)) if node.relation else None
    subplans = [child for child in node.children if child.role == "SubPlan"]
    if table is None or node.kind != "Seq Scan" or not subplans:
        return 0.0
    if not all(node.runs_once(subplan) for subplan in subplans):
        return 0.0
    once = sum(child.cost for child in node.children if node.runs_once(child))
    return max(0.0, node.cost - once - scan_cost(table, evidence))


def _own_milliseconds(node: PlanNode) -> float:
    once = (child.milliseconds or 0.0 for child in node.children if node.runs_once(child))
    return max(0.0, (node.milliseconds or 0.0) - sum(once))


def _visits(statement: Statement, use: Use, evidence: Evidence) -> Iterator[tuple[PlanNode, float, float]]:
    """Yield the nodes that read a table, how often a call executes each, and its join partners."""
    if statement.plan is None:
        return
    for node, times, partners in _walk(statement.plan.root, 1.0, 1.0, 1.0):
        mine = node.relation and table_of(node, evidence) == use.table.name and node.kind != "ModifyTable"
        alias = use.alias if is_named(node, use.alias) else node.alias
        if mine and alias in ("", use.alias, use.table.name.rpartition(".")[2], node.relation):
            yield node, times, partners
        elif mine and node.relation != use.table.name:
            yield node, times, partners  # a partition has an alias of its own


def _walk(
    node: PlanNode, times: float, partners: float, calls: float
) -> Iterator[tuple[PlanNode, float, float]]:
    """Yield each node, how often it is executed, and its join partners.

    `calls` is how often the subplan around it is evaluated; each evaluation searches for other values.
    """
    yield node, times, partners
    joins = node.kind in ("Nested Loop", "Hash Join", "Merge Join")
    for child in node.children:
        if node.kind == "Recursive Union" and child.role == "Inner":
            yield from _walk(child, times * _RECURSIONS, partners, calls * _RECURSIONS)
            continue
        again, other, inside = times, calls if joins else partners, calls
        if joins:
            others = [
                each.rows for each in node.children if each is not child and each.role in ("Outer", "Inner")
            ]
            other = calls * max([1.0, *others])
        if node.kind == "Nested Loop" and child.kind not in _TIMES:
            if child.role == "Inner":
                again = times * other / calls
            elif any(child.role == "Inner" and _searches(child) for child in node.children):
                other *= max(1.0, child.rows)
        elif child.role == "SubPlan" and not node.runs_once(child):
            again = other = inside = times * _evaluations(child, node)
        yield from _walk(child, again, other, inside)


def _searches(node: PlanNode) -> bool:
    """Return whether the inner side of a nested loop searches by an index, so has rows for each outer row."""
    found = node.children[0] if node.kind in ("Memoize", "Materialize") and node.children else node
    return "Index" in found.kind or found.kind.startswith("Bitmap")


def _evaluations(subplan: PlanNode, node: PlanNode) -> float:
    """Return how often a node evaluates a subplan: its cost includes that of the subplan as many times.

    The rows of the node would be too few, because it evaluates a filter for the rows that it discards too.
    """
    if subplan.loops and node.loops:
        return max(1.0, subplan.loops / node.loops)
    others = sum(child.cost for child in node.children if child.role != "SubPlan")
    return max(1.0, node.rows if not subplan.cost else (node.cost - others) / subplan.cost)
