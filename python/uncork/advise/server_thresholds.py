"""Thresholds above which a finding on a watched server is reported, and the reason for each.

Every server waits for something: for the log when it commits, for a row that two sessions want, for its
client. Waiting is not a fault. A finding is reported only if fixing it would save time that users notice, or
space that somebody pays for.
"""

from __future__ import annotations

from typing import Final

LEAST_SHARE: Final = 0.10
"""Fraction of the busy time. Saving less than a tenth is lost in the variation from one minute to the
next."""
LEAST_SESSIONS: Final = 0.05
"""Sessions on average. A server that is busy for less than a second in twenty has nothing to gain."""

# ---- locks ----

LONG_LOCK_NS: Final = 500_000_000
"""Length of a long transaction that others wait behind: twice its mean age when it was sampled. Users notice
half a second; a commit to a slow disk takes a tenth of a second."""
SHORT_LOCK_SHARE: Final = 0.5
"""Fraction of the busy time spent waiting behind short transactions. Row locks exist so that sessions take
turns; from half on, the queue costs more than the work, and removing it could double the throughput."""
FORGOTTEN_IDLE_NS: Final = 1_000_000_000
"""Pause of a forgotten transaction that others wait behind. A working client sends its next statement within
milliseconds; a second of silence is a person, a remote call or a bug."""

# ---- transactions that hold VACUUM back ----

OLD_IDLE_NS: Final = 60_000_000_000
"""Pause of a forgotten transaction that blocks nobody. Autovacuum runs once a minute (autovacuum_naptime): a
shorter pause delays it by at most one round."""
OLD_HELD: Final = 10_000
"""Transactions begun since then. With fewer, VACUUM leaves too few dead rows behind to slow a scan."""

# ---- statements one by one ----

SHORT_GAP_NS: Final = 20_000_000
"""Longest pause between two statements of a loop. A round trip takes a few milliseconds in a data centre; a
client that takes longer does something else in between."""
LOOP_STATEMENTS: Final = 50
"""Fewest executions of one template in a transaction that indicate a loop. A transaction written by hand has
a dozen statements."""
LOOP_IN_TURN: Final = 10
"""Fewest executions of each template of a loop that sends several in turn, in a transaction and for each
BEGIN: a transaction written by hand executes each of its statements once or twice."""
LOOP_LEAST_CALLS: Final = 2
"""Calls for each BEGIN of the only application that uses transactions, below which its templates are in no
loop, whatever a few samples suggest."""
PAUSES_TOO_LONG: Final = 10
"""Factor by which sampling can overestimate pauses: one machine showed pauses of 0.05 ms as 0.3 to 0.5 ms."""
LOOP_SAMPLES: Final = 5
"""Fewest samples for an estimate of pauses."""

# ---- scans, and statements in general ----

REPEATED_CALLS: Final = 20
REPEATED_PER_S: Final = 0.5
"""Total calls, and calls per second, from which on a statement is part of the application's traffic. A
statement that runs less often is a report or a job: nobody waits for it, so it may scan a whole table, sort
on disk and be compiled."""
TOGETHER: Final = 2.0
"""Sessions that are busy with a statement on average, from which on it is traffic even if each call takes so
long that there are few: a report or a job runs in one session."""
AGGREGATED: Final = 0.2
"""Fraction of a table's rows that pass the filter of an aggregating query, by its plan, up to which an index
helps. Above it, the query needs most of the table."""
LARGE_TABLE_ROWS: Final = 10_000
"""Rows of a large table. A full scan of a smaller one takes a millisecond or two."""
SELECTIVE: Final = 0.05
"""Fraction of a table's rows up to which an index beats a full scan, by PostgreSQL's own cost model."""
SELECTIVE_CALLS: Final = 5
"""Fewest calls that show a statement to return few rows each time, and not by chance."""
READS_WHOLE: Final = 0.5
"""Blocks per call, as a fraction of the table's blocks, from which on a call scanned the table, not an
index."""
SLOW_NS: Final = 100_000_000
SLOW_SHARE: Final = 0.5
"""Mean time of a repeated statement, and its fraction of the busy time, from which on it is a finding without
any other fault: users notice a tenth of a second."""
WAITS: Final = 0.5
"""Fraction of the working time of a slow writing statement on CPU below which it waits (for the write-ahead
log, for blocks, for internal locks): EXPLAIN would show its plan, but not what it waits for."""
SPILL_BYTES: Final = 1_000_000
SPILL_SHARE: Final = 0.2
"""Temporary files per call, and the statement's fraction of the busy time. A sort in memory is about twice as
fast, so from there on a tenth of all time can be saved."""

# ---- commits of single rows ----

ROW_COMMIT_SHARE: Final = 0.3
"""Fraction of the busy time of sessions that only insert single rows. Below it, they are an event log beside
the real work."""
LOG_SHARE: Final = 0.5
"""Fraction of their time in which they wait for the log. From half on, larger transactions make them at least
twice as fast."""

# ---- space ----

BLOAT_PART: Final = 0.5
BLOAT_BYTES: Final = 64 << 20
"""Empty space, as a fraction of the table and in bytes. An updated table needs room for new row versions, a
fifth with autovacuum's defaults. Rewriting a table needs a lock, which a few megabytes are not worth."""
DEAD_PART: Final = 0.2
"""Dead rows as a fraction of all rows: autovacuum_vacuum_scale_factor. Autovacuum tolerates this many."""
DEAD_ROWS: Final = 10_000
VACUUM_LATE_NS: Final = 600_000_000_000
"""Time since the last vacuum of a table with more than twice `DEAD_PART`: ten rounds of autovacuum
(autovacuum_naptime). Until then autovacuum is merely on its way."""

# ---- the whole server ----

JIT_SHARE: Final = 0.10
"""Fraction of the busy time spent compiling repeated statements: the same as for any finding."""
EARLY_CHECKPOINTS: Final = 3
"""Checkpoints forced within one watch. CREATE DATABASE, a backup or a person may also request one."""
CHECKPOINT_PART: Final = 0.25
"""WAL between two of them as a fraction of max_wal_size. WAL forces a checkpoint at about half of it, so with
less WAL something else requested the checkpoint."""
FULL_PAGES: Final = 0.5
"""Fraction of the WAL that is full-page images, which rarer checkpoints avoid."""
