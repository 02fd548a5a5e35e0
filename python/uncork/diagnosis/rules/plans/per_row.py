"""What is computed again for each row, or completely for a few: subqueries, views, functions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from uncork.diagnosis.changes import ddl_change, role_setting, statement_change
from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rule import finding, statement_rule, worth
from uncork.diagnosis.rules.indexes.problems import scanned_within
from uncork.diagnosis.rules.plans.costs import (
    LARGE_ROWS,
    SLOWER,
    believed_ns,
    duration_ns,
    once_ns,
    own_functions,
    relations,
    with_loops,
)
from uncork.diagnosis.rules.plans.rewrite import joined_aggregate, not_exists, not_materialized
from uncork.model.database.catalogue import FunctionFacts
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.database.plan import PlanNode
from uncork.model.database.statement import CommonTable, Subquery
from uncork.model.units import format_count, format_duration

_FASTEST: Final = 0.1
"""Fraction of the time that a cost stands for at most, in which PostgreSQL executes a plan at least."""
_LOOK_UP: Final = 20.0
"""How many rows of the subquery PostgreSQL hashes in the time in which it looks up one by an index."""


@statement_rule("not-in-subquery")
def find_not_in(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find NOT IN (SELECT ...), which PostgreSQL cannot execute as an anti-join."""
    if statement.text.count("select") < 2:
        return None
    parts = [
        subquery for subquery in statement.shape.subqueries if subquery.kind == "not in" and subquery.tables
    ]
    if not parts:
        return None
    part = parts[0]
    table = part.tables[0]
    compared = part.compared.column if part.compared is not None else "a column"
    nullable = [
        f"{name.table}.{name.column}"
        for name in (part.compared, part.returns)
        if name is not None
        and ((column := evidence.column(name.table, name.column)) is None or not column.not_null)
    ]
    same = not nullable and part.compared is not None and part.returns is not None
    null = f"{' and '.join(nullable) or 'A compared column'} can be NULL: NOT IN then returns no "
    against = () if same else (f"{null}row, NOT EXISTS does.",)
    outer = "" if part.compared is None else sql_name(part.compared.table)
    return finding(
        f"NOT IN compares {compared} with rows of {table} instead of an anti-join",
        statement_change(
            "Use NOT EXISTS, which PostgreSQL executes as an anti-join.",
            *against,
            sql=not_exists(statement.sql, outer),
            same_answers=same,
        ),
        role_setting(statement, evidence, "work_mem", "64MB").candidate(
            "Raise work_mem, so that the subquery fits into a hash table.",
            "The statement becomes slow again once the table has grown.",
        ),
        objects=(table, compared),
        bill=evidence.bill_of({statement.number: _saved_by_anti_join(statement, part, evidence)}),
        evidence=_not_in_evidence(statement, table, evidence),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _saved_by_anti_join(statement: Statement, part: Subquery, evidence: Evidence) -> float:
    """Return which fraction of the time an anti-join would save.

    A subplan that is not hashed compares each row with all rows of the subquery. A hashed one is as
    fast as an anti-join, unless the hash table is built for few rows, which an index would look up.
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
    below = [child.rows for child in above.children if child.role != "SubPlan"]
    tested = max([1.0, 2 * above.rows, *below])
    served = part.returns is not None and evidence.indexed(part.returns.table, part.returns.column)
    if served and tested * _LOOK_UP <= subplan.rows:
        # The hash table is built before the first row.
        building = max(subplan.cost, above.startup_cost) / max(1.0, statement.plan.root.cost)
        return min(1.0, building) * (1 - tested * _LOOK_UP / subplan.rows)
    return 0.0 if hashed else read_once


def _subplans(root: PlanNode) -> Iterator[tuple[PlanNode, PlanNode, bool]]:
    for node in root.walk():
        condition = node.condition("Filter") or node.condition("Join Filter")
        for child in node.children:
            if child.role == "SubPlan" and "NOT" in condition and f"{child.subplan})" in condition:
                yield node, child, f"hashed {child.subplan})" in condition


def _not_in_evidence(statement: Statement, table: str, evidence: Evidence) -> Iterator[str]:
    if statement.plan is not None:
        for above, subplan, hashed in _subplans(statement.plan.root):
            if not hashed:
                inner = format_count(round(subplan.rows))
                yield (
                    f"The plan tests {above.relation or 'each row'} against a subplan that is not "
                    f"hashed, with {inner} rows: its hash table would not fit into work_mem."
                )
    rows = evidence.rows(table)
    if rows:
        yield f"Table {table} has {format_count(round(rows))} rows."
    if statement.mean_ns:
        yield f"A call takes {format_duration(statement.mean_ns)}."


_LOOPS: Final = 200.0
"""Executions of a subplan in a call. With fewer rows, looking each up by an index is the best plan."""
_SHARE: Final = 0.3
"""Fraction of the plan's cost that the subplan must have to be the cause."""


@statement_rule("subplan-not-hashed", depth=2)
def find_per_row(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find a subquery that is executed again for each row, where a join would read its table once."""
    worst, plan = _worst(statement, evidence), statement.plan
    if worst is None or plan is None:
        return None
    node, loops, saved = worst
    table = next(each.relation for each in node.walk() if each.relation)
    return finding(
        f"A subquery on {table} is executed again for each of {format_count(round(loops))} rows",
        _joined(statement, node, table),
        objects=(table,),
        bill=evidence.bill_of({statement.number: saved}),
        evidence=(
            f"The plan executes {node.subplan} once per row, at a cost of {node.cost:.1f} each, of "
            f"{plan.root.cost:.0f} in total.",
            f"A call takes {format_duration(statement.mean_ns or 0.0)}.",
        ),
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
        scans_all = any(each.kind == "Seq Scan" and each.condition("Filter") for each in node.walk())
        if not tables or once is None or scans_all:  # with a whole scan for each row, an index is missing
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

    The values for which uncork asked for the plan may select fewer rows than those of the calls.
    Each row that is returned has its own execution of a subplan in the list of outputs.
    """
    found = statement.a_call(statement.rows)
    if found is None or statement.plan is None or statement.plan.source == "executed":
        return 1.0
    if statement.plan.root.kind.endswith("Aggregate") or statement.plan.root.kind in ("Limit", "ModifyTable"):
        return 1.0
    return max(1.0, found / max(1.0, statement.plan.root.rows))


def _not_in(statement: Statement) -> bool:
    """Return whether NOT IN is the cause, which has a rule of its own."""
    return any(
        subquery.kind == "not in" and not subquery.correlated for subquery in statement.shape.subqueries
    )


def _joined(statement: Statement, node: PlanNode, table: str) -> Candidate:
    """Return the join that replaces a subquery; an aggregate keeps one row for each row of the statement."""
    if not any(each.kind == "Aggregate" for each in node.walk()):
        return statement_change(
            f"Join {table} instead (LEFT JOIN, or LEFT JOIN LATERAL if there are several matching rows).",
            "A join repeats rows if several rows match.",
            same_answers=False,
        )
    sql = joined_aggregate(statement.sql)
    null = "A count or sum without matching rows is NULL in the join: use coalesce(..., 0)."
    return statement_change(
        f"Aggregate {table} once with GROUP BY in a subquery in FROM, and join the result with LEFT JOIN.",
        *() if sql else (null,),
        sql=sql,
        undo=statement.sql if sql else "",
    )


_NO_NAMES: Final = re.compile(
    r"'(?:[^']|'')*'|\$\d+|::[a-z]+(?: [a-z]+)*(?:\[\])?|(?:\w+|\"[^\"]+\")\.|\b(?:AND|OR|NOT|IS|NULL|ANY)\b"
)
"""What a condition of a plan has besides the names of columns and functions."""
_NAME: Final = re.compile(r"[A-Za-z_][\w$]*")
_NEEDED: Final = 0.1
"""Fraction of the rows of a common table, a view or a subquery that pass the filters on it, up to
which computing it pays off nowhere: the planner uses an index up to about this fraction."""


@statement_rule("materialised-cte", depth=2)
def find_materialised(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find a common table that is computed completely, though the statement needs few of its rows."""
    for common, saved in stored_in_vain(statement, evidence):
        bill = evidence.bill_of({statement.number: saved})
        if statement.plan is not None and worth(bill):
            return _materialised(statement, statement.plan.root, common, bill)
    return None


def stored_in_vain(statement: Statement, evidence: Evidence) -> Iterator[tuple[CommonTable, float]]:
    """Yield common tables that a statement stores for few rows, with the fraction of time wasted."""
    if statement.plan is None:
        return
    for common in statement.shape.common_tables:
        if common.recursive or common.changes or common.materialized is False:
            continue
        saved = _saved_by_merging(statement.plan.root, common, evidence)
        if saved > 0:
            yield common, saved


def _saved_by_merging(root: PlanNode, common: CommonTable, evidence: Evidence) -> float:
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
    why = f"It is used {common.references} times, so PostgreSQL computes it separately."
    if common.materialized:
        why = "It is declared MATERIALIZED."
    tables = tuple(dict.fromkeys(common.tables))
    return finding(
        f"Common table {common.name} is computed completely before its rows are filtered",
        statement_change(
            f"Declare {common.name} AS NOT MATERIALIZED, so that filters reach its tables and their indexes.",
            "Its query is executed once for each use; volatile functions in it prevent this.",
            sql=not_materialized(statement.sql, common.name),
        ),
        objects=(common.name, *tables),
        bill=bill,
        evidence=(
            f"The planner expects {format_count(source.rows)} rows in it, of which "
            f"{format_count(scan.rows)} pass the filter {scan.condition('Filter')}.",
            why,
        ),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


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


@statement_rule("view-barrier", depth=2)
def find_view_barrier(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find a filter on a view or subquery that cannot enter it, so that all of its rows are computed."""
    found = None if statement.plan is None else barrier(statement.plan.root, evidence)
    if statement.plan is None or found is None:
        return None
    scan, node, column = found
    views = {view.name.rpartition(".")[2] for view in evidence.catalogue.views}
    used = {use.name for use in statement.shape.tables}
    view = next((name for name in used if name.rpartition(".")[2] in views), "")
    table = next(each.relation for each in node.walk() if each.relation)
    what = f"view {view}" if view else f"the subquery on {table}"
    computed = _COMPUTED[node.kind]
    part = min(1.0, scan.cost / max(1.0, statement.plan.root.cost))
    return finding(
        f"The filter on {column} cannot enter {what} because of {computed}",
        *_filter_inside(what, table, column, computed),
        objects=(name for name in (view, table, column) if name),
        bill=evidence.bill_of(
            {statement.number: (part * (1 - scan.rows / max(1.0, node.rows, scan.children[0].rows)))}
        ),
        evidence=(
            f"The plan computes {format_count(max(node.rows, scan.children[0].rows))} rows, of "
            f"which {format_count(scan.rows)} pass the filter {scan.condition('Filter')}."
        ),
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


def _filter_inside(what: str, table: str, column: str, computed: str) -> Iterator[Candidate]:
    yield statement_change(
        f"Write the condition on {column} inside: query {sql_name(table)} directly with WHERE "
        f"{column} = ..., or make {what} a function with {column} as its parameter.",
        f"Rows may differ: {computed} then considers only rows with this {column}.",
        same_answers=False,
    )
    if computed == "a window function":
        yield ddl_change(
            f"Add {column} to PARTITION BY of each window, if rows of one partition always have "
            f"one {column}: a filter on a partition column enters.",
            same_answers=False,
        )
    if computed == "DISTINCT":
        yield ddl_change(
            f"Add {column} to DISTINCT ON, if rows with equal keys always have one {column}.",
            same_answers=False,
        )


_CALLS: Final = 20.0
"""Calls of the function for each call of the statement, from which on one query for all rows is faster."""
_QUERY: Final = re.compile(r"\b(?:from|join|update|into|perform)\s+([\w\".]+)", re.IGNORECASE)
_INDEXED: Final = frozenset({"=", "<", "<=", ">", ">="})
_WRITES: Final = re.compile(r"\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate|notify)\b", re.I)
_UNSTABLE: Final = re.compile(
    r"\b(?:random|clock_timestamp|timeofday|nextval|setval|currval|lastval|gen_random_uuid|uuid_generate_v\w+|"
    r"pg_sleep|pg_notify|set_config|pg_\w*advisory\w*|txid_current|dblink\w*|execute)\b",
    re.IGNORECASE,
)
_PARAMETERS: Final = re.compile(
    r"\$\d+|'(?:[^']|'')*'|::[\w \"\[\]]+|\b(?:null|true|false|now|current_\w+)\b", re.I
)


@statement_rule("function-per-row", depth=2)
def find_function(statement: Statement, seen: Evidence) -> Finding | None:
    """Find a function of a user that is executed for each row, with queries of its own or needlessly."""
    if statement.nested or not statement.calls or not statement.mean_ns:
        return None
    called = own_functions(statement, seen)
    for function in seen.catalogue.functions:
        if function.name not in called or function.returns_set:
            continue
        found = _index_lost(statement, function, seen) or _cost(statement, function, seen)
        if found is None:
            continue
        saved, evidence = found
        bill = seen.bill_of({statement.number: saved})
        if worth(bill) and not scanned_within(statement, function.name, saved, seen):
            return _function(statement, function, bill, evidence, seen)
    return None


def _cost(statement: Statement, function: FunctionFacts, evidence: Evidence) -> tuple[float, str] | None:
    """Return which fraction of a statement's time a function takes, and the evidence; None if few calls.

    The best evidence is the counters of the function, then its own queries among the nested
    statements, then how much longer the statement takes than its plan without the function.
    """
    calls, mean = statement.calls or 1, statement.mean_ns or 1.0
    if function.calls is not None and function.total_ms is not None:
        others = sum(
            each.calls or 0
            for each in evidence.statements.values()
            if not each.nested and function.name in own_functions(each, evidence)
        )
        each = function.calls / max(1, others)
        if each < _CALLS:
            return None
        taken = min(1.0, function.total_ms * 1e6 / max(1, others) / mean)
        return taken, f"Each call of the statement executes the function {format_count(round(each))} times."
    nested = [each for each in evidence.statements.values() if each.nested and _within(each, function)]
    repeated = [each for each in nested if (each.calls or 0) >= _CALLS * calls]
    if repeated:
        top = max(repeated, key=lambda each: (each.mean_ns or 0.0) * (each.calls or 0))
        taken = sum((each.mean_ns or 0.0) * (each.calls or 0) for each in nested) / (mean * calls)
        many = format_count(round((top.calls or 0) / calls))
        # Calling the function and its query costs about as much as executing a query of a few rows.
        return min(1.0, 2 * taken), f"The query of the function runs {many} times for each call: {top.text}"
    place = None if statement.plan is None else _place(statement.plan.root, function)
    if statement.plan is None or place is None or mean < SLOWER / 2 * believed_ns(statement.plan.root.cost):
        return None
    rows = max([place.rows, evidence.rows(place.relation), *(child.rows for child in place.children)])
    if rows < _CALLS:
        return None
    saved = 1 - believed_ns(statement.plan.root.cost) / mean
    return saved, f"{place.kind} executes the function for up to {format_count(round(rows))} rows."


def _index_lost(
    statement: Statement, function: FunctionFacts, evidence: Evidence
) -> tuple[float, str] | None:
    """Return the wasted fraction of a full scan, if an index cannot be compared with a volatile result."""
    place = None if statement.plan is None else _place(statement.plan.root, function)
    if place is None or place.kind != "Seq Scan" or function.volatility != "volatile":
        return None
    rows = evidence.rows(place.relation)
    compared = {
        predicate.column
        for predicate in statement.predicates
        if predicate.table == place.relation
        and predicate.value == "expression"
        and predicate.operator in _INDEXED
    }
    served = any(evidence.indexed(place.relation, column) for column in compared)
    if not served or rows < LARGE_ROWS or not _same_for_all(statement, function):
        return None
    name = f"No index of {place.relation} is used, because the result of a VOLATILE function may change."
    return max(0.0, 1 - place.rows / rows), name


def _within(nested: Statement, function: FunctionFacts) -> bool:
    """Return whether a nested statement reads only tables that the function's body names."""
    names = {name.strip('"').rpartition(".")[2].lower() for name in _QUERY.findall(function.source)}
    if nested.shape.kind:
        tables = {name.rpartition(".")[2] for name in nested.tables}
    else:
        tables = {name.strip('"').rpartition(".")[2] for name in _QUERY.findall(nested.text)}
    return bool(tables) and tables <= names


def _place(root: PlanNode, function: FunctionFacts) -> PlanNode | None:
    """Return the node that executes a function for its rows: the innermost, whose rows are the most."""
    bare = function.name.rpartition(".")[2]
    found = None
    for node in root.walk():
        texts = (*(text for _, text in node.conditions), *node.output)
        if any(re.search(rf"\b{re.escape(bare)}\(", text) for text in texts):
            found = node
    return found


def _same_for_all(statement: Statement, function: FunctionFacts) -> bool:
    """Return whether the arguments are the same for all rows of the statement: parameters and constants."""
    bare = re.escape(function.name.rpartition(".")[2])
    calls = re.findall(rf"\b{bare}\s*\(([^()]*)\)", statement.sql or statement.text, re.IGNORECASE)
    return bool(calls) and all(not _PARAMETERS.sub("", call).strip(" ,?()") for call in calls)


def _function(
    statement: Statement, function: FunctionFacts, bill: Bill, evidence: str, seen: Evidence
) -> Finding:
    constant = _same_for_all(statement, function)
    reads = bool(_QUERY.search(function.source))
    cause = f"Function {function.name} is executed for each row{', with a query of its own' if reads else ''}"
    if constant:
        cause = f"Function {function.name} is executed again for each row, though its arguments are the same"
    read = [name for name in seen.tables if seen.rows(name) >= LARGE_ROWS and statement.uses(name)]
    return finding(
        cause,
        *_function_once(function, constant=constant, reads=reads),
        objects=(function.name, *read[:1]),
        bill=bill,
        evidence=(
            evidence,
            f"A call of the statement takes {format_duration(statement.mean_ns or 0.0)}.",
            f"The function is declared {function.volatility.upper()}, in {function.language}.",
        ),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _function_once(function: FunctionFacts, *, constant: bool, reads: bool) -> Iterator[Candidate]:
    name = sql_name(function.name)
    writes = _WRITES.search(function.source) is not None
    stable = not writes and _UNSTABLE.search(function.source) is None
    volatility = ddl_change(
        f"Declare {function.name} STABLE: it then runs once to compare an index, and its result "
        "may be reused.",
        "It must neither change data nor return another result within one statement.",
        sql=f"ALTER FUNCTION {name} STABLE;",
        undo=f"ALTER FUNCTION {name} VOLATILE;",
    )
    once = statement_change(
        f"Write (SELECT {function.name}(...)) in the condition: the server executes it once per statement."
    )
    joined = statement_change(
        "Read the table of the function in the statement itself, with a join for all rows.",
        "A join repeats rows if several rows match, and drops rows without a match unless it is LEFT.",
    )
    inline = ddl_change(
        f"Write {function.name} in LANGUAGE sql as a single SELECT, declared STABLE: the planner "
        "can then inline functions of expressions."
    )
    if constant:
        yield from [volatility, once] if stable and function.volatility == "volatile" else [once]
        return
    if reads:
        yield joined
    if function.language == "plpgsql" and not reads:
        yield inline
    if stable and function.volatility == "volatile":
        yield volatility
    if not writes and function.parallel == "unsafe":
        yield ddl_change(
            f"Declare {function.name} PARALLEL SAFE, so that the statement may use several processes.",
            "The function must not write, use sequences, or use temporary tables.",
            sql=f"ALTER FUNCTION {name} PARALLEL SAFE;",
            undo=f"ALTER FUNCTION {name} PARALLEL UNSAFE;",
        )
