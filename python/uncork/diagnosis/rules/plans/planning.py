"""Plans from wrong estimates, for no value in particular, compiled for too long, or without memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

from uncork.diagnosis.changes import (
    TableOptions,
    autovacuum_on,
    ddl_change,
    index_change,
    maintenance,
    role_setting,
)
from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rule import finding, rule, statement_rule
from uncork.diagnosis.rules.plans.costs import (
    LARGE_ROWS,
    SLOWER,
    believed_ns,
    duration_ns,
    many_more_rows,
    once_ns,
    own_functions,
    relations,
    slower_than_planned,
)
from uncork.diagnosis.rules.plans.per_row import barrier, stored_in_vain
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.index import IndexKey, IndexShape, create_index, drop_index
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.model.database.wait_classes import CPU
from uncork.model.units import count_words, format_bytes, format_count, format_duration, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_CHEAPER: Final = 5.0
"""How many times less the plan for actual values must take than a call does. Planning again for each call
costs about a millisecond at most, and estimates of costs are wrong by a factor of two or three."""
_FEWER: Final = 10.0
"""How many times fewer rows a call returns than the generic plan expects."""
_DESCEND: Final = 10.0
_RANDOM_PAGE: Final = 4.0
"""Cost of an index scan: the blocks from the root to a leaf, then one for each row (random_page_cost)."""
_COMMON: Final = 0.1
_SKEWED: Final = 3.0
"""Frequency of a column's most common value, also as a multiple of the average one: the generic
plan assumes the average, so one plan cannot be right for both."""


@dataclass(frozen=True, slots=True)
class _Skewed:
    """A column whose most common value has a certain frequency."""

    table: str
    column: str
    value: str
    frequency: float


@statement_rule("generic-plan", depth=2)
def find_generic_plan(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find a prepared statement whose generic plan is much slower than a plan for its actual values."""
    generic = next((plan for plan in statement.plans if plan.source == "generic"), None)
    skewed = None if generic is None else _skewed(statement, evidence)
    if generic is None or skewed is None or not statement.mean_ns:
        return None
    if own_functions(statement, evidence) or any(outdated(table, evidence) for table in relations(statement)):
        return None
    cost = _own_cost(statement, generic, skewed, evidence)
    whole = evidence.all_of(statement.number)
    spent = statement.mean_ns * (evidence.busy(statement.number, {CPU}) / whole if whole else 1.0)
    if cost is None or not spent or believed_ns(cost) * _CHEAPER > spent:
        return None
    table, column = skewed.table, skewed.column
    return finding(
        f"A generic plan ignores which value of {table}.{column} a prepared statement compares",
        role_setting(statement, evidence, "plan_cache_mode", "force_custom_plan").candidate(
            "Let the server plan the statement for the values of each call.",
            "Each call is planned anew. To restrict this to one statement, set it in its "
            "transaction (SET LOCAL), or send the statement without preparing it.",
        ),
        objects=(table, column, "plan_cache_mode"),
        bill=evidence.bill_of({statement.number: 1 - believed_ns(cost) / spent}),
        evidence=(
            f"The generic plan ({_named(generic.root)}) has an estimated cost of "
            f"{generic.root.cost:.0f}, a plan for the values of the calls has about {cost:.0f}.",
            f"{share_text(skewed.frequency)} of the rows have {skewed.value}, the most common "
            f"value of {column}.",
            f"A call takes {format_duration(statement.mean_ns)}; a plan for its values would take "
            f"about {format_duration(believed_ns(cost))} at most.",
        ),
        proof="Compare plan_cache_mode = force_custom_plan and auto with uncork run (prepared).",
    )


def _own_cost(
    statement: Statement, generic: StatementPlan, skewed: _Skewed, evidence: Evidence
) -> float | None:
    """Return the cost of the plan for the values of the calls; None if it is the generic one, or unknown."""
    own = _for_values(statement)
    if own is not None and _operations(generic.root) != _operations(own.root):
        return own.root.cost
    found = statement.a_call(statement.rows)
    scan = next((node for node in generic.root.walk() if node.relation == skewed.table), None)
    shape = statement.shape
    if found is None or scan is None or shape.aggregates or shape.limit:
        return None
    if scan.kind != "Seq Scan" or len(relations(statement)) > 1 or scan.rows < _FEWER * (found + 1):
        return None
    served = evidence.indexed(skewed.table, skewed.column, completely=True)
    return _DESCEND + _RANDOM_PAGE * found if served else None


def _for_values(statement: Statement) -> StatementPlan | None:
    """Return the plan for values that return as many rows as a call did; else the costliest plan."""
    plans = [plan for plan in statement.plans if plan.source in {"drawn", "seen"}]
    found = statement.a_call(statement.rows)
    if found is None or statement.shape.aggregates or statement.shape.limit:
        return max(plans, key=lambda plan: plan.root.cost, default=None)
    return min(plans, key=lambda plan: (abs(plan.root.rows - found), -plan.root.cost), default=None)


def _operations(node: PlanNode) -> tuple[Any, ...]:
    return (node.kind, node.relation, node.index, *(_operations(child) for child in node.children))


def _skewed(statement: Statement, evidence: Evidence) -> _Skewed | None:
    """Return the first condition on a column whose values are unevenly frequent."""
    for predicate in statement.predicates:
        column = evidence.column(predicate.table, predicate.column)
        distinct = evidence.distinct(predicate.table, predicate.column)
        if column is None or not column.common or not distinct:
            continue
        if predicate.operator not in {"=", "in"} or predicate.value not in {"parameter", "expression"}:
            continue
        value, frequency = column.common[0]
        rest = distinct - len(column.common)
        rare = column.common[-1][1]
        if rest >= 1:
            rare = min(rare, max(0.0, 1.0 - sum(share for _, share in column.common)) / rest)
        uneven = frequency * distinct >= _SKEWED or rare * distinct * _SKEWED <= 1
        if frequency >= _COMMON and uneven:
            return _Skewed(predicate.table, predicate.column, value, frequency)
    return None


def _named(node: PlanNode) -> str:
    names = [
        f"{each.kind} on {each.relation}"
        for each in node.walk()
        if each.relation and "Bitmap Index" not in each.kind
    ]
    return ", ".join(dict.fromkeys(names[:3]))


_GAIN: Final = 0.25
"""How much longer the rest of a statement would take without compiled code, at most, as a fraction.
PostgreSQL's developers measured 20 to 30 % on the queries of TPC-H that gain most."""


@rule("jit")
def find_jit(evidence: Evidence) -> Iterator[Finding]:
    """Find repeated statements that are compiled just in time, for longer than they gain.

    The time of compiling is a part of each statement's execution time.
    """
    lost = {
        statement.number: part
        for statement in evidence.statements.values()
        if statement.jit_ns
        and statement.mean_ns
        and statement.calls
        and evidence.is_traffic(statement)
        and (part := _lost(statement)) > 0
    }
    if not lost:
        return
    statements = sorted(evidence.chosen(lost), key=lambda statement: -(statement.jit_ns or 0.0))
    top = statements[0]
    yield finding(
        f"Compiling (jit) takes {format_duration(top.a_call(top.jit_ns) or 0.0)} of the "
        f"{format_duration(top.mean_ns or 0.0)} of a repeated statement",
        *_candidates(statements, evidence),
        objects=("jit",),
        bill=evidence.bill_of(lost),
        statements=statements,
        evidence=_evidence(top, evidence),
        proof="Compare jit = on and off with uncork run.",
    )


def _lost(statement: Statement) -> float:
    """Return the fraction of a statement's time that compiling costs beyond what it can gain."""
    mean = statement.mean_ns or 1.0
    compiling = statement.a_call(statement.jit_ns) or 0.0
    return min(1.0, (compiling - _GAIN * max(0.0, mean - compiling)) / mean)


def _evidence(top: Statement, evidence: Evidence) -> Iterator[str]:
    above = evidence.catalogue.setting("jit_above_cost")
    plan = top.plan
    if plan is None:
        return
    # The server has this setting for new sessions; a role or a session may have a lower one.
    known = above.isdigit() and plan.root.cost > float(above)
    limit = f", above jit_above_cost ({above})" if known else ""
    yield f"The planner estimates a cost of {format_count(round(plan.root.cost))}{limit}."
    scans = sum(1 for node in plan.root.walk() if node.relation)
    if scans > 1:
        yield f"The plan has {scans} scans, whose expressions are compiled one by one."


def _candidates(statements: list[Statement], evidence: Evidence) -> Iterator[Candidate]:
    yield role_setting(statements[0], evidence, "jit", "off").candidate(
        "Turn jit off for the role that sends these statements.",
        "Long reports of the same role may gain from jit: let them SET jit = on.",
    )
    costs = [statement.plan.root.cost for statement in statements if statement.plan is not None]
    cost = str(_round_up(2 * max(costs))) if costs else None
    yield role_setting(statements[0], evidence, "jit_above_cost", cost).candidate(
        "Raise jit_above_cost above the cost of these statements."
    )


def _round_up(cost: float) -> int:
    """Return the next power of ten times one, two or five."""
    size = 1
    while True:
        for step in (1, 2, 5):
            if step * size >= cost:
                return step * size
        size *= 10


_BYTES: Final = 1_000_000
_SHARE: Final = 0.2
"""Temporary files per call, and the statement's fraction of the busy time. A sort in memory is
about twice as fast, so from there on a tenth of all time can be saved."""
_TUPLE_BYTES: Final = 40
"""Overhead of a row in a sort or hash, by PostgreSQL's own estimate (a tuple's header, and a pointer)."""


@statement_rule("temporary-files", least_share=_SHARE)
def find_spill(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find sorts and hashes that do not fit into work_mem and write temporary files."""
    written = statement.a_call(statement.temp_bytes)
    if written is None or written < _BYTES or not evidence.is_traffic(statement):
        return None
    if any(stored_in_vain(statement, evidence)) or (
        statement.plan and barrier(statement.plan.root, evidence)
    ):
        return None  # What is stored or sorted is not needed: those rules name it.
    node = _largest(statement)
    memory = f"{_work_mem(written)}MB"
    of_role = role_setting(statement, evidence, "work_mem", memory)
    setting = replace(of_role, whom=of_role.whom or "").candidate(
        f"Give this statement enough work_mem for {format_bytes(written)}, in its transaction (SET "
        f"LOCAL work_mem = '{memory}') or for its role.",
        "Each sort or hash of each session may use so much memory, several in one statement.",
    )
    index = _index(statement, node, evidence)
    return finding(
        f"{_what(node)} writes {format_bytes(written)} of temporary files in each call",
        *(setting,) if index is None else _ordered(statement, setting, index),
        objects=("work_mem", *(() if index is None else (index.table,))),
        bill=evidence.bill_of((statement.number,)),
        evidence=_spill_evidence(statement, node, evidence),
        proof="Compare both with uncork run, under as many clients as the server has.",
    )


def _largest(statement: Statement) -> PlanNode | None:
    """Return the sort or hash of a plan that needs the most memory, by the planner's estimate."""
    found = [
        node
        for node in statement.nodes
        if node.kind in {"Sort", "Hash", "Materialize"}
        or (node.kind == "Aggregate" and node.strategy == "Hashed")
    ]
    disk = [node for node in found if node.disk_kib]
    if disk:
        return max(disk, key=lambda node: node.disk_kib or 0.0)

    def size(node: PlanNode) -> float:
        handled = [node.rows, *(child.rows for child in node.children if node.kind == "Sort")]
        return max(handled) * (node.width + _TUPLE_BYTES)

    return max(found, key=size, default=None)


def _what(node: PlanNode | None) -> str:
    if node is None:
        return "A sort or hash"
    table = next((each.relation for each in node.walk() if each.relation), "")
    of_table = f" of {table}" if table else ""
    if node.kind == "Sort":
        keys = [key.rpartition(".")[2].split(" ")[0] for key in node.key("Sort Key")]
        return f"The sort{of_table} by {keys[0]}" if len(keys) == 1 else f"A sort{of_table}"
    if node.kind == "Aggregate":
        return f"GROUP BY{of_table} in a hash table"
    return f"The hash table{of_table}" if node.kind == "Hash" else f"A stored result{of_table}"


def _spill_evidence(statement: Statement, node: PlanNode | None, evidence: Evidence) -> Iterator[str]:
    if statement.calls:
        yield f"This happened in {format_count(statement.calls)} calls."
    if node is not None:
        keys = node.key("Sort Key") or node.key("Group Key")
        by = f" by {', '.join(keys)}" if keys else ""
        yield (
            f"The planner expects {format_count(round(node.rows))} rows of {node.width} bytes in "
            f"the {node.kind.lower()}{by}."
        )
    memory = evidence.catalogue.setting("work_mem")
    if memory:
        yield f"work_mem is {memory}."


def _index(statement: Statement, node: PlanNode | None, evidence: Evidence) -> IndexShape | None:
    """Return an index that would return the rows of a sort in their order, None if no index can.

    Its first keys are the columns that the statement compares for equality.
    """
    shape = statement.shape
    if node is None or node.kind != "Sort" or not shape.order:
        return None
    order = [key for key in shape.order if key.level == 0]
    tables = {key.table for key in order}
    if len(tables) != 1 or not all(key.column for key in order) or "" in tables:
        return None
    table = tables.pop()
    if sum(use.kind == "table" for use in shape.tables) != 1 or shape.grouping or shape.aggregates:
        return None
    equal = dict.fromkeys(
        predicate.column
        for predicate in shape.predicates
        if predicate.table == table
        and predicate.column
        and predicate.operator == "="
        and not predicate.alternative
    )
    keys = tuple(
        IndexKey(key.column, descending=key.descending, nulls_first=key.nulls_first)
        for key in order
        if key.column not in equal
    )
    wanted = (*(IndexKey(name) for name in equal), *keys)
    exists = any(
        each.shape.columns[: len(wanted)] == tuple(key.column for key in wanted)
        for each in evidence.indexes.get(table, ())
    )
    return None if exists or not keys else IndexShape(table, wanted)


def _ordered(statement: Statement, setting: Candidate, index: IndexShape) -> tuple[Candidate, ...]:
    """Return both candidates, the better first: an index wins if the statement needs the first rows only."""
    candidate = index_change(
        f"Create an index on {index.table} that returns the rows in this order, without a sort.",
        "Reading many rows by an index reads the table's blocks in random order, unless the "
        "rows are stored in that order.",
        sql=create_index(index),
        undo=drop_index(index),
    )
    return (candidate, setting) if statement.shape.limit else (setting, candidate)


def _work_mem(written: float) -> int:
    """Return a work_mem in MB for a sort that wrote so many bytes: memory needs about twice the space."""
    needed = 2 * written / (1 << 20)
    size = 8
    while size < needed:
        size *= 2
    return size


# ---- whether the planner's statistics of a table describe its rows ----


_CHANGED: Final = 0.25
"""Fraction of the rows changed since the last ANALYZE. Autovacuum analyses a table after a tenth
(autovacuum_analyze_scale_factor), and looks once a minute."""
_LEAST: Final = 1_000
"""Changed rows below which a table is small enough for any plan."""


def never_analysed(facts: TableFacts, evidence: Evidence) -> bool:
    """Return whether a table has no statistics. An unreadable catalogue counts as statistics."""
    columns = evidence.catalogue.columns.get(facts.name, ())
    if any(column.distinct is not None for column in columns):
        return False
    if facts.analysed_us is not None:
        return False
    if evidence.is_standby:
        return facts.rows is None  # a standby has the primary's statistics, but does not know their time
    # Without reltuples, neither VACUUM, ANALYZE nor CREATE INDEX has ever counted the rows.
    return facts.rows is None or bool(columns)


def changed_part(facts: TableFacts) -> float:
    """Return how many rows were changed since the last ANALYZE, as a multiple of the table's rows."""
    return (facts.modified or 0) / max(1.0, float(facts.live or 0), facts.rows or 0.0)


def outdated(table: str, evidence: Evidence) -> bool:
    """Return whether a table was never analysed, or not since much of it changed."""
    facts = evidence.tables.get(table)
    if facts is None or max(float(facts.live or 0), facts.rows or 0.0) < _LEAST:
        return False
    if never_analysed(facts, evidence):
        return True
    return (facts.modified or 0) >= _LEAST and changed_part(facts) >= _CHANGED


def misled(statement: Statement, table: str, evidence: Evidence) -> bool:
    """Return whether a table's statistics are the reason why a statement works longer than its scans take."""
    return outdated(table, evidence) and (slower_than_planned(statement, evidence) or 0.0) >= SLOWER


_FEWER_ROWS: Final = 10.0
"""How many times fewer rows a call returns than a full scan was expected to, if the planner is mistaken."""
_MORE_WORK: Final = 3.0
"""How many times longer a call takes than reading each of its tables once, if it has no plan to compare."""


@rule("stale-statistics")
def find_stale(evidence: Evidence) -> Iterator[Finding]:
    """Find a table whose statistics are missing or out of date, so that statements get a wrong plan."""
    for table, facts in evidence.tables.items():
        if not outdated(table, evidence):
            continue
        parts = {
            statement.number: part
            for statement in evidence.costliest()
            if table in relations(statement) and (part := _saved(statement, table, evidence)) > 0
        }
        if not parts:
            continue
        top = evidence.statements[next(iter(parts))]
        never = never_analysed(facts, evidence)
        yield finding(
            f"Table {table} was never analysed, so the planner guesses its rows"
            if never
            else f"Statistics of table {table} are out of date, so the planner is wrong about its rows",
            *_analyse(facts, evidence),
            objects=(table,),
            bill=evidence.bill_of(parts),
            statements=evidence.chosen(parts),
            evidence=_stale_evidence(top, facts, evidence, never=never),
            proof="Compare the statement before and after ANALYZE on a copy with uncork run.",
        )


def _saved(statement: Statement, table: str, evidence: Evidence) -> float:
    mean = duration_ns(statement, evidence) or 0.0
    if statement.plan is None:
        once = once_ns(relations(statement), evidence)
        return 0.0 if once is None or mean < _MORE_WORK * once else 1 - once / mean
    more = any(node.relation == table and many_more_rows(node) for node in statement.nodes)
    if (slower_than_planned(statement, evidence) or 0.0) >= SLOWER or more:
        once = once_ns(relations(statement), evidence)
        return 0.0 if once is None or not mean else max(0.0, 1 - once / mean)
    return _read_in_vain(statement, table, evidence)


def _read_in_vain(statement: Statement, table: str, evidence: Evidence) -> float:
    """Return the wasted fraction of a full scan that the planner prefers to an index by mistake."""
    found = statement.a_call(statement.rows)
    plan, shape = statement.plan, statement.shape
    if plan is None or found is None or shape.aggregates or shape.limit:
        return 0.0
    scan = next((node for node in plan.root.walk() if node.relation == table), None)
    rows = evidence.rows(table)
    if scan is None or scan.kind != "Seq Scan" or rows < LARGE_ROWS:
        return 0.0
    if scan.rows < _FEWER_ROWS * max(1.0, found):
        return 0.0
    compared = {
        predicate.column
        for predicate in shape.predicates
        if predicate.table == table and predicate.operator == "="
    }
    served = any(evidence.indexed(table, column) for column in compared)
    return max(0.0, 1 - found / rows) if served and found <= 0.05 * rows else 0.0


def _stale_evidence(top: Statement, facts: TableFacts, evidence: Evidence, *, never: bool) -> Iterator[str]:
    live = format_count(round(max(facts.live or 0, facts.rows or 0)))
    if never:
        yield f"The table has {live} rows, and no column has statistics."
    else:
        changed = format_count(facts.modified or 0)
        yield (
            f"{changed} rows were changed since the last ANALYZE, {changed_part(facts):.1f} times "
            f"the {live} rows of the table."
        )
    if top.plan is not None and top.mean_ns is not None:
        root, takes = top.plan.root, format_duration(top.mean_ns)
        rows = count_words(round(root.rows), "row")
        yield f"Estimated cost {root.cost:.0f}, {rows}, but a call takes {takes}."
    if facts.autovacuum is False:
        yield "Autovacuum is turned off for the table, so nothing analyses it."


def _analyse(facts: TableFacts, evidence: Evidence) -> Iterator[Candidate]:
    yield maintenance(
        f"Analyse {facts.name}, and do so after each bulk load.",
        "Plans of other statements that use the table may change too.",
        sql=f"ANALYZE {sql_name(facts.name)};",
    )
    if facts.autovacuum is False:
        yield autovacuum_on(facts.name, "Let autovacuum analyse the table.")
        return
    new = {"autovacuum_analyze_scale_factor": "0.02"}
    yield TableOptions(facts.name, new, evidence.options(facts.name)).candidate(
        "Let autovacuum analyse the table after fewer changes.",
        "Autovacuum checks tables once a minute: run ANALYZE in the job that loads the rows.",
    )


_MULTIPLIED: Final = 5.0
"""How many times fewer rows all conditions must leave than the most selective one, by the planner's
estimate. With less, multiplying them does not change the plan."""


@statement_rule("correlated-columns")
def find_correlated(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find conditions on columns that depend on each other, which the planner takes for independent."""
    if statement.plan is None or any(outdated(table, evidence) for table in relations(statement)):
        return None
    mean = duration_ns(statement, evidence)
    scan = next(iter(_multiplied(statement, evidence)), None)
    once = once_ns(relations(statement), evidence)
    if scan is None or once is None or not mean:
        return None
    node, columns = scan
    if not many_more_rows(node) and (slower_than_planned(statement, evidence) or 0.0) < SLOWER:
        return None
    table, takes = node.relation, format_duration(mean)
    most = min(evidence.rows(table) / (evidence.distinct(table, column) or 1.0) for column in columns)
    return finding(
        f"The planner takes columns {' and '.join(columns[:3])} of {table} for independent",
        _together(table, columns),
        objects=(table, *columns),
        bill=evidence.bill_of({statement.number: max(0.0, 1 - once / mean)}),
        evidence=(
            f"It expects {format_count(node.rows)} rows of {table}; the most selective condition "
            f"alone leaves about {format_count(round(most))}.",
            f"The estimated cost is {statement.plan.root.cost:.0f}, but a call takes {takes}.",
        ),
        proof="Compare the statement with and without the statistics with uncork run.",
    )


def _multiplied(statement: Statement, evidence: Evidence) -> Iterator[tuple[PlanNode, tuple[str, ...]]]:
    """Yield scans of large tables whose estimate is the product of several columns' selectivities.

    Only joins count: a plan of one table is the same for any number of rows.
    """
    nodes = [node for node in statement.nodes if node.relation]
    for node in nodes if len(nodes) > 1 else ():
        rows = evidence.rows(node.relation)
        columns = tuple(
            dict.fromkeys(
                predicate.column
                for predicate in statement.predicates
                if predicate.table == node.relation
                and predicate.alias in {"", node.alias}
                and predicate.column
                and predicate.operator == "="
                and predicate.value in {"parameter", "constant"}
                and not predicate.alternative
            )
        )
        each_rows = [
            rows / distinct for name in columns if (distinct := evidence.distinct(node.relation, name))
        ]
        if rows < LARGE_ROWS or len(columns) < 2 or len(each_rows) < len(columns):
            continue
        product = rows * prod(each_row / rows for each_row in each_rows)
        if node.rows * _MULTIPLIED <= min(each_rows) and product * _MULTIPLIED <= min(each_rows):
            yield node, columns


def _together(table: str, columns: tuple[str, ...]) -> Candidate:
    schema, _, bare = table.rpartition(".")
    name = sql_name((f"{schema}." if schema else "") + f"{'_'.join((bare, *columns))[:58]}_stat")
    keys = ", ".join(map(quoted, columns))
    return ddl_change(
        f"Create statistics over the columns together, and analyse {table}.",
        "ANALYZE and planning take a little longer.",
        sql=f"CREATE STATISTICS {name} (ndistinct, dependencies, mcv) ON {keys} "
        f"FROM {sql_name(table)}; ANALYZE {sql_name(table)};",
        undo=f"DROP STATISTICS {name};",
    )
