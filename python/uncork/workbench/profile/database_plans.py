"""Collect the generic plans of the statements that took the most time during a watch."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from uncork.engines.watch.connection import ServerWatch
from uncork.profile.server_templates import TemplateBook

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["find_plans", "plans_table", "top_statements"]

Row = Mapping[str, Any]

_MOST: Final = 10
"""Statements to plan: those with the most execution time. Planning one takes about a millisecond."""
_LONGEST_NS: Final = 2_000_000_000
"""Time after which no further statement is planned."""


def top_statements(
    changed: Sequence[tuple[Row | None, Row]], database: str, texts: Mapping[int, str], own: Collection[int]
) -> list[int]:
    """Return the query ids of a database with the most execution time between the snapshots. Pure."""
    spent: Counter[int] = Counter()
    for before, after in changed:
        if after["database"] == database and after["query_id"] in texts and after["query_id"] not in own:
            spent[after["query_id"]] += after["execution_ns"] - (before["execution_ns"] if before else 0)
    return [query_id for query_id, _ in spent.most_common()]


def find_plans(
    server: ServerWatch,
    database: str,
    changed: Sequence[tuple[Row | None, Row]],
    texts: Mapping[int, str],
    own: Collection[int],
) -> list[dict[str, Any]]:
    """Return the plans of the costliest statements of the connected database.

    After a statement is refused for a missing privilege, further ones are still tried, because others may use
    other tables.

    Raises:
        ServerCrash: if the server goes away.
    """
    found: list[dict[str, Any]] = []
    begun = time.monotonic_ns()
    for query_id in top_statements(changed, database, texts, own):
        if len(found) == _MOST or time.monotonic_ns() - begun > _LONGEST_NS:
            break
        plan = server.generic_plan(texts[query_id])
        if plan is not None:
            found.append(
                {"query_id": query_id, "plan": plan.text, "reason": plan.reason, "denied": plan.denied}
            )
    return found


def plans_table(book: TemplateBook, plans: Sequence[Row]) -> pa.Table:
    """Return plans as a stored table."""
    from uncork.store.evidence import rows_table  # noqa: PLC0415 -- not before the first sample

    return rows_table(
        "database_plans", [{**row, "template": book.number(row["query_id"], None)} for row in plans]
    )
