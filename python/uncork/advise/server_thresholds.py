"""From which cost on a watched server's finding is worth a recommendation, and why from there.

Every server waits for something: for the log when it commits, for a row when two want it, for its client. A
wait is no fault. A finding is recommended only if its removal would save a part of the time that users
notice, or a size that somebody pays for.
"""

from __future__ import annotations

from typing import Final

LEAST_SHARE: Final = 0.10
"""Part of the busy time. Removing less than a tenth is lost in the variation from one minute to the next."""
LEAST_SESSIONS: Final = 0.05
"""Sessions on average. A server that is busy for less than a second in twenty has nothing to gain."""

# ---- locks ----

LONG_LOCK_NS: Final = 500_000_000
"""A transaction that others wait behind: twice its mean age when it was sampled. Users notice half a second;
a commit to a slow disk takes a tenth."""
SHORT_LOCK_SHARE: Final = 0.5
"""Part of the busy time spent behind short transactions. Taking turns is what row locks are for; from half
on, the queue costs more than the work, and removing it could double the throughput."""
FORGOTTEN_IDLE_NS: Final = 1_000_000_000
"""A pause of a transaction that others wait behind. A client that goes on working sends its next statement
within milliseconds; a second of silence is a person, a remote call or a bug."""

# ---- transactions that hold VACUUM back ----

OLD_IDLE_NS: Final = 60_000_000_000
"""A pause of a transaction that blocks nobody. Autovacuum looks once a minute (autovacuum_naptime): what is
shorter delays it by one round at most."""
OLD_HELD: Final = 10_000
"""Transactions begun since. With fewer, what VACUUM cannot remove is too little to slow a scan."""

# ---- statements one by one ----

SHORT_GAP_NS: Final = 20_000_000
"""Time to the next statement of a loop. A round trip takes up to some milliseconds in a data centre; a client
that takes longer does something else in between."""
LOOP_STATEMENTS: Final = 50
"""Executions of one template in a transaction. A transaction written by hand has a dozen statements; fifty of
the same come from a loop."""
PAUSES_TOO_LONG: Final = 10
"""Pauses are sampled too long by up to so many times: 0.05 ms, on one machine, as 0.3 to 0.5 ms."""
LOOP_SAMPLES: Final = 5
"""Samples that an estimate of pauses needs."""

# ---- scans, and statements in general ----

REPEATED_CALLS: Final = 20
REPEATED_PER_S: Final = 0.5
"""Calls in all and a second from which on a statement is part of the application's traffic. What runs less
often is a report or a job: it may read a table whole, sort on disk and be compiled, and nobody waits for
it."""
LARGE_TABLE_ROWS: Final = 10_000
"""Rows. A smaller table is read whole within a millisecond or two."""
SELECTIVE: Final = 0.05
"""Part of a table's rows up to which an index beats reading all of it, by PostgreSQL's own costs."""
SELECTIVE_CALLS: Final = 5
"""Calls that show a statement to return few rows each time, by chance no more."""
READS_WHOLE: Final = 0.5
"""Blocks a call, as part of the table's, from which on it read the table and not an index."""
SLOW_NS: Final = 100_000_000
SLOW_SHARE: Final = 0.5
"""Mean time of a repeated statement, and its part of the busy time, from which on it is worth a look by
itself: users notice a tenth of a second."""
SPILL_BYTES: Final = 1_000_000
SPILL_SHARE: Final = 0.2
"""Temporary files a call, and the statement's part of the busy time: a sort in memory is about twice as fast,
so that a tenth of all time can be saved from there on."""

# ---- commits of single rows ----

ROW_COMMIT_SHARE: Final = 0.3
"""Part of the busy time of sessions that only insert single rows. Fewer are an event log beside the real
work."""
LOG_SHARE: Final = 0.5
"""Part of their time in which they wait for the log: from half on, larger transactions make it at least twice
as fast."""

# ---- space ----

BLOAT_PART: Final = 0.5
BLOAT_BYTES: Final = 64 << 20
"""Space left empty, as part of the table and in bytes. A table that is updated needs some room for its next
versions, a fifth with autovacuum's defaults; rewriting one needs a lock, which a few megabytes are not
worth."""
DEAD_PART: Final = 0.2
"""Dead rows as part of all: autovacuum_vacuum_scale_factor. Up to there autovacuum leaves them on purpose."""
DEAD_ROWS: Final = 10_000
VACUUM_LATE_NS: Final = 600_000_000_000
"""Time since the last vacuum of a table with more dead rows than twice that: ten of autovacuum's rounds
(autovacuum_naptime). Until then it is its turn, not a fault."""

# ---- the whole server ----

JIT_SHARE: Final = 0.10
"""Part of the busy time spent compiling repeated statements: as any other."""
EARLY_CHECKPOINTS: Final = 3
"""Checkpoints that WAL forced within one watch. CREATE DATABASE, a backup or a person asks for one too."""
CHECKPOINT_PART: Final = 0.25
"""WAL between them as part of max_wal_size: they come at about half of it, so less was asked for
otherwise."""
FULL_PAGES: Final = 0.5
"""Part of the WAL that is full-page images, which rarer checkpoints save."""
