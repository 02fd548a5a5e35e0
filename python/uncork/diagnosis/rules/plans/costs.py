"""How long a plan takes by its cost, and how long a statement would take with a good plan. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from uncork.diagnosis.evidence import Evidence, Statement
from uncork.model.database.plan import PlanNode
from uncork.model.database.wait_classes import CPU

LARGE_ROWS: Final = 10_000
"""Rows of a large table. Reading a smaller one completely takes a millisecond or two."""
SLOWER: Final = 10.0
"""How many times longer a statement takes than the cost of its plan says, from which on the planner
expected other numbers of rows. The constant below is at the upper end already."""
_COST_NS: Final = 10_000.0
"""Time of one unit of cost (seq_page_cost: one block read in sequence). With blocks in memory,
PostgreSQL spends 2 to 10 µs for each unit of a plan whose numbers of rows are right."""
_ROW: Final = 0.03
"""Cost of a row in a plan that reads a table once and hashes it: 0.0125 for the scan
(cpu_tuple_cost and cpu_operator_cost), and about as much for the hash join."""
_WRONG: Final = 10.0
"""Ratio of the numbers of rows found and expected, from which on the planner chooses another join or scan."""
_PARALLEL: Final = 2.4
"""Processes of a parallel scan for each of which the plan lists rows: two workers, PostgreSQL's
default, and two fifths of the leader."""
_ALL_THE_TIME: Final = 0.8
"""Sessions that execute a statement on average, if one of them does so during the whole watch."""
_WORD: Final = r"(?<![\w$]){name}\s*\("


def believed_ns(cost: float) -> float:
    """Return how long a plan of this cost takes at most, if the planner knows the numbers of rows."""
    return cost * _COST_NS


def duration_ns(statement: Statement, evidence: Evidence) -> float | None:
    """Return the mean time of a call, or the length of the watch if sessions executed one all the time."""
    if statement.mean_ns is not None or evidence.database is None or evidence.database.counted_ns is None:
        return statement.mean_ns
    return evidence.seconds * 1e9 if evidence.busy(statement.number) >= _ALL_THE_TIME else None


def slower_than_planned(statement: Statement, evidence: Evidence) -> float | None:
    """Return how many times longer a call works than its plan's cost explains; None if that is unknown.

    Of several plans, the costliest counts. Only time on CPU counts, without compiling. A function
    of a user has an arbitrary cost, so a statement that calls one is unknown.
    """
    mean = duration_ns(statement, evidence)
    if not statement.plans or mean is None or own_functions(statement, evidence):
        return None
    spent = mean - (statement.a_call(statement.jit_ns) or 0.0)
    most = max(plan.root.cost for plan in statement.plans)
    whole = evidence.all_of(statement.number)
    working = evidence.busy(statement.number, {CPU}) / whole if whole else 1.0
    return spent * working / max(1.0, believed_ns(most))


def many_more_rows(node: PlanNode) -> bool:
    """Return whether a node that was executed found many more rows than the planner expected."""
    if node.actual_rows is None or not node.loops:
        return False
    return node.actual_rows / node.loops >= _WRONG * max(1.0, node.rows)


def rows_returned(node: PlanNode) -> float:
    """Return how many rows a scan returns in all of its processes: found, else expected."""
    if node.actual_rows is not None and node.loops:
        return node.actual_rows if node.parallel else node.actual_rows / node.loops
    return node.rows * (_PARALLEL if node.parallel else 1.0)


def own_functions(statement: Statement, evidence: Evidence) -> tuple[str, ...]:
    """Return the functions of users that a statement calls, with their schema unless it is public."""
    if not evidence.catalogue.functions:
        return ()
    found = []
    called = {name.rpartition(".")[2] for name in statement.shape.functions}
    for function in evidence.catalogue.functions:
        bare = function.name.rpartition(".")[2]
        if not statement.shape.kind:
            if re.search(_WORD.format(name=re.escape(bare.lower())), statement.text):
                found.append(function.name)
        elif bare in called:
            found.append(function.name)
    return tuple(dict.fromkeys(found))


def relations(statement: Statement) -> tuple[str, ...]:
    """Return the tables that a statement reads, by its plan, else by its text."""
    found = [node.relation for node in statement.nodes if node.relation and node.kind != "ModifyTable"]
    if found:
        return tuple(dict.fromkeys(found))
    # An UPDATE or DELETE reads the table that it changes; an INSERT does not.
    read = (use for use in statement.shape.tables if not use.changed or statement.shape.kind != "insert")
    return tuple(dict.fromkeys(use.name for use in read if use.kind == "table"))


def once_ns(tables: Collection[str], evidence: Evidence) -> float | None:
    """Return how long it takes at most to read each table once; None if a table is unknown."""
    cost = 0.0
    for table in tables:
        facts = evidence.tables.get(table)
        if facts is None or facts.bytes is None:
            return None
        cost += facts.bytes / evidence.block_bytes + _ROW * max(evidence.rows(table), float(facts.live or 0))
    return believed_ns(cost)


def with_loops(
    node: PlanNode, evidence: Evidence, loops: float = 1.0, fills: float | None = None
) -> Iterator[tuple[PlanNode, float]]:
    """Yield each node of a plan with the number of times that the planner expects it to be executed.

    `fills` is how often the node executes those below it, if less often than `loops`: Materialize
    keeps their rows for the next row of a join.
    """
    yield node, loops
    inside = loops if fills is None else fills
    outer = next((child for child in node.children if child.role == "Outer"), None)
    for child in node.children:
        times, once = inside, None
        if node.runs_once(child):
            times = 1.0
        elif child.role == "SubPlan":
            times = inside * _rows_tested(node, child, evidence)
        elif child.role == "Inner" and node.kind == "Nested Loop" and outer is not None:
            times = inside * max(1.0, outer.rows)
            once = inside if child.kind == "Materialize" else None
        yield from with_loops(child, evidence, times, once)


def _rows_tested(node: PlanNode, child: PlanNode, evidence: Evidence) -> float:
    """Return for how many rows of a node a subplan is executed: a filter tests more rows than it returns."""
    if child.subplan and child.subplan in node.condition("Filter"):
        if node.kind == "Seq Scan":
            return max(node.rows, evidence.rows(node.relation))
        below = [plan_node.rows for plan_node in node.children if plan_node.role in {"Outer", "Subquery"}]
        return max([node.rows, *below])
    return max(1.0, node.rows)
