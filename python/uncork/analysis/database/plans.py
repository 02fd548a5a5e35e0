"""Plans of a watched server's statements, and why some have none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from uncork.diagnosis.evidence import Statement
from uncork.model.database.missing import Unplanned, WhyUnplanned, grant
from uncork.model.database.plan import StatementPlan, has_plan
from uncork.model.results.database import PlanFacts
from uncork.profile.plans.tree import plan_hash, statement_plan

Row = Mapping[str, Any]

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

    `rows` are the stored plans and refusals. `times` is the time of each template, in any unit; `elsewhere`
    are the templates of other databases, and `server` are the facts of the server.
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
