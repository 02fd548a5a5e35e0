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
from uncork.advise.rules.clients import (
    connections,
    forgotten_transaction,
    lookup_loop,
    loop_in_log,
    one_by_one,
    slow_step,
)
from uncork.advise.rules.indexes import (
    covering_index,
    foreign_key_without_index,
    index_not_usable,
    invalid_index,
    missing_index,
    unneeded_indexes,
)
from uncork.advise.rules.locks import (
    advisory_lock,
    blocking_in_log,
    deadlock,
    hot_row,
    lock_manager,
    lock_wait,
    multixacts,
    notify_commits,
    subtransactions,
    table_lock,
)
from uncork.advise.rules.plans import (
    correlated_columns,
    distinct_values,
    function_per_row,
    generic_plan,
    interval_lookup,
    jit,
    materialised_cte,
    not_in_subquery,
    offset_pagination,
    partitions_not_pruned,
    random_order,
    spill,
    stale_statistics,
    subplan_per_row,
    too_many_partitions,
    unbounded_range,
    view_barrier,
    whole_count,
    wide_columns,
)
from uncork.advise.rules.schema import json_parsed, random_keys, wide_types
from uncork.advise.rules.server import (
    checkpoints,
    connection_limit,
    crash_unsafe,
    shared_buffers,
    slow_commits,
    temporary_file_limit,
    wal_buffers,
)
from uncork.advise.rules.space import (
    autovacuum_behind,
    bloat,
    dead_rows,
    expired_rows,
    held_back,
    hot_prevented,
    index_bloat,
    not_frozen,
)
from uncork.advise.rules.writes import (
    redundant_updates,
    row_commits,
    row_triggers,
    temporary_tables,
)
from uncork.advise.servers import for_servers

if TYPE_CHECKING:
    from uncork.model.database.finding import Candidate, Finding


_MOST: Final = 0.5
"""Fraction of a finding's cost that deeper findings must explain before it gives way to them."""

RULES: Final[tuple[Rule, ...]] = (
    connections.RULE,
    forgotten_transaction.RULE,
    lookup_loop.RULE,
    loop_in_log.RULE,
    one_by_one.RULE,
    slow_step.IN_LOG,
    slow_step.RULE,
    covering_index.RULE,
    foreign_key_without_index.RULE,
    index_not_usable.RULE,
    invalid_index.RULE,
    missing_index.RULE,
    unneeded_indexes.REDUNDANT,
    unneeded_indexes.UNUSED,
    advisory_lock.RULE,
    blocking_in_log.RULE,
    deadlock.RULE,
    hot_row.RULE,
    lock_manager.RULE,
    lock_wait.RULE,
    multixacts.RULE,
    notify_commits.RULE,
    subtransactions.RULE,
    table_lock.RULE,
    correlated_columns.RULE,
    distinct_values.RULE,
    function_per_row.RULE,
    generic_plan.RULE,
    interval_lookup.RULE,
    jit.RULE,
    materialised_cte.RULE,
    not_in_subquery.RULE,
    offset_pagination.RULE,
    partitions_not_pruned.RULE,
    random_order.RULE,
    spill.RULE,
    stale_statistics.RULE,
    subplan_per_row.RULE,
    too_many_partitions.RULE,
    unbounded_range.RULE,
    view_barrier.RULE,
    whole_count.RULE,
    wide_columns.RULE,
    json_parsed.RULE,
    random_keys.RULE,
    wide_types.RULE,
    checkpoints.RULE,
    connection_limit.RULE,
    crash_unsafe.RULE,
    shared_buffers.RULE,
    slow_commits.RULE,
    temporary_file_limit.RULE,
    wal_buffers.RULE,
    autovacuum_behind.RULE,
    bloat.RULE,
    dead_rows.RULE,
    expired_rows.RULE,
    held_back.RULE,
    hot_prevented.RULE,
    index_bloat.RULE,
    not_frozen.RULE,
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
