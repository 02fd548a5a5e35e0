"""The settings of a source that plans, caches and answers depend on, and that a copy needs too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from uncork.engines.connecting import connect_error, connect_to_watch
from uncork.engines.copying.ddl import identifier
from uncork.model.database.copy import NotCopied
from uncork.model.database.names import literal

__all__ = ["ChosenSetting", "apply_settings", "read_settings", "start_settings"]

_NAMES: Final = (
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
_CHOSEN: Final = """
SELECT name, current_setting(name) AS value, context FROM pg_settings
 WHERE (name = ANY(%s) OR name ~ '^(enable_|geqo|jit)|_cost$') AND name !~ '^(jit_provider|vacuum_)'
   AND source NOT IN ('default', 'override', 'client', 'session')
 ORDER BY name
"""
_LISTS: Final = ("search_path",)
_SESSION: Final = ("user", "superuser", "backend", "superuser-backend")


@dataclass(frozen=True, slots=True)
class ChosenSetting:
    """A setting that the source does not have by default. `at_start` means a database cannot have its own."""

    name: str
    value: str
    at_start: bool


def read_settings(connection: psycopg.Connection[Any]) -> tuple[ChosenSetting, ...]:
    """Return the settings that the connection's sessions have, apart from defaults.

    Raises:
        psycopg.Error: if the connection fails.
    """
    rows = connection.execute(_CHOSEN, [list(_NAMES)]).fetchall()
    return tuple(ChosenSetting(name, value, context not in _SESSION) for name, value, context in rows)


def start_settings(conninfo: str) -> dict[str, str]:
    """Return the settings of a source that a server of copies must be started with, by name.

    `shared_buffers` can be larger than this machine's memory: the caller decides.

    Raises:
        ConnectError: if the source cannot be reached.
    """
    try:
        with connect_to_watch(conninfo) as connection:
            return {one.name: one.value for one in read_settings(connection) if one.at_start}
    except psycopg.Error as error:
        raise connect_error(error) from error


def apply_settings(
    connection: psycopg.Connection[Any], settings: Iterable[ChosenSetting]
) -> tuple[NotCopied, ...]:
    """Set settings for the connection's database, and return those that it cannot have.

    Raises:
        psycopg.Error: if the connection fails.
    """
    missing = []
    name = identifier(connection.info.dbname)
    now: Mapping[str, str] = dict(
        connection.execute("SELECT name, current_setting(name) FROM pg_settings").fetchall()
    )
    for one in settings:
        what, lost = f"setting {one.name} = {one.value}", "plans and timings can differ from the source's"
        if one.at_start:
            if one.name in now and now[one.name] != one.value:
                why = f"a server has it from its start; the copy's has {now[one.name]}"
                missing.append(NotCopied(what, why, lost))
            continue
        value = one.value if one.name in _LISTS and one.value else literal(one.value)
        try:
            connection.execute(f"ALTER DATABASE {name} SET {identifier(one.name)} = {value}".encode())
        except psycopg.Error as error:
            if connection.broken:
                raise
            missing.append(NotCopied(what, error.diag.message_primary or str(error), lost))
    return tuple(missing)
