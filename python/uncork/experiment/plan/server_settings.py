"""Tell which settings of a variant apply to a whole server, so that it needs one of its own. Pure."""

from __future__ import annotations

from typing import Final

from uncork.experiment.spec.schema import Spec
from uncork.model.engine import POSTGRESQL

OF_A_SERVER: Final = frozenset(
    [
        "archive_command",
        "archive_library",
        "archive_mode",
        "archive_timeout",
        "autovacuum",
        "autovacuum_analyze_scale_factor",
        "autovacuum_analyze_threshold",
        "autovacuum_freeze_max_age",
        "autovacuum_max_workers",
        "autovacuum_multixact_freeze_max_age",
        "autovacuum_naptime",
        "autovacuum_vacuum_cost_delay",
        "autovacuum_vacuum_cost_limit",
        "autovacuum_vacuum_insert_scale_factor",
        "autovacuum_vacuum_insert_threshold",
        "autovacuum_vacuum_max_threshold",
        "autovacuum_vacuum_scale_factor",
        "autovacuum_vacuum_threshold",
        "autovacuum_work_mem",
        "autovacuum_worker_slots",
        "bgwriter_delay",
        "bgwriter_flush_after",
        "bgwriter_lru_maxpages",
        "bgwriter_lru_multiplier",
        "checkpoint_completion_target",
        "checkpoint_flush_after",
        "checkpoint_timeout",
        "checkpoint_warning",
        "commit_timestamp_buffers",
        "data_sync_retry",
        "dynamic_shared_memory_type",
        "file_extend_method",
        "fsync",
        "full_page_writes",
        "huge_page_size",
        "huge_pages",
        "idle_replication_slot_timeout",
        "io_max_combine_limit",
        "io_max_concurrency",
        "io_method",
        "io_workers",
        "jit_provider",
        "log_autovacuum_min_duration",
        "log_checkpoints",
        "log_destination",
        "log_hostname",
        "log_line_prefix",
        "logging_collector",
        "max_active_replication_origins",
        "max_connections",
        "max_files_per_process",
        "max_locks_per_transaction",
        "max_logical_replication_workers",
        "max_notify_queue_pages",
        "max_parallel_apply_workers_per_subscription",
        "max_pred_locks_per_page",
        "max_pred_locks_per_relation",
        "max_pred_locks_per_transaction",
        "max_prepared_transactions",
        "max_replication_slots",
        "max_slot_wal_keep_size",
        "max_sync_workers_per_subscription",
        "max_wal_senders",
        "max_wal_size",
        "max_worker_processes",
        "min_dynamic_shared_memory",
        "min_wal_size",
        "multixact_member_buffers",
        "multixact_offset_buffers",
        "notify_buffers",
        "old_snapshot_threshold",
        "pg_stat_statements.max",
        "reserved_connections",
        "serializable_buffers",
        "shared_buffers",
        "shared_memory_type",
        "shared_preload_libraries",
        "subtransaction_buffers",
        "summarize_wal",
        "superuser_reserved_connections",
        "synchronous_standby_names",
        "track_activity_query_size",
        "track_commit_timestamp",
        "transaction_buffers",
        "vacuum_defer_cleanup_age",
        "wal_buffers",
        "wal_decode_buffer_size",
        "wal_keep_size",
        "wal_level",
        "wal_log_hints",
        "wal_summary_keep_time",
        "wal_sync_method",
        "wal_writer_delay",
        "wal_writer_flush_after",
    ]
)
"""Settings of PostgreSQL 13 to 18 that a database or session cannot have (context postmaster or sighup).

Left out are the settings of addresses, files, log destinations, encryption and standbys, which decide nothing
that an experiment measures or which uncork sets itself. `pg_stat_statements.max` is of an extension."""

Value = str | int | float | bool


def server_settings(spec: Spec, variant: str) -> dict[str, Value]:
    """Return the settings of a variant that apply to a whole server; empty on other engines."""
    if spec.engine(variant) != POSTGRESQL:
        return {}
    settings = spec.variants[variant].settings
    return {name: value for name, value in settings.items() if name.lower() in OF_A_SERVER}
