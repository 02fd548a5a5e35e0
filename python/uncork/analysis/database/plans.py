"""Generic plans of a watched server, and what stands out in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from uncork.advise.plan_rules import plan_notes
from uncork.model.results.database import Missing, PlanFacts, TableFacts

__all__ = ["missing_plans", "plans_of"]

Row = Mapping[str, Any]


def plans_of(rows: Iterable[Row], tables: Iterable[TableFacts]) -> tuple[PlanFacts, ...]:
    """Return one plan per template, in the order of their time. Pure."""
    sizes: dict[str, float] = {}
    for one in tables:
        name = one.name.rpartition(".")[2]
        sizes[name] = max(sizes.get(name, 0.0), float(one.live or 0) if one.rows is None else one.rows)
    found: dict[int, PlanFacts] = {}
    for row in rows:
        if row["template"] is None or row["denied"]:
            continue
        text = row["plan"] or ""
        found.setdefault(
            row["template"], PlanFacts(row["template"], text, row["reason"], plan_notes(text, sizes))
        )
    return tuple(found.values())


def missing_plans(rows: Iterable[Row], role: str) -> Iterator[Missing]:
    """Yield, once, that this role may not see the plans of some statements."""
    denied = [row for row in rows if row["denied"]]
    if denied:
        yield Missing(
            f"the privileges that the statements need (the server: {denied[0]['reason']})",
            f"the plans of {len(denied)} of the costliest statements",
            f'for queries, GRANT pg_read_all_data TO "{role}" (PostgreSQL 14 and later), or profile as the '
            "role of the application",
        )
