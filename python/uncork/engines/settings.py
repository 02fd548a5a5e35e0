"""Settings of the embedded server that differ from PostgreSQL's defaults, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["DEFAULT_SETTINGS", "OF_A_SERVER", "configuration_text", "setting_text"]

OF_A_SERVER = frozenset(
    [
        "autovacuum",
        "autovacuum_analyze_scale_factor",
        "autovacuum_analyze_threshold",
        "autovacuum_freeze_max_age",
        "autovacuum_max_workers",
        "autovacuum_naptime",
        "autovacuum_vacuum_cost_delay",
        "autovacuum_vacuum_cost_limit",
        "autovacuum_vacuum_insert_scale_factor",
        "autovacuum_vacuum_insert_threshold",
        "autovacuum_vacuum_scale_factor",
        "autovacuum_vacuum_threshold",
        "autovacuum_work_mem",
        "bgwriter_delay",
        "bgwriter_flush_after",
        "bgwriter_lru_maxpages",
        "bgwriter_lru_multiplier",
        "checkpoint_completion_target",
        "checkpoint_flush_after",
        "checkpoint_timeout",
        "commit_timestamp_buffers",
        "fsync",
        "full_page_writes",
        "huge_page_size",
        "huge_pages",
        "io_max_combine_limit",
        "io_max_concurrency",
        "io_method",
        "io_workers",
        "log_autovacuum_min_duration",
        "log_checkpoints",
        "log_destination",
        "log_line_prefix",
        "logging_collector",
        "max_connections",
        "max_files_per_process",
        "max_locks_per_transaction",
        "max_pred_locks_per_page",
        "max_pred_locks_per_relation",
        "max_pred_locks_per_transaction",
        "max_prepared_transactions",
        "max_wal_size",
        "max_worker_processes",
        "min_wal_size",
        "multixact_member_buffers",
        "multixact_offset_buffers",
        "notify_buffers",
        "pg_stat_statements.max",
        "serializable_buffers",
        "shared_buffers",
        "shared_memory_type",
        "shared_preload_libraries",
        "subtransaction_buffers",
        "summarize_wal",
        "track_activity_query_size",
        "track_commit_timestamp",
        "transaction_buffers",
        "wal_buffers",
        "wal_decode_buffer_size",
        "wal_keep_size",
        "wal_level",
        "wal_log_hints",
        "wal_sync_method",
        "wal_writer_delay",
        "wal_writer_flush_after",
    ]
)
"""Settings that apply to the whole server, never to one database, and that may affect its speed.

Their context in `pg_settings` is postmaster or sighup."""

DEFAULT_SETTINGS: dict[str, object] = {
    # A trial starts from a known state: vacuumed and checkpointed. Background work that starts at random
    # times is off; an experiment about it can turn it on again.
    "autovacuum": False,
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
    # Exact costs per operation and per statement.
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "pg_stat_statements.save": False,
    "track_io_timing": True,
    # Enough for the data of all arms at once.
    "shared_buffers": "512MB",
    "max_connections": 200,
    # Data is restored by copying files, or by cloning them if the file system can.
    "wal_compression": False,
}


def configuration_text(settings: Mapping[str, object], *, port: int, socket_folder: Path) -> str:
    """Return the text of postgresql.conf. An experiment cannot change the address and the socket."""
    fixed = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": str(socket_folder),
        "unix_socket_permissions": "0700",
    }
    return "".join(f"{name} = {_literal(value)}\n" for name, value in {**settings, **fixed}.items())


def setting_text(value: object) -> str:
    """Return a value of an experiment file as PostgreSQL writes it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
