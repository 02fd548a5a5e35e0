"""Subqueries, common tables and views that are computed again for each row, or completely for a few. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from uncork.advise.changes import role_setting
from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement, worth
from uncork.advise.rules.plans.costs import (
    LARGE_ROWS,
    believed_ns,
    duration_ns,
    once_ns,
    relations,
    with_loops,
)
from uncork.advise.rules.plans.rewrite import joined_aggregate, not_exists, not_materialized
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode
    from uncork.model.database.statement import CommonTable, Subquery


# ---- NOT IN (SELECT ...), which PostgreSQL cannot execute as an anti-join ----


_FASTEST: Final = 0.1
"""Fraction of the time that a cost stands for at most, in which PostgreSQL executes a plan at least."""
_LOOK_UP: Final = 20.0
"""How many rows of the subquery PostgreSQL hashes in the time in which it looks up one by an index."""


def _find_not_in(statement: Statement, evidence: Evidence) -> Finding | None:
    if statement.text.count("select") < 2 or statement.shape is None:
        return None
    parts = [
        subquery for subquery in statement.shape.subqueries if subquery.kind == "not in" and subquery.tables
    ]
    return _not_in_finding(statement, parts[0], evidence) if parts else None


def _saved_by_anti_join(statement: Statement, part: Subquery, evidence: Evidence) -> float:
    """Return which fraction of the time an anti-join would save.

    A subplan that is not hashed compares each row with all rows of the subquery. A hashed one is as fast as
    an anti-join, unless the hash table is built for few rows, which an index would look up.
    """
    mean = duration_ns(statement, evidence) or 0.0
    once = once_ns(relations(statement), evidence)
    read_once = 0.0 if once is None or not mean else max(0.0, 1 - once / mean)
    if statement.plan is None:
        return read_once
    found = next(iter(_subplans(statement.plan.root)), None)
    if found is None:
        return 0.0
    above, subplan, hashed = found
    if mean < believed_ns(subplan.cost) * _FASTEST:
        return 0.0  # The plan is for other values: the calls read fewer rows.
    tested = _rows_tested(above, evidence)
    served = part.returns is not None and evidence.indexed(part.returns.table, part.returns.column)
    if served and tested * _LOOK_UP <= subplan.rows:
        # The hash table is built before the first row.
        building = max(subplan.cost, above.startup_cost) / max(1.0, statement.plan.root.cost)
        return min(1.0, building) * (1 - tested * _LOOK_UP / subplan.rows)
    return 0.0 if hashed else read_once


def _rows_tested(node: PlanNode, evidence: Evidence) -> float:
    """Return how many rows reach NOT IN: the planner expects that it removes half of them."""
    below = [child.rows for child in node.children if child.role != "SubPlan"]
    return max([1.0, 2 * node.rows, *below])


def _subplans(root: PlanNode) -> Iterator[tuple[PlanNode, PlanNode, bool]]:
    """Yield the nodes that test NOT IN with their subplans, and whether these are hashed."""
    for node in root.walk():
        condition = node.condition("Filter") or node.condition("Join Filter")
        for child in node.children:
            if child.role == "SubPlan" and "NOT" in condition and f"{child.subplan})" in condition:
                yield node, child, f"hashed {child.subplan})" in condition


def _not_in_finding(statement: Statement, part: Subquery, evidence: Evidence) -> Finding:
    table = part.tables[0]
    compared = part.compared.column if part.compared is not None else "a column"
    nullable = [
        f"{name.table}.{name.column}"
        for name in (part.compared, part.returns)
        if name is not None
        and ((column := evidence.column(name.table, name.column)) is None or not column.not_null)
    ]
    same = not nullable and part.compared is not None and part.returns is not None
    against = (
        ()
        if same
        else (
            f"{' and '.join(nullable) or 'A compared column'} can be NULL: NOT IN then returns no row, "
            "NOT EXISTS does.",
        )
    )
    outer = "" if part.compared is None else sql_name(part.compared.table)
    return NOT_IN.finding(
        f"NOT IN compares {compared} with rows of {table} instead of an anti-join",
        objects=(table, compared),
        bill=evidence.bill_of({statement.number: _saved_by_anti_join(statement, part, evidence)}),
        statements=[statement],
        evidence=_not_in_evidence(statement, table, evidence),
        candidates=(
            Candidate(
                "statement",
                "Use NOT EXISTS, which PostgreSQL executes as an anti-join.",
                sql=not_exists(statement.sql, outer),
                same_answers=same,
                against=against,
            ),
            role_setting(statement, evidence, "work_mem", "64MB").candidate(
                "Raise work_mem, so that the subquery fits into a hash table.",
                "The statement becomes slow again once the table has grown.",
            ),
        ),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _not_in_evidence(statement: Statement, table: str, evidence: Evidence) -> Iterator[str]:
    if statement.plan is not None:
        for above, subplan, hashed in _subplans(statement.plan.root):
            if not hashed:
                inner = format_count(round(subplan.rows))
                yield (
                    f"The plan tests {above.relation or 'each row'} against a subplan that is not hashed, "
                    f"with {inner} rows: its hash table would not fit into work_mem."
                )
    rows = evidence.rows(table)
    if rows:
        yield f"Table {table} has {format_count(round(rows))} rows."
    if statement.mean_ns:
        yield f"A call takes {format_duration(statement.mean_ns)}."


NOT_IN: Final = Rule("not-in-subquery", each_statement(_find_not_in))


# ---- a subquery that is executed again for each row, where a join would read its table once ----


_LOOPS: Final = 200.0
"""Executions of a subplan in a call. With fewer rows, looking each up by an index is the best plan."""
_SHARE: Final = 0.3
"""Fraction of the plan's cost that the subplan must have to be the cause."""


def _find_per_row(statement: Statement, evidence: Evidence) -> Finding | None:
    worst, plan = _worst(statement, evidence), statement.plan
    if worst is None or plan is None:
        return None
    node, loops, saved = worst
    table = next(each.relation for each in node.walk() if each.relation)
    return PER_ROW.finding(
        f"A subquery on {table} is executed again for each of {format_count(round(loops))} rows",
        objects=(table,),
        bill=evidence.bill_of({statement.number: saved}),
        statements=[statement],
        evidence=(
            f"The plan executes {node.subplan} once per row, at a cost of {node.cost:.1f} each, of "
            f"{plan.root.cost:.0f} in total.",
            f"A call takes {format_duration(statement.mean_ns or 0.0)}.",
        ),
        candidates=(_joined(statement, node, table),),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _worst(statement: Statement, evidence: Evidence) -> tuple[PlanNode, float, float] | None:
    """Return the costliest subplan that is executed for each row, how often, and the fraction it wastes."""
    if statement.plan is None or _not_in(statement):
        return None
    found = []
    for node, loops in with_loops(statement.plan.root, evidence):
        planned = loops if node.loops is None else node.loops
        times = planned * _more_rows(statement)
        if node.role != "SubPlan" or not node.subplan.startswith("SubPlan") or times < _LOOPS:
            continue
        tables = {each.relation for each in node.walk() if each.relation}
        once = once_ns(tables, evidence)
        if not tables or once is None or _scans_all(node):
            continue
        rest = max(0.0, statement.plan.root.cost - planned * node.cost)
        share = times * node.cost / max(1.0, rest + times * node.cost)
        spent = share * (statement.mean_ns or 0.0)
        saved = share * (1 - once / spent) if spent > once else 0.0
        if share >= _SHARE and saved > 0:
            found.append((node, times, saved))
    return max(found, key=lambda each: each[2], default=None)


def _more_rows(statement: Statement) -> float:
    """Return how many times more rows a call returns than its plan expects, at least 1.

    The values for which uncork asked for the plan may select fewer rows than those of the calls. Each row
    that is returned has its own execution of a subplan in the list of outputs.
    """
    found = statement.a_call(statement.rows)
    if found is None or statement.plan is None or statement.plan.source == "executed":
        return 1.0
    if statement.plan.root.kind.endswith("Aggregate") or statement.plan.root.kind in ("Limit", "ModifyTable"):
        return 1.0
    return max(1.0, found / max(1.0, statement.plan.root.rows))


def _not_in(statement: Statement) -> bool:
    """Return whether NOT IN is the cause, which has a rule of its own."""
    return statement.shape is not None and any(
        subquery.kind == "not in" and not subquery.correlated for subquery in statement.shape.subqueries
    )


def _scans_all(node: PlanNode) -> bool:
    """Return whether the subplan searches a whole table for a row: then an index is missing."""
    return any(each.kind == "Seq Scan" and each.condition("Filter") for each in node.walk())


def _joined(statement: Statement, node: PlanNode, table: str) -> Candidate:
    """Return the join that replaces a subquery; an aggregate keeps one row for each row of the statement."""
    if not any(each.kind == "Aggregate" for each in node.walk()):
        return Candidate(
            "statement",
            f"Join {table} instead (LEFT JOIN, or LEFT JOIN LATERAL if there are several matching rows).",
            against=("A join repeats rows if several rows match.",),
            same_answers=False,
        )
    sql = joined_aggregate(statement.sql)
    null = "A count or sum without matching rows is NULL in the join: use coalesce(..., 0)."
    return Candidate(
        "statement",
        f"Aggregate {table} once with GROUP BY in a subquery in FROM, and join the result with LEFT JOIN.",
        sql=sql,
        undo=statement.sql if sql else "",
        against=() if sql else (null,),
    )


PER_ROW: Final = Rule("subplan-not-hashed", each_statement(_find_per_row), depth=2)


# ---- a common table that is computed completely, though the statement needs few of its rows ----


_NO_NAMES: Final = re.compile(
    r"'(?:[^']|'')*'|\$\d+|::[a-z]+(?: [a-z]+)*(?:\[\])?|(?:\w+|\"[^\"]+\")\.|\b(?:AND|OR|NOT|IS|NULL|ANY)\b"
)
"""What a condition of a plan has besides the names of columns and functions."""
_NAME: Final = re.compile(r"[A-Za-z_][\w$]*")
_NEEDED: Final = 0.1
"""Fraction of the rows of a common table, a view or a subquery that pass the filters on it, up to which
computing it pays off nowhere: the planner uses an index up to about this fraction."""


def _find_materialised(statement: Statement, evidence: Evidence) -> Finding | None:
    for common, saved in stored_in_vain(statement, evidence):
        bill = evidence.bill_of({statement.number: saved})
        if statement.plan is not None and worth(bill):
            return _materialised(statement, statement.plan.root, common, bill)
    return None


def stored_in_vain(statement: Statement, evidence: Evidence) -> Iterator[tuple[CommonTable, float]]:
    """Yield common tables that a statement stores for few rows, with the fraction of time wasted."""
    if statement.plan is None or statement.shape is None:
        return
    for common in statement.shape.common_tables:
        if common.recursive or common.changes or common.materialized is False:
            continue
        saved = _saved_by_merging(statement.plan.root, common, evidence)
        if saved > 0:
            yield common, saved


def _saved_by_merging(root: PlanNode, common: CommonTable, evidence: Evidence) -> float:
    """Return which fraction of the time is spent on rows that no scan of the common table needs."""
    source = next((node for node in root.walk() if node.subplan == f"CTE {common.name}"), None)
    scans = [node for node in root.walk() if node.kind == "CTE Scan" and node.common == common.name]
    if source is None or not scans or any(not node.condition("Filter") for node in scans):
        return 0.0
    if any(node.kind in {"WindowAgg", "Unique", "Limit"} for node in source.walk()):
        # Filters do not pass these nodes in general, so planning it together would change nothing.
        return 0.0
    grouped = [node.key("Group Key") for node in source.walk() if node.kind == "Aggregate"]
    if any(not _pass(node.condition("Filter"), keys) for node in scans for keys in grouped):
        return 0.0
    read = max((evidence.rows(node.relation) for node in source.walk() if node.relation), default=0.0)
    if max(read, source.rows) < LARGE_ROWS:
        return 0.0
    needed = sum(node.rows for node in scans) / max(1.0, source.rows)
    if needed > _NEEDED:
        return 0.0
    return min(1.0, max(node.cost for node in (source, *scans)) / max(1.0, root.cost)) * (1 - needed)


def _pass(condition: str, keys: Sequence[str]) -> bool:
    """Return whether a filter compares keys of a GROUP BY only: then it can be applied to the rows below."""
    compared = set(_NAME.findall(_NO_NAMES.sub(" ", condition)))
    return bool(compared) and compared <= {key.rpartition(".")[2].strip('"') for key in keys}


def _materialised(statement: Statement, root: PlanNode, common: CommonTable, bill: Bill) -> Finding:
    source = next(node for node in root.walk() if node.subplan == f"CTE {common.name}")
    scan = next(node for node in root.walk() if node.kind == "CTE Scan" and node.common == common.name)
    why = (
        "It is declared MATERIALIZED."
        if common.materialized
        else f"It is used {common.references} times, so PostgreSQL computes it separately."
    )
    tables = tuple(dict.fromkeys(common.tables))
    return MATERIALISED.finding(
        f"Common table {common.name} is computed completely before its rows are filtered",
        objects=(common.name, *tables),
        bill=bill,
        statements=[statement],
        evidence=(
            f"The planner expects {format_count(source.rows)} rows in it, of which "
            f"{format_count(scan.rows)} pass the filter {scan.condition('Filter')}.",
            why,
        ),
        candidates=(
            Candidate(
                "statement",
                f"Declare {common.name} AS NOT MATERIALIZED, so that filters reach its tables and their "
                "indexes.",
                sql=not_materialized(statement.sql, common.name),
                against=("Its query is executed once for each use; volatile functions in it prevent this.",),
            ),
        ),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


MATERIALISED: Final = Rule("materialised-cte", each_statement(_find_materialised), depth=2)


# ---- a filter on a view or subquery that cannot enter it, so that all of its rows are computed first ----


_COMPUTED: Final = {
    "WindowAgg": "a window function",
    "Unique": "DISTINCT",
    "Limit": "LIMIT",
    "Aggregate": "GROUP BY",
    "GroupAggregate": "GROUP BY",
    "HashAggregate": "GROUP BY",
    "SetOp": "EXCEPT or INTERSECT",
}
"""Nodes that a filter passes only if it is on their partition or group columns."""
_TEXT: Final = re.compile(r"'(?:[^']|'')*'|::[\w \"\[\]]+?(?=[)\s]|$)")
_SIDES: Final = re.compile(r"\(?([\w\".]+)(?:\)::[\w ]+)?\s+=\s+")


def _find_view_barrier(statement: Statement, evidence: Evidence) -> Finding | None:
    found = None if statement.plan is None else barrier(statement.plan.root, evidence)
    if statement.plan is None or found is None:
        return None
    scan, node, column = found
    views = {view.name.rpartition(".")[2] for view in evidence.catalogue.views}
    used = set() if statement.shape is None else {use.name for use in statement.shape.tables}
    view = next((name for name in used if name.rpartition(".")[2] in views), "")
    table = next(each.relation for each in node.walk() if each.relation)
    what = f"view {view}" if view else f"the subquery on {table}"
    computed = _COMPUTED[node.kind]
    return VIEW_BARRIER.finding(
        f"The filter on {column} cannot enter {what} because of {computed}",
        objects=(name for name in (view, table, column) if name),
        bill=evidence.bill_of({statement.number: _saved_by_filtering(statement.plan.root, scan, node)}),
        statements=[statement],
        evidence=(
            f"The plan computes {format_count(max(node.rows, scan.children[0].rows))} rows, of which "
            f"{format_count(scan.rows)} pass the filter {scan.condition('Filter')}.",
        ),
        candidates=_filter_inside(what, table, column, computed),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def barrier(root: PlanNode, evidence: Evidence) -> tuple[PlanNode, PlanNode, str] | None:
    """Return a subquery's scan that filters most rows, the node that the filter could not pass, and a column.

    A filter on the result of a window function or an aggregate belongs there, and is no fault.
    """
    for scan in root.walk():
        if scan.kind != "Subquery Scan" or not scan.condition("Filter"):
            continue
        node = next((each for each in scan.walk() if each.kind in _COMPUTED), None)
        column = _filtered_column(scan, evidence)
        if node is None or column is None or node.rows < 1:
            continue
        read = max((evidence.rows(each.relation) for each in node.walk() if each.relation), default=0.0)
        if read >= LARGE_ROWS and scan.rows <= _NEEDED * max(scan.children[0].rows, node.rows):
            return scan, node, column
    return None


def _filtered_column(scan: PlanNode, evidence: Evidence) -> str | None:
    """Return a column of a table below that the filter of a subquery compares for equality."""
    tables = {node.relation for node in scan.walk() if node.relation}
    names = {column.name for table in tables for column in evidence.catalogue.columns.get(table, ())}
    for found in _SIDES.findall(_TEXT.sub("", scan.condition("Filter"))):
        bare = str(found).rpartition(".")[2].strip('"()')
        if bare in names:
            return bare
    return None


def _saved_by_filtering(root: PlanNode, scan: PlanNode, node: PlanNode) -> float:
    """Return the fraction of the time spent on rows that the filter then discards."""
    part = min(1.0, scan.cost / max(1.0, root.cost))
    return part * (1 - scan.rows / max(1.0, node.rows, scan.children[0].rows))


def _filter_inside(what: str, table: str, column: str, computed: str) -> Iterator[Candidate]:
    yield Candidate(
        "statement",
        f"Write the condition on {column} inside: query {sql_name(table)} directly with WHERE {column} = "
        f"..., or make {what} a function with {column} as its parameter.",
        same_answers=False,
        against=(f"Rows may differ: {computed} then considers only rows with this {column}.",),
    )
    if computed == "a window function":
        yield Candidate(
            "ddl",
            f"Add {column} to PARTITION BY of each window, if rows of one partition always have one "
            f"{column}: a filter on a partition column enters.",
            same_answers=False,
        )
    if computed == "DISTINCT":
        yield Candidate(
            "ddl",
            f"Add {column} to DISTINCT ON, if rows with equal keys always have one {column}.",
            same_answers=False,
        )


VIEW_BARRIER: Final = Rule("view-barrier", each_statement(_find_view_barrier), depth=2)
