"""What sessions did between two snapshots, by the counters of the server."""

from __future__ import annotations

from uncork.model.records import Record


class SessionRates(Record):
    """Events per second in the watched database; what the server does not count is None.

    `opened` are new sessions (PostgreSQL 14 and later), `abandoned`, `fatal` and `killed` are sessions that
    ended because their client was lost, by an error, or by an operator. `idle_share` is the part of the open
    sessions' busy time that was idle in transaction, 0 to 1.
    """

    commits: float
    rollbacks: float
    opened: float | None = None
    abandoned: float | None = None
    fatal: float | None = None
    killed: float | None = None
    deadlocks: float = 0.0
    temp_files: float = 0.0
    temp_bytes: float = 0.0
    idle_share: float | None = None
