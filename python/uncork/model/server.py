"""A server under test: where it is, what it did, how it planned, what it stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from uncork.model.engine import POSTGRESQL
from uncork.model.records import Record

LOAD_APPLICATION: Final = "uncork"
"""A connection that sends load or prepares data. This work is the user's own, so every report shows it."""
WATCH_APPLICATION: Final = "uncork watch"
"""A connection that only observes: samples, snapshots, short queries. Reports on the server leave it out."""


class Target(Record):
    """A database to send load to; `engine` names its kind (see `model.engine`).

    `connection` describes how to reach it, in the words of the load plan; it contains the password and is
    never stored or shown. `pid` is the postmaster's if its processes are visible here, and `cpu` is then a
    processor that generator and backends may share.
    """

    database: str
    connection: Mapping[str, object] = field(repr=False)
    pid: int | None = None
    cpu: int | None = None
    engine: str = POSTGRESQL


class Snapshot(Record):
    """The server's counters at one moment, for one database; None for what it does not report.

    `queries` counts the statements that clients sent and the server executed, BEGIN and COMMIT included.
    `updated` counts updated rows, and `hot_updated` those of them whose indexes stayed as they were (HOT: the
    new version of the row is on the same page); None also if nobody asked for them.
    """

    checkpoint: str
    autovacuum_workers: int
    shared_hit: int | None = None
    shared_read: int | None = None
    shared_dirtied: int | None = None
    temp_blocks: int | None = None
    wal_bytes: int | None = None
    wal_records: int | None = None
    queries: int | None = None
    updated: int | None = None
    hot_updated: int | None = None


class ExecutedPlan(Record):
    """The output of EXPLAIN (ANALYZE, BUFFERS) for one statement.

    `shape` is the tree of nodes with relations and conditions, without numbers, one node a line: two plans
    are alike if their shapes are equal. `buffers` counts shared blocks touched (hit and read).
    """

    statement: str
    text: str
    shape: str
    buffers: int | None
    execution_ns: float | None


class Relation(Record):
    """A table or index with its size on disk. `depth` is a B-tree's levels below its root, if known."""

    name: str
    kind: Literal["table", "index"]
    table: str
    bytes: int
    rows: float | None
    depth: int | None


def is_local(host: str) -> bool:
    """Say whether a host, or a folder of sockets, is on this machine, as far as its name tells."""
    return host.startswith(("/", "@", "127.")) or host in ("localhost", "::1")
