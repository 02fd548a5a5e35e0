"""Find what is wrong with a database, ranked by what it costs. Pure.

A healthy server has no finding, however much it waits: waiting is no fault. A finding is reported only if
its cure would save time that users notice, or space that somebody pays for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules import schema
from uncork.advise.rules.clients import connections, loops, pauses
from uncork.advise.rules.indexes import index_not_usable, missing_index, unneeded_indexes
from uncork.advise.rules.locks import hot_row, internal, named, table_lock, waits
from uncork.advise.rules.plans import (
    function_per_row,
    partitions,
    planning,
    ranges,
    spill,
    statistics,
    subqueries,
    whole_tables,
    wide_columns,
)
from uncork.advise.rules.server import limits, settings, wal
from uncork.advise.rules.space import bloat, expired_rows, hot_prevented, vacuum
from uncork.advise.rules.writes import redundant_updates, row_commits, row_triggers, temporary_tables
from uncork.advise.servers import for_servers

if TYPE_CHECKING:
    from uncork.model.database.finding import Candidate, Finding


_MOST: Final = 0.5
"""Fraction of a finding's cost that deeper findings must explain before it gives way to them."""

RULES: Final[tuple[Rule, ...]] = (
    connections.RULE,
    pauses.FORGOTTEN,
    loops.LOOKUP_LOOP,
    loops.IN_LOG,
    loops.ONE_BY_ONE,
    pauses.SLOW_STEP_IN_LOG,
    pauses.SLOW_STEP,
    missing_index.COVERING,
    missing_index.FOREIGN_KEY,
    index_not_usable.RULE,
    unneeded_indexes.INVALID,
    missing_index.MISSING,
    unneeded_indexes.REDUNDANT,
    unneeded_indexes.UNUSED,
    named.ADVISORY,
    waits.IN_LOG,
    waits.DEADLOCK,
    hot_row.RULE,
    internal.LOCK_MANAGER,
    waits.LOCK_WAIT,
    internal.MULTIXACTS,
    named.NOTIFY,
    internal.SUBTRANSACTIONS,
    table_lock.RULE,
    statistics.CORRELATED,
    whole_tables.VALUES,
    function_per_row.RULE,
    planning.GENERIC_PLAN,
    ranges.INTERVAL,
    planning.JIT,
    subqueries.MATERIALISED,
    subqueries.NOT_IN,
    ranges.OFFSET,
    partitions.NOT_PRUNED,
    whole_tables.RANDOM_ORDER,
    spill.RULE,
    statistics.STALE,
    subqueries.PER_ROW,
    partitions.TOO_MANY,
    ranges.UNBOUNDED,
    subqueries.VIEW_BARRIER,
    whole_tables.COUNT,
    wide_columns.RULE,
    schema.JSON_PARSED,
    schema.RANDOM_KEYS,
    schema.WIDE_TYPES,
    wal.CHECKPOINTS,
    limits.CONNECTIONS,
    settings.CRASH_UNSAFE,
    settings.SHARED_BUFFERS,
    wal.SLOW_COMMITS,
    limits.TEMPORARY_FILES,
    wal.WAL_BUFFERS,
    vacuum.BEHIND,
    bloat.TABLES,
    vacuum.DEAD_ROWS,
    expired_rows.RULE,
    vacuum.HELD_BACK,
    hot_prevented.RULE,
    bloat.INDEXES,
    vacuum.NOT_FROZEN,
    row_commits.IN_LOG,
    redundant_updates.RULE,
    row_commits.RULE,
    row_triggers.RULE,
    temporary_tables.RULE,
)


def find_findings(evidence: Evidence, rules: Sequence[Rule] = RULES) -> tuple[Finding, ...]:
    """Return the findings: the costliest in time first, then those whose cost is not time."""
    fitting = (rule for rule in rules if evidence.tables or not rule.of_tables)
    found = [(rule.depth, finding) for rule in fitting for finding in rule.find(evidence)]
    kept = [finding for depth, finding in found if not _explained(depth, finding, found)]
    kept.sort(key=lambda one: -(one.bill.seconds_per_hour if one.bill else 0.0))
    reported = tuple(finding for place, finding in enumerate(kept) if not _said(finding, kept[:place]))
    if evidence.is_standby:
        return tuple(_change_candidates(finding, _on_primary) for finding in reported)
    if evidence.log is None or evidence.database is not None:
        return reported
    log = evidence.log
    return tuple(for_servers(_change_candidates(finding, _unknown), log) for finding in reported)


def _explained(depth: int, finding: Finding, found: Sequence[tuple[int, Finding]]) -> bool:
    """Return whether deeper findings about all of a finding's statements explain most of its cost."""
    if finding.bill is None or not finding.templates:
        return False
    deeper = [other for level, other in found if level > depth and other.bill is not None]
    behind = [other for other in deeper if set(other.templates) & set(finding.templates)]
    covered = {number for other in behind for number in other.templates}
    cost = sum(other.bill.seconds_per_hour for other in behind if other.bill is not None)
    return set(finding.templates) <= covered and cost >= _MOST * finding.bill.seconds_per_hour


def _said(finding: Finding, before: Sequence[Finding]) -> bool:
    """Return whether a costlier finding of the same rule is about the same statement, from other evidence."""
    mine = set(finding.templates)
    return any(other.rule == finding.rule and mine.intersection(other.templates) for other in before)


# ---- what a candidate says on a standby, and if only logs are known ----


_REFUSED: Final = re.compile(
    r"^\s*(?:create|drop|alter\s+(?!system)|analyze|vacuum|reindex|cluster|refresh)\b", re.I | re.MULTILINE
)
"""Commands that a standby refuses. ALTER SYSTEM changes a file of the server that executes it."""
_ON_PRIMARY: Final = (
    "Execute it on the primary: this server is a standby, and gets the change by replication."
)
_UNKNOWN: Final = (
    "A log does not show which indexes exist: there may be one that the statement cannot use. "
    "`uncork advise` with the server's address finds out."
)


def _change_candidates(finding: Finding, change: Callable[[Candidate], Candidate]) -> Finding:
    return replace(finding, candidates=tuple(map(change, finding.candidates)))


def _on_primary(candidate: Candidate) -> Candidate:
    """Name the server that accepts the change."""
    if candidate.kind == "statement" or not _REFUSED.search(candidate.sql):
        return candidate
    return replace(candidate, text=f"{candidate.text} {_ON_PRIMARY}")


def _unknown(candidate: Candidate) -> Candidate:
    """Say of an index that others may exist."""
    return (
        replace(candidate, against=(*candidate.against, _UNKNOWN))
        if candidate.kind == "index" and candidate.sql
        else candidate
    )
