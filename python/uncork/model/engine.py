"""The database engines that an experiment may name, and what is known of each before its driver is loaded."""

from __future__ import annotations

import re

from uncork.model.records import Record

POSTGRESQL = "postgresql"
"""The engine of a variant that names none; the Rust core sends its load."""

_MODULE = re.compile(r"dbapi:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class EngineKind(Record):
    """An engine that uncork reaches through a Python driver.

    `embedded`: it runs in the client's own process, on a folder of its own; otherwise it is a server that is
    already running. `extra` is the extra of uncork that installs `module`; empty if there is none. `explain`
    is the beginning of the statement that shows a plan; empty if there is none.
    """

    name: str
    title: str
    module: str
    extra: str
    embedded: bool
    explain: str


ENGINES: dict[str, EngineKind] = {
    kind.name: kind
    for kind in (
        EngineKind("duckdb", "DuckDB", "duckdb", "", True, "EXPLAIN ANALYZE"),
        EngineKind("clickhouse", "ClickHouse (chdb)", "chdb", "clickhouse", True, "EXPLAIN"),
        EngineKind("sqlite", "SQLite", "sqlite3", "", True, "EXPLAIN QUERY PLAN"),
        EngineKind("mysql", "MySQL or MariaDB", "pymysql", "mysql", False, "EXPLAIN FORMAT=JSON"),
    )
}
"""Engines by name, other than PostgreSQL."""


def engine_kind(name: str) -> EngineKind:
    """Return what is known of an engine; ``dbapi:MODULE`` is any module that follows PEP 249.

    Raises KeyError if there is no such engine. PostgreSQL has no kind, as no driver sends its load.
    """
    if name in ENGINES:
        return ENGINES[name]
    if not _MODULE.fullmatch(name):
        raise KeyError(name)
    module = name.removeprefix("dbapi:")
    return EngineKind(name, module, module, "", False, "")


class EngineOverhead(Record):
    """The time of a statement that does nothing, sent to an engine by the client that sends its trials.

    It is an upper bound of what the client adds to an operation, apart from converting rows to Python values.
    Times are nanoseconds an operation; the client's processor time is None if engine and client share a
    process (`shares_process`).
    """

    engine: str
    shares_process: bool
    operations: int
    p50_ns: int
    p99_ns: int
    client_cpu_ns: float | None
