"""Gather the evidence for rules from logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from uncork.diagnosis.evidence import Evidence, Piece, Statement
from uncork.diagnosis.log_loops import client_loops
from uncork.model.database.finding import Finding
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.model.database.sessions import SessionRates
from uncork.model.database.statement import StatementShape
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.records import build_from
from uncork.model.results.costly_parts import CostlyPart
from uncork.model.results.log import LogResult, TemplateFacts
from uncork.model.units import count_words
from uncork.profile.plans.tree import statement_plan
from uncork.stats.sampled_time import BATCHES

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_SHAPES: Final = 200
"""Statements that are taken apart, and whose plans are read: those with the most time. Each takes 0.4 ms."""
_PARAMETER: Final = "$1"


def log_seconds(result: LogResult) -> float:
    """Return the length of a log in seconds, at least 1."""
    first, last = result.first_us, result.last_us
    return max(1.0, (last - first) / 1e6) if first is not None and last is not None else 1.0


def evidence_of_log(result: LogResult) -> Evidence:
    """Return the evidence of a log. Pure.

    The time of a statement counts as waiting for a lock as far as the log shows it, else as work: a log does
    not tell what else a statement waited for. Transactions are idle while they wait for their client, and so
    are sessions within rows of executions and loops. What tables are like is known from executed plans only.
    """
    seconds = log_seconds(result)
    found = [template for template in result.templates if template.number >= 0]
    plans = {template.number: executed_plans(template) for template in found[:_SHAPES]}
    tables = tables_of(plan for of_template in plans.values() for plan in of_template)
    columns: dict[str, Sequence[str]] = {name: () for name in tables}
    temporary = {tally.name: tally.sum for tally in result.server.temporary_files}
    statements = {
        template.number: _statement(template, plans.get(template.number, ()), temporary.get(template.text, 0))
        for template in found
    }
    for one in found[:_SHAPES]:
        known = statements[one.number]
        statements[one.number] = replace(known, shape_of=cache(partial(_shape, known, columns)))
    return Evidence(
        seconds=seconds,
        pieces=tuple(_all_pieces(result, found, seconds)),
        statements=statements,
        tables=tables,
        rates=_rates(result, seconds),
        log=result,
        log_numbers={template.number: template.number for template in found},
    )


def _shape(known: Statement, columns: Mapping[str, Sequence[str]]) -> StatementShape | None:
    from uncork.profile.statement_shape import statement_shape  # noqa: PLC0415 -- loads a parser of 14 MB

    if known.sql:
        return statement_shape(known.sql, columns)
    return statement_shape(known.text, columns, template=True)


def _statement(template: TemplateFacts, plans: Sequence[StatementPlan], temporary: int) -> Statement:
    """Return a template as rules see it; what a plan shows of one execution counts for each of them."""
    calls = template.executions
    plan = next((plan for plan in plans if plan.root.loops is not None), None)
    blocks = None if plan is None else plan.root.blocks
    compiling_ms = None if plan is None else plan.jit_ms
    texts = (example.text for example in template.examples if example.kind != "plan" and not template.cut)
    return build_from(
        Statement,
        template,
        sql=next((text for text in texts if _PARAMETER in text), ""),
        calls=calls,
        rows=_rows(template, plan),
        blocks=None if blocks is None else round(blocks * calls),
        temp_bytes=temporary or _on_disk(plan, calls),
        jit_ns=None if compiling_ms is None else min(compiling_ms * 1e6, template.mean_ns) * calls,
        plans=tuple(plans),
        repeated=None
        if template.repeated is None
        else (template.repeated.unchanged, template.repeated.updates),
    )


def _rows(template: TemplateFacts, plan: StatementPlan | None) -> int | None:
    """Return the rows of all executions; a plan that changes rows returns none, so those below it count."""
    if plan is not None and plan.root.kind == "ModifyTable" and not plan.root.output:
        changed = plan.root.children[0].actual_rows if plan.root.children else 1.0
        return None if changed is None else round(changed * template.executions)
    return None if template.rows is None else round(template.rows * template.executions)


def _on_disk(plan: StatementPlan | None, calls: int) -> int | None:
    """Return the temporary space of all executions if each needs as much as the one with a plan."""
    found = [] if plan is None else [node.disk_kib for node in plan.root.walk() if node.disk_kib is not None]
    return round(sum(found) * 1024 * calls) if found else None


def executed_plans(template: TemplateFacts) -> tuple[StatementPlan, ...]:
    """Return the plans of a template that auto_explain logged."""
    found = (
        statement_plan(template.number, "executed", example.text)
        for example in template.examples
        if example.kind == "plan"
    )
    return tuple(plan for plan in found if plan is not None)


def _rates(result: LogResult, seconds: float) -> SessionRates:
    commits = sum(template.executions for template in result.templates if template.kind in ("COMMIT", "END"))
    rollbacks = sum(
        template.executions for template in result.templates if template.kind in ("ROLLBACK", "ABORT")
    )
    ended = sum(transaction.count for transaction in result.transactions)
    alone = result.executions.count - sum(
        transaction.statements + 2 * transaction.count for transaction in result.transactions
    )
    if result.withheld:
        alone = 0  # whether statements were in transactions is not known
    return SessionRates(
        commits=max(commits, ended - rollbacks, 0) / seconds + max(0, alone) / seconds,
        rollbacks=rollbacks / seconds,
        opened=None if result.sessions is None else result.sessions.begun / seconds,
        deadlocks=result.server.deadlocks / seconds,
    )


# ---- where time goes ----


def _all_pieces(result: LogResult, found: Sequence[TemplateFacts], seconds: float) -> Iterator[Piece]:
    locked = _locked(result)
    parts = max((min(BATCHES, len(template.timeline)) for template in found), default=1) or 1
    for template in found:
        steady = _batches(template.timeline, parts)
        yield from _pieces(template, seconds, locked.get(template.number, 0), steady)
    failed_ns = max(0, sum(lock_wait.sum for lock_wait in result.server.lock_waits) - sum(locked.values()))
    yield Piece(None, "Lock", "", "", "", (failed_ns / 1e9 / seconds,) * parts)
    for name, user, waiting_ns in sorted(_idle(result), key=lambda item: -item[2]):
        idle_ns = max(0, waiting_ns - failed_ns)  # statements that failed have no duration
        failed_ns -= waiting_ns - idle_ns
        yield Piece(None, IDLE, "", name, user, (idle_ns / 1e9 / seconds,) * parts)


def _locked(result: LogResult) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for blocking in result.blocking:
        if blocking.waiting_number is not None:
            found[blocking.waiting_number] = found.get(blocking.waiting_number, 0) + blocking.sum_ns
    return found


def _pieces(
    template: TemplateFacts, seconds: float, locked_ns: int, steady: Sequence[float]
) -> Iterator[Piece]:
    user = template.users[0].name if len(template.users) == 1 else ""
    shares = [(part.name, part.share) for part in template.applications] or [("", 1.0)]
    waited_ns = min(template.sum_ns, locked_ns)
    for wait_class, spent_ns in ((CPU, template.sum_ns - waited_ns), ("Lock", waited_ns)):
        busy = spent_ns / 1e9 / seconds
        for name, share in shares if busy or wait_class == CPU else ():
            yield Piece(
                template.number, wait_class, "", name, user, tuple(busy * share * part for part in steady)
            )


def _idle(result: LogResult) -> Iterator[tuple[str, str, int]]:
    """Yield who waits for its client, and how long: in transactions, and in loops outside of them."""
    within = 0
    for transaction in result.transactions:
        within += transaction.repeated_wait_ns
        yield (
            transaction.application,
            transaction.user,
            max(0, transaction.elapsed_ns - transaction.working_ns),
        )
    in_loops = sum(loop.waiting_ns for loop in client_loops(result))
    yield "", "", max(0, in_loops - within)


def _batches(timeline: Sequence[int], parts: int) -> list[float]:
    """Return the executions in equal parts of the log, divided by their mean."""
    whole = sum(timeline)
    if not whole or len(timeline) < parts:
        return [1.0] * parts
    mean = whole / len(timeline)
    bounds = [math.ceil(part * len(timeline) / parts) for part in range(parts + 1)]
    found = [sum(timeline[begin:end]) / (end - begin) / mean for begin, end in pairwise(bounds)]
    level = sum(found) / parts
    return [value / level for value in found]


# ---- what the executed plans of a log show of tables: their rows and their size ----


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

    A scan that LIMIT ended early has read fewer rows than the table has, so of several scans the
    largest counts. What statements did to the tables is unknown, so all counters are 0.
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


# ---- the statements with the most time: found, fine, or not explained ----


_MOST: Final = 3
"""Statements to account for."""
WITH_PLAN: Final = frozenset(
    {
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "WITH",
        "VALUES",
        "TABLE",
        "EXECUTE",
        "DECLARE",
        "FETCH",
    }
)
"""Statements for which auto_explain logs a plan."""
_FEW_ROWS: Final = 10.0
"""Rows read for each row returned up to which a plan is fine: an index with a filter reads so many."""
_TYPICAL: Final = 0.5
"""A plan whose execution took less than this fraction of the mean time does not stand for the others,"""
_PLANNING_NS: Final = 1_000_000
"""unless parsing and planning, which the plan's time leaves out, may take the rest."""


def costly_parts_of_log(result: LogResult, findings: Sequence[Finding]) -> tuple[CostlyPart, ...]:
    """Return what is known of the three costliest statements of a log, the costliest first."""
    costliest = [template for template in result.templates if template.number >= 0 and template.sum_ns]
    return tuple(_part(template, findings) for template in costliest[:_MOST])


def _part(template: TemplateFacts, findings: Sequence[Finding]) -> CostlyPart:
    for place, finding in enumerate(findings, 1):
        if template.number in finding.templates:
            return CostlyPart("statement", template.text, template.share, "found", place)
    fine, evidence = _judged(template)
    state: Literal["fine", "not explained"] = "fine" if fine else "not explained"
    return CostlyPart("statement", template.text, template.share, state, None, evidence)


def _judged(template: TemplateFacts) -> tuple[bool, str]:
    """Return whether the logged plan of a statement reads few rows, and the evidence."""
    if template.kind not in WITH_PLAN:
        return False, "it has no plan; a watch of the server shows what it waits for"
    plans = executed_plans(template)
    executed = next((plan for plan in plans if plan.root.loops), None)
    if plans and executed is None:
        return False, "its logged plan has no counted rows"
    executed_ns = 0.0 if executed is None else (executed.root.milliseconds or 0.0) * 1e6
    is_typical = executed_ns >= _TYPICAL * template.mean_ns or template.mean_ns - executed_ns <= _PLANNING_NS
    if executed is None or not is_typical:
        return False, "the log has no plan of a typical execution"
    scans = (node for node in executed.root.walk() if node.relation and node.kind != "ModifyTable")
    read = sum((node.actual_rows or 0.0) + (node.removed or 0.0) for node in scans)
    returned = _rows_returned(executed)
    rows = (
        f"its logged plan reads {count_words(round(read), 'row')} and returns or changes "
        f"{count_words(round(returned), 'row')}"
    )
    if read <= _FEW_ROWS * max(1.0, returned):
        return True, rows
    return False, f"{rows}; a watch of the server shows indexes and waits"


def _rows_returned(plan: StatementPlan) -> float:
    root = plan.root
    if root.kind == "ModifyTable" and not root.output and root.children:
        return root.children[0].actual_rows or 0.0
    return root.actual_rows or 0.0
