"""Whether the planner's statistics of a table describe its rows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rules.plans.costs import SLOWER, slower_than_planned

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

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
