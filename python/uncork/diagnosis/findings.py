"""Find what is wrong with a database, ranked by what it costs. Pure.

A healthy server has no finding, however much it waits: waiting is no fault. A finding is reported
only if its cure would save time that users notice, or space that somebody pays for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from uncork.diagnosis.evidence import Evidence
from uncork.diagnosis.rule import Rule
from uncork.diagnosis.rules import schema, server
from uncork.diagnosis.rules.clients import loops, sessions
from uncork.diagnosis.rules.indexes import index_not_usable, missing_index, unneeded_indexes
from uncork.diagnosis.rules.locks import hot_row, internal, named, waits
from uncork.diagnosis.rules.plans import partitions, per_row, planning, ranges, statistics, whole_tables
from uncork.diagnosis.rules.space import bloat, hot_prevented, vacuum
from uncork.diagnosis.rules.writes import redundant_updates, row_by_row, temporary_tables
from uncork.diagnosis.servers import for_servers
from uncork.model.database.finding import Candidate, Finding

_MOST: Final = 0.5
"""Fraction of a finding's cost that deeper findings must explain before it gives way to them."""

RULES: Final[tuple[Rule, ...]] = (
    sessions.find_connections,
    sessions.find_forgotten,
    loops.find_lookup_loops,
    loops.find_loops_in_log,
    loops.find_one_by_one,
    sessions.find_slow_steps_in_log,
    sessions.find_slow_steps,
    missing_index.find_covering,
    missing_index.find_foreign_keys,
    index_not_usable.find_unusable_indexes,
    unneeded_indexes.find_invalid,
    missing_index.find_missing_indexes,
    unneeded_indexes.find_redundant_indexes,
    unneeded_indexes.find_unused_indexes,
    named.find_advisory,
    waits.find_waits_in_log,
    waits.find_deadlocks,
    hot_row.find_hot_rows,
    internal.find_lock_manager,
    waits.find_lock_waits,
    internal.find_multixacts,
    named.find_notify,
    internal.find_subtransactions,
    waits.find_table_locks,
    statistics.find_correlated,
    whole_tables.find_values,
    per_row.find_function,
    planning.find_generic_plan,
    ranges.find_interval,
    planning.find_jit,
    per_row.find_materialised,
    per_row.find_not_in,
    ranges.find_offset,
    partitions.find_not_pruned,
    whole_tables.find_random_order,
    planning.find_spill,
    statistics.find_stale,
    per_row.find_per_row,
    partitions.find_too_many,
    ranges.find_unbounded,
    per_row.find_view_barrier,
    whole_tables.find_count,
    whole_tables.find_wide_columns,
    schema.find_json_parsed,
    schema.find_random_keys,
    schema.find_wide_types,
    server.find_checkpoints,
    server.find_connections,
    server.find_crash_unsafe,
    server.find_shared_buffers,
    server.find_slow_commits,
    server.find_temporary_files,
    server.find_wal_buffers,
    vacuum.find_behind,
    bloat.find_empty_tables,
    vacuum.find_dead_rows,
    bloat.find_expired,
    vacuum.find_held_back,
    hot_prevented.find_hot_prevented,
    bloat.find_empty_indexes,
    vacuum.find_not_frozen,
    row_by_row.find_commits_in_log,
    redundant_updates.find_redundant_updates,
    row_by_row.find_commits,
    row_by_row.find_triggers,
    temporary_tables.find_temporary_tables,
)


def find_findings(evidence: Evidence, rules: Sequence[Rule] = RULES) -> tuple[Finding, ...]:
    """Return the findings: the costliest in time first, then those whose cost is not time."""
    fitting = (rule for rule in rules if evidence.tables or not rule.of_tables)
    found = [(rule.depth, finding) for rule in fitting for finding in rule(evidence)]
    kept = [finding for depth, finding in found if not _explained(depth, finding, found)]
    kept.sort(key=lambda finding: -(finding.bill.seconds_per_hour if finding.bill else 0.0))
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
    numbers = set(finding.templates)
    return any(other.rule == finding.rule and numbers.intersection(other.templates) for other in before)


# ---- what a candidate says on a standby, and if only logs are known ----


_REFUSED: Final = ("CREATE", "DROP", "ALTER", "ANALYZE", "VACUUM", "REINDEX", "CLUSTER", "REFRESH")
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
    command = candidate.sql.upper()
    accepted = not command.startswith(_REFUSED) or command.startswith("ALTER SYSTEM")
    if candidate.kind == "statement" or accepted:
        return candidate
    return replace(candidate, text=f"{candidate.text} {_ON_PRIMARY}")


def _unknown(candidate: Candidate) -> Candidate:
    """Say of an index that others may exist."""
    if candidate.kind != "index" or not candidate.sql:
        return candidate
    return replace(candidate, against=(*candidate.against, _UNKNOWN))
