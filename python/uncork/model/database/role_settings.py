"""The settings that statements of a role have: those of the role, of its database, and of both. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from uncork.model.database.catalogue import RoleSetting

PLAN_SETTINGS: Final = (
    *("shared_buffers", "work_mem", "hash_mem_multiplier", "maintenance_work_mem", "effective_cache_size"),
    *("effective_io_concurrency", "maintenance_io_concurrency", "default_statistics_target", "temp_buffers"),
    *("max_parallel_workers", "max_parallel_workers_per_gather", "max_parallel_maintenance_workers"),
    *("min_parallel_table_scan_size", "min_parallel_index_scan_size", "parallel_leader_participation"),
    *("max_worker_processes", "constraint_exclusion", "cursor_tuple_fraction", "from_collapse_limit"),
    *("join_collapse_limit", "plan_cache_mode", "recursive_worktable_factor", "synchronous_commit"),
    *("max_wal_size", "checkpoint_timeout", "wal_compression", "default_toast_compression", "search_path"),
    *("TimeZone", "DateStyle", "IntervalStyle", "default_text_search_config", "bytea_output"),
    *("extra_float_digits", "gin_pending_list_limit", "gin_fuzzy_search_limit", "array_nulls"),
)
"""Settings that plans, caches and answers depend on, besides those of `PLAN_PATTERN`."""
PLAN_PATTERN: Final = "^(enable_|geqo|jit)|_cost$"
NO_PLAN_PATTERN: Final = "^(jit_provider|vacuum_)"
LIST_SETTINGS: Final = ("search_path",)
"""Settings whose value is a list of names, quoted already, and not one text."""

_KNOWN: Final = frozenset(map(str.lower, PLAN_SETTINGS))


def decides_plans(name: str) -> bool:
    """Return whether plans, caches or answers depend on a setting."""
    lower = name.lower()
    return lower in _KNOWN or (
        re.search(PLAN_PATTERN, lower) is not None and re.search(NO_PLAN_PATTERN, lower) is None
    )


def settings_of_role(settings: Iterable[RoleSetting], role: str) -> dict[str, str]:
    """Return the values for one role of all settings that any role has for itself.

    `settings` are those of one database, as ALTER ROLE and ALTER DATABASE have set them. A role's setting in
    the database comes before the role's own, which comes before the database's. A setting that only the
    database has is left out, because every session has it.
    """
    rows = [row for row in settings if row.value and decides_plans(row.name)]
    differing = {row.name for row in rows if row.role}
    found = {}
    for row in sorted(rows, key=lambda row: (bool(row.role), bool(row.database))):
        if row.name in differing and row.role in ("", role):
            found[row.name] = row.value
    return found
