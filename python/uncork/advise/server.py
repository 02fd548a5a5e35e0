"""Find what is worth changing on a watched server, ranked by the time it costs. Pure.

A healthy server has no finding, however much it waits: see `uncork.advise.server_thresholds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from uncork.advise import server_rules as rules
from uncork.model.results.database import DatabaseResult
from uncork.model.results.database_finding import DatabaseFinding

__all__ = ["find_server_findings"]

_RULES: Final[tuple[Callable[[DatabaseResult], Iterator[DatabaseFinding]], ...]] = (
    rules.forgotten_transactions,
    rules.statements_one_by_one,
    rules.missing_indexes,
    rules.lock_waits,
    rules.row_commits,
    rules.temporary_files,
    rules.jit,
    rules.slow_statements,
    rules.bloat,
    rules.dead_rows,
    rules.checkpoints,
)
_WHOLE: Final = frozenset({"missing-index", "temporary-files", "jit", "bloat"})
"""Findings that explain why a statement is slow, and so replace the finding that it is slow."""


def find_server_findings(result: DatabaseResult) -> tuple[DatabaseFinding, ...]:
    """Return the findings: the costliest in time first, then findings whose cost is not time."""
    found = [finding for rule in _RULES for finding in rule(result)]
    explained = {one.template for one in found if one.rule in _WHOLE}
    found = [one for one in found if one.rule != "slow-statement" or one.template not in explained]
    return tuple(sorted(found, key=lambda one: -one.share))
