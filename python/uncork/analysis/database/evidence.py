"""Gather the evidence for rules from what was stored of a watched server."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.diagnosis.evidence import Evidence, Existing, Piece, Statement, known_shape
from uncork.model.database.catalogue import Catalogue
from uncork.model.database.index import IndexShape
from uncork.model.database.missing import Unplanned, WhyUnplanned, grant
from uncork.model.database.plan import StatementPlan, has_plan
from uncork.model.database.sessions import SessionRates
from uncork.model.database.statement import StatementShape
from uncork.model.results.database import DatabaseResult, IndexFacts, PlanFacts, TemplateActivity
from uncork.profile import activity
from uncork.profile.plans.tree import plan_hash, statement_plan
from uncork.profile.shapes.all_rows import body_for_all_rows
from uncork.profile.shapes.bodies import function_statements
from uncork.profile.shapes.policies import with_policies
from uncork.profile.statement_shape import (
    assigned_values,
    compared_values,
    filter_predicates,
    index_shape,
    statement_shape,
)
from uncork.profile.workload.literals import with_keys
from uncork.stats.sampled_time import BATCHES, batch_places

Row = Mapping[str, Any]
_PLACE: Final = ("template", "state", "wait_class", "wait_event", "application", "user")
_SHAPES: Final = 2_000
"""The most statements to take apart: those with the most time."""
_COMPARED: Final = 200
"""The most statements whose texts are taken apart too."""


def evidence_of(
    result: DatabaseResult,
    pieces: Sequence[Piece],
    templates: pa.Table,
    catalogue: Catalogue,
    plans: Sequence[StatementPlan] = (),
    rates: SessionRates | None = None,
    texts: Mapping[int, Sequence[str]] | None = None,
    roles: Mapping[int, str] | None = None,
) -> Evidence:
    """Return the evidence of a watched server. `templates` is the stored table of that name. Pure.

    `texts` are statements as sessions sent them, by template. A shape has the keys of documents
    that all texts of its statement have. `roles` are the roles that ran each template most.
    """
    tables = {one.name: one for one in result.tables}
    columns = {name: [column.name for column in found] for name, found in catalogue.columns.items()}
    for name in tables:
        columns.setdefault(name, [])
    sql = dict(zip(templates["template"].to_pylist(), templates["sql"].to_pylist(), strict=True))
    seen = texts or {}
    by_template: dict[int, list[StatementPlan]] = defaultdict(list)
    for plan in plans:
        by_template[plan.template].append(plan)
    found = [template for template in result.templates if template.number >= 0]
    statements = {}
    for place, template_activity in enumerate(found):
        text = sql.get(template_activity.number) or ""
        texts_of = seen.get(template_activity.number, ())
        keyed = with_keys(text, texts_of) if texts_of else text
        shape = _shape(template_activity, keyed, columns) if place < _SHAPES else None
        known = statement_of(
            template_activity, result.block_bytes, text, shape, by_template[template_activity.number]
        )
        role = (roles or {}).get(template_activity.number, "")
        statements[template_activity.number] = replace(
            _under_policies(known, role, catalogue, result.role),
            assigned=tuple(map(assigned_values, texts_of))
            if template_activity.text.startswith("update")
            else (),
            compared=compared_values(texts_of, columns) if place < _COMPARED else {},
        )
    existing: dict[str, list[Existing]] = defaultdict(list)
    for index in result.indexes:
        existing[index.table].append(Existing(index, _index_shape))
    return Evidence(
        seconds=max(1e-3, (result.watch.ended_us - result.watch.begun_us) / 1e6),
        pieces=tuple(pieces),
        statements=statements,
        tables=tables,
        indexes={name: tuple(of_table) for name, of_table in existing.items()},
        foreign_keys=result.foreign_keys,
        catalogue=catalogue,
        rates=rates,
        database=result,
        take_filter=lambda node: filter_predicates(node, columns),
        take_body=cache(lambda source: function_statements(source, columns)),
        turn_body=lambda source, record, table: body_for_all_rows(source, record, table, catalogue.columns),
    )


def _under_policies(statement: Statement, role: str, catalogue: Catalogue, planned_by: str) -> Statement:
    """Return a statement with the conditions that row security adds for a role.

    A plan has them only if row security applies to the role that asked for it.
    """
    if not statement.shape.kind or not catalogue.policies:
        return replace(statement, role=role)
    shape, policies = with_policies(statement.shape, role, catalogue)
    same = all(planned_by in policy.roles for policy in policies)
    return replace(
        statement,
        role=role,
        shape_of=known_shape(shape),
        policies=policies,
        plans=statement.plans if same else (),
    )


def main_roles(statements: Iterable[Row], pieces: Sequence[Piece]) -> dict[int, str]:
    """Return the role that ran each template most: by its time in pg_stat_statements, else in samples.

    A session that changed its role (SET ROLE) has the new one only in pg_stat_statements. Pure.
    """
    sampled: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    counted: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for piece in pieces:
        if piece.template is not None:
            sampled[piece.template][piece.user] += piece.sessions
    for row in statements:
        if row["template"] is not None:
            counted[row["template"]][row["user"]] += row["execution_ns"]
    return {number: max(found, key=found.__getitem__) for number, found in {**sampled, **counted}.items()}


def statement_of(
    template_activity: TemplateActivity,
    block_bytes: int,
    sql: str = "",
    shape: StatementShape | None = None,
    plans: Sequence[StatementPlan] = (),
) -> Statement:
    """Return a template as rules see it. Pure."""
    known = Statement(
        template_activity.number,
        template_activity.text,
        sql,
        template_activity.identity,
        shape_of=known_shape(shape),
        plans=tuple(plans),
    )
    facts = template_activity.statements
    if facts is None:
        return known
    return replace(
        known,
        calls=facts.calls,
        mean_ns=facts.execution_ns / facts.calls if facts.calls else None,
        rows=facts.rows,
        blocks=facts.shared_hit + facts.shared_read,
        blocks_read=facts.shared_read,
        temp_bytes=facts.temp_written * block_bytes,
        wal_bytes=facts.wal_bytes,
        jit_ns=facts.jit_ns,
        planning_ns=facts.planning_ns,
    )


def _index_shape(index: IndexFacts) -> IndexShape | None:
    return index_shape(index.definition, index.name, index.table)


def _shape(
    template_activity: TemplateActivity, sql: str, columns: Mapping[str, Sequence[str]]
) -> StatementShape | None:
    return (
        statement_shape(sql, columns)
        if sql
        else statement_shape(template_activity.text, columns, template=True)
    )


def pieces_of(sessions: pa.Table, shares: Sequence[float]) -> tuple[Piece, ...]:
    """Return the time of clients' sessions by place, in equal parts of the watch.

    `sessions` are the rows of clients in the table database_activity; `shares` are the times that
    the samples stand for. Pure.
    """
    if not shares:
        return ()
    batches = min(BATCHES, len(shares))
    # By the mean length of a batch, not by its own: so the mean of the batches is the mean over the time.
    length = sum(shares) / batches
    table = sessions.select([*_PLACE, "sample"])
    table = table.append_column("weight", pc.take(pa.array(shares, pa.float64()), table["sample"]))
    places = pa.array(batch_places(shares), pa.int64())
    table = table.append_column("place", pc.take(places, table["sample"]))
    sums = table.group_by([*_PLACE, "place"]).aggregate([("weight", "sum")])
    found: dict[tuple[int | None, str, str, str, str], list[float]] = {}
    for row in sums.to_pylist():
        wait_class = activity.wait_class(row)
        who = (row["application"] or "", row["user"] or "")
        key = (row["template"], wait_class, row["wait_event"] or "", *who)
        found.setdefault(key, [0.0] * batches)[row["place"]] += row["weight_sum"]
    return tuple(
        Piece(*key, batches=tuple(value / length if length else 0.0 for value in values))
        for key, values in found.items()
    )


# ---- plans of statements, and why some have none ----


_UNKNOWN: Final = "does not exist"
_TEMPORARY: Final = "pg_temp_"
"""Part of the name of the schema of a session's temporary tables. No other session can plan their statements:
nothing is missing that a reader could provide."""
_NAMES: Final = frozenset({"42P01", "42703", "42704", "3F000"})
"""SQLSTATEs of tables, columns, other objects and schemas that the search_path does not lead to."""
_READS_ALL: Final = 14
"""The first version with the role pg_read_all_data."""
_WORDED: Final = ("refused", "not found", "not callable")
"""Reasons that are reported in the server's words."""
_AS_APPLICATION: Final = "watch as the role of the application"
_REMEDIES: Final[dict[WhyUnplanned, str]] = {
    "not writable": _AS_APPLICATION,
    "not callable": _AS_APPLICATION,
    "row security": _AS_APPLICATION,
    "no values": "run EXPLAIN with the values of a call",
    "not found": f'{_AS_APPLICATION}, or add "options=-csearch_path=SCHEMA" to the connection string',
    "other database": "watch these databases too",
    "refused": "run EXPLAIN with the values of a call",
}
_CHANGES: Final = re.compile(
    r"\b(insert into|update|delete from|merge into|for (no key )?update|for (key )?share)\b", re.IGNORECASE
)
"""Statements that need the right to change tables, or to lock their rows."""


def statement_plans(rows: Iterable[Row]) -> tuple[StatementPlan, ...]:
    """Return all plans, several per template, in the order in which uncork asked for them. Pure."""
    found = []
    for row in rows:
        if row["template"] is None or row["plan"] is None:
            continue
        one = statement_plan(row["template"], row["source"], row["json"], row["plan"])
        if one is not None:
            found.append(replace(one, jit=row["jit"]))
    return tuple(found)


def plans_of(rows: Iterable[Row]) -> tuple[PlanFacts, ...]:
    """Return one plan per template, in the order of their time: the generic one, else the first. Pure."""
    found: dict[int, PlanFacts] = {}
    for row in rows:
        template = row["template"]
        if template is None or row["denied"] or (template in found and found[template].text):
            continue
        text = row["plan"] or ""
        if text or template not in found:
            found[template] = PlanFacts(
                template, text, row["reason"], row["source"], plan_hash(row["json"] or "")
            )
    return tuple(found.values())


def unplanned(
    rows: Iterable[Row],
    statements: Mapping[int, Statement],
    times: Mapping[int, float],
    elsewhere: Collection[int],
    server: Row,
) -> tuple[Unplanned, ...]:
    """Return the statements without a plan by reason, those with the most time first. Pure.

    `rows` are the stored plans and refusals. `times` is the time of each template, in any unit;
    `elsewhere` are the templates of other databases, and `server` are the facts of the server.
    """
    refused: dict[int, Row] = {}
    planned: set[int] = set()
    for row in rows:
        if row["template"] is not None:
            refused.setdefault(row["template"], row)
            if row["plan"] is not None:
                planned.add(row["template"])
    groups: dict[tuple[WhyUnplanned, str], list[int]] = defaultdict(list)
    for number, statement in statements.items():
        if statement.plans or _TEMPORARY in statement.text:
            continue
        reason = ""
        why: WhyUnplanned
        if number in planned:
            why = "row security"
        elif number in refused:
            why = _why_refused(refused[number], statement.text)
            reason = refused[number]["reason"] if why in _WORDED else ""
        elif not has_plan(statement.text):
            why = "no plan"
        else:
            why = "other database" if number in elsewhere else "not asked"
        groups[why, reason].append(number)
    whole = sum(times.values())
    found = [
        Unplanned(
            why=why,
            templates=tuple(numbers),
            share=sum(times.get(number, 0.0) for number in numbers) / (whole or 1.0),
            role=server["role"],
            remedy=_remedy(why, server),
            reason=reason,
        )
        for (why, reason), numbers in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.share))


def _remedy(why: WhyUnplanned, server: Row) -> str:
    if why == "not readable":
        role, version = server["role"], server["number"]
        return grant("pg_read_all_data" if version >= _READS_ALL else "SELECT ON these tables", role)
    return _REMEDIES.get(why, "")


def _why_refused(row: Row, text: str) -> WhyUnplanned:
    """Return why the server refuses to plan a statement: by its SQLSTATE, if the run has it."""
    reason, state = row["reason"] or "", row["sqlstate"] or ""
    if row["denied"]:
        if "function" in reason:
            return "not callable"
        return "not writable" if _CHANGES.search(text) else "not readable"
    form = state[:2] == "42" if state else not any(part in reason for part in (_UNKNOWN, "timeout"))
    if (row["source"] or "generic") == "generic" and "?" in text and form and state not in _NAMES:
        return "no values"
    return "not found" if state in _NAMES or (not state and _UNKNOWN in reason) else "refused"
