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
from uncork.advise.rules import schema, server
from uncork.advise.rules.clients import loops, sessions
from uncork.advise.rules.indexes import index_not_usable, missing_index, unneeded_indexes
from uncork.advise.rules.locks import hot_row, internal, named, waits
from uncork.advise.rules.plans import partitions, per_row, planning, ranges, statistics, whole_tables
from uncork.advise.rules.space import bloat, hot_prevented, vacuum
from uncork.advise.rules.writes import redundant_updates, row_by_row, temporary_tables
from uncork.advise.servers import for_servers

if TYPE_CHECKING:
    from uncork.model.database.finding import Candidate, Finding


_MOST: Final = 0.5
"""Fraction of a finding's cost that deeper findings must explain before it gives way to them."""

RULES: Final[tuple[Rule, ...]] = (
    sessions.CONNECTIONS,
    sessions.FORGOTTEN,
    loops.LOOKUP_LOOP,
    loops.IN_LOG,
    loops.ONE_BY_ONE,
    sessions.SLOW_STEP_IN_LOG,
    sessions.SLOW_STEP,
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
    waits.TABLE_LOCK,
    statistics.CORRELATED,
    whole_tables.VALUES,
    per_row.FUNCTION,
    planning.GENERIC_PLAN,
    ranges.INTERVAL,
    planning.JIT,
    per_row.MATERIALISED,
    per_row.NOT_IN,
    ranges.OFFSET,
    partitions.NOT_PRUNED,
    whole_tables.RANDOM_ORDER,
    planning.SPILL,
    statistics.STALE,
    per_row.PER_ROW,
    partitions.TOO_MANY,
    ranges.UNBOUNDED,
    per_row.VIEW_BARRIER,
    whole_tables.COUNT,
    whole_tables.WIDE_COLUMNS,
    schema.JSON_PARSED,
    schema.RANDOM_KEYS,
    schema.WIDE_TYPES,
    server.CHECKPOINTS,
    server.CONNECTIONS,
    server.CRASH_UNSAFE,
    server.SHARED_BUFFERS,
    server.SLOW_COMMITS,
    server.TEMPORARY_FILES,
    server.WAL_BUFFERS,
    vacuum.BEHIND,
    bloat.TABLES,
    vacuum.DEAD_ROWS,
    bloat.EXPIRED_ROWS,
    vacuum.HELD_BACK,
    hot_prevented.RULE,
    bloat.INDEXES,
    vacuum.NOT_FROZEN,
    row_by_row.COMMITS_IN_LOG,
    redundant_updates.RULE,
    row_by_row.COMMITS,
    row_by_row.TRIGGERS,
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
