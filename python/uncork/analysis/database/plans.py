"""Plans of a watched server's statements, and why some have none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from uncork.model.database.missing import Missing
from uncork.model.database.plan import PlanSource, StatementPlan
from uncork.model.results.database import PlanFacts
from uncork.profile.plans.tree import plan_hash, statement_plan

__all__ = ["missing_plans", "plans_of", "statement_plans"]

Row = Mapping[str, Any]

_MOST_REASONS: Final = 5
"""Reasons to list; the section of each template has its own."""
_UNKNOWN: Final = "does not exist"
_TEMPORARY: Final = "pg_temp_"
"""Part of the name of the schema of a session's temporary tables. No other session can plan their statements:
nothing is missing that a reader could provide."""


def statement_plans(rows: Iterable[Row]) -> tuple[StatementPlan, ...]:
    """Return all plans, several per template, in the order in which uncork asked for them. Pure.

    Runs of earlier versions stored only the text of generic plans, which is read instead of the JSON.
    """
    found = []
    for row in rows:
        if row["template"] is None or row["plan"] is None:
            continue
        text = row["plan"]
        one = statement_plan(row["template"], row["source"] or "generic", row["json"] or text, text)
        if one is not None:
            found.append(replace(one, jit=bool(row["jit"])))
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
            source: PlanSource = row["source"] or "generic"
            digits = plan_hash(row["json"] or text)
            found[template] = PlanFacts(template, text, row["reason"], source, digits)
    return tuple(found.values())


def missing_plans(rows: Sequence[Row], role: str) -> Iterator[Missing]:
    """Yield why statements have no plan: once for missing privileges, and once for each other reason."""
    planned = {row["query_id"] for row in rows if row["plan"] is not None}
    failed: dict[str, set[int]] = defaultdict(set)
    denied: dict[int, str] = {}
    for row in rows:
        if row["query_id"] in planned or _TEMPORARY in row["reason"]:
            continue
        if row["denied"]:
            denied[row["query_id"]] = row["reason"]
        else:
            failed[row["reason"]].add(row["query_id"])
    if denied:
        yield Missing(
            f"the privileges that the statements need (the server: {next(iter(denied.values()))})",
            f"the plans of {len(denied)} of the costliest statements",
            f'for queries, GRANT pg_read_all_data TO "{role}" (PostgreSQL 14 and later), or profile as the '
            "role of the application",
        )
    for reason, statements in sorted(failed.items(), key=lambda one: -len(one[1]))[:_MOST_REASONS]:
        many = len(statements)
        yield Missing(
            f'statements that the server can plan (the server: "{reason}")',
            f"the {'plans' if many > 1 else 'plan'} of {many} of the costliest statements",
            'profile as the role of the application, or add "options=-csearch_path=SCHEMA" to the DSN'
            if _UNKNOWN in reason
            else "run EXPLAIN with the values of a call",
        )
