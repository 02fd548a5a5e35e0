"""The result of watching a server, as in the report and the JSON document.

A *session* is a client's connection. It is *busy* while it is active or idle in transaction. The average
number of busy sessions is their time divided by the duration of the watch, so that parts add up. A *sample*
is one look at all sessions. A session that is active and waits for nothing is on a processor, or ready for
one: the server does not report which. Processes that serve no client (parallel workers, autovacuum,
checkpointer) are listed separately.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from uncork.model.database.finding import Finding
from uncork.model.database.missing import HiddenWork, Missing, Unplanned
from uncork.model.database.plan import PlanSource
from uncork.model.records import Record
from uncork.model.results.costly_parts import CostlyPart
from uncork.model.results.database_transactions import HorizonHolder, InTransaction, RowWriter
from uncork.model.stored_run import RunRecord
from uncork.model.system import SystemUse

DATABASE_RESULT_VERSION = 1
IDLE_TEMPLATE: Final = -2
"""The number of the row of sessions that are idle in a transaction, among templates."""


class DatabaseRunFacts(RunRecord):
    """Which run this is and how it went. `server` is its address, without the password."""

    server: str
    reproduce: str
    uncork_version: str


class WatchFacts(Record):
    """How a server was watched, and what that cost.

    `samples` were taken; `missed` were due but skipped, because the one before took too long. `longest_ns` is
    the longest time between two samples. `answer_ns` is the mean time to an answer, `client_cpu_ns` the
    processor time of uncork, `server_ns` the time of its statements on the server (None without
    pg_stat_statements), both while sampling. `blockers_asked` is how often uncork asked the server who blocks
    a session. `hidden` is the average number of sessions of other roles whose state this role may not see.
    `round_trip_ns` is the shortest time of an empty statement from here, after the watch.
    """

    begun_us: int
    ended_us: int
    rate_hz: float
    samples: int
    missed: int
    longest_ns: int
    answer_ns: float
    client_cpu_ns: int
    server_ns: float | None
    blockers_asked: int
    hidden: float
    round_trip_ns: float | None = None


class TimeNode(Record):
    """A part of the time of all busy sessions; its children add up to it.

    `sessions` is how many were in it on average, `share` of the whole tree, 0 to 1. `template` numbers it if
    it is one.
    """

    kind: Literal["all", "process", "class", "event", "template", "application", "others"]
    name: str
    sessions: float
    share: float
    template: int | None
    children: tuple[TimeNode, ...]


class ActivityLayer(Record):
    """The average number of sessions of one class, or with one name, in each step of time."""

    name: str
    sessions: tuple[float, ...]


class History(Record):
    """Busy sessions over time by class, the largest first; the first step begins at `start_us`."""

    start_us: int
    step_s: int
    layers: tuple[ActivityLayer, ...]


class Busiest(Record):
    """The busiest `length_s` seconds of a watch, from `start_us` on: busy sessions on average."""

    start_us: int
    length_s: int
    sessions: float


class StatementFacts(Record):
    """What pg_stat_statements counted of a template between the snapshots.

    Blocks have the server's block size. A metric that the server or its extension does not count is None.
    `squares_ns2` is the sum of the squares of the execution times.
    """

    calls: int
    execution_ns: float
    plans: int
    planning_ns: float
    rows: int
    shared_hit: int
    shared_read: int
    shared_dirtied: int
    shared_written: int
    temp_read: int
    temp_written: int
    read_ns: float
    write_ns: float
    wal_records: int
    wal_fpi: int
    wal_bytes: int
    jit_functions: int | None
    jit_ns: float | None
    squares_ns2: float | None = None

    def mean_error(self) -> float | None:
        """Return the standard error of the logarithm of the mean time of a call, if calls are independent.

        None if it is unknown: there are fewer than two calls, they took no time, or the run was stored
        without the squares of their times.
        """
        if self.squares_ns2 is None or self.calls < 2 or self.execution_ns <= 0:
            return None
        mean = self.execution_ns / self.calls
        variance = max(0.0, self.squares_ns2 / self.calls - mean * mean)
        return math.sqrt(variance / (self.calls - 1)) / mean


class KernelFacts(Record):
    """What the kernel counted for a template between the snapshots, from pg_stat_kcache.

    Processor times include those of parallel workers, so they can exceed the execution time. `read_bytes`
    came from disks, not from the page cache.
    """

    user_ns: float
    system_ns: float
    read_bytes: int
    written_bytes: int


class Usage(Record):
    """The average number of sessions with a name (an application, a class), and their share of the whole."""

    name: str
    sessions: float
    share: float


class CountedTime(Record):
    """What pg_stat_statements counted between its snapshots, without statements within functions.

    `planning_ns` is None unless the server counts planning.
    """

    begun_us: int
    ended_us: int
    calls: int
    planning_ns: float | None
    execution_ns: float


StepName = Literal["plan", "execute", "commit", "idle in transaction", "unknown"]


class TimeStep(Record):
    """Busy sessions in one step of running statements, on average, and their share of all busy sessions.

    `plan` and `execute` are counted by pg_stat_statements, the other steps come from the samples. `commit` is
    the wait for the write-ahead log to be written, which pg_stat_statements does not count.
    """

    name: StepName
    sessions: float
    share: float


class RouteActivity(Record):
    """The average number of sessions busy for a route, and their share of all busy sessions.

    `name` is what comments in statements name: a route, or controller and action; "" if they name none.
    `templates` are sessions by template, the most first, with their share of the route's.
    """

    name: str
    sessions: float
    share: float
    templates: tuple[Usage, ...]


class TemplateActivity(Record):
    """One template: the average number of `sessions` busy with it, in which classes, for which applications.

    `share` is its share of all busy sessions' time; `execution_share` that of the time in pg_stat_statements.
    `kernel` is None unless pg_stat_kcache counts on the server.
    """

    number: int
    text: str
    identity: str | None
    sessions: float
    share: float
    classes: tuple[Usage, ...]
    applications: tuple[Usage, ...]
    statements: StatementFacts | None
    execution_share: float
    kernel: KernelFacts | None = None


class WaiterFacts(Record):
    """Blocked sessions: their average number, and the kind of lock that they wait for (`event`)."""

    application: str
    template: int | None
    text: str
    event: str
    sessions: float


class BlockerFacts(Record):
    """A session at the root of others' waiting: it waits for no lock.

    `state` is the class it was in, `sessions` the average number it blocked, directly or through others,
    `most` in the worst sample, `chain` the longest chain, `transaction_ns` how long its transaction had been
    open at most and `transaction_mean_ns` on average, `idle_ns` how long it waited for its client at most,
    `processes` how many sessions did so.
    """

    application: str
    user: str
    state: str
    template: int | None
    text: str
    sessions: float
    most: int
    chain: int
    transaction_ns: int | None
    transaction_mean_ns: float | None
    idle_ns: int | None
    processes: int
    waiters: tuple[WaiterFacts, ...]


class TableFacts(Record):
    """One table. Counts cover the time between the snapshots; `rows`, `live` and `dead` are states.

    `bytes` excludes indexes; for a partitioned table it includes all partitions; None if it is unknown.
    `bloat_bytes` estimates the space of rows that are gone, which is the most that VACUUM FULL would free;
    None unless the table's statistics are fresh. `whole_reads` is how often sequential scans read all rows,
    computed from the rows they read: `seq_scans` counts each parallel worker as a scan of its own. `modified`
    counts rows changed since the last ANALYZE. `autovacuum` is False if the table turns it off.
    """

    oid: int
    name: str
    kind: str
    bytes: int | None
    index_bytes: int
    rows: float | None
    live: int | None
    dead: int | None
    seq_scans: int
    seq_rows: int
    index_scans: int
    index_rows: int
    inserted: int
    updated: int
    hot_updated: int
    deleted: int
    heap_read: int
    heap_hit: int
    vacuumed_us: int | None
    analysed_us: int | None
    frozen_age: int | None
    bloat_bytes: int | None
    island: int | None
    whole_reads: float | None
    modified: int | None
    autovacuum: bool | None


class IndexFacts(Record):
    """One index. `scans` counts between the snapshots, `scans_ever` since the last reset.

    `warning` says why it may not be worth its upkeep: unused, a duplicate of `same_as`, covered by it (whose
    first columns are the same), or invalid.
    """

    oid: int
    name: str
    table: str
    definition: str
    bytes: int | None
    scans: int
    scans_ever: int | None
    bloat_bytes: int | None
    warning: Literal["", "invalid", "duplicate", "covered", "unused"]
    same_as: str


class ForeignKeyFacts(Record):
    """A foreign key from `table` to `referred`. `indexed` says whether an index begins with its columns.

    `rows_each` estimates how many rows refer to one row that is referred to, on average, and `most_each` how
    many refer to the row with the most. They come from ANALYZE, and are None without it, or if the key has
    several columns.
    """

    name: str
    table: str
    table_oid: int
    referred: str
    referred_oid: int
    columns: str
    indexed: bool
    rows_each: float | None = None
    most_each: float | None = None


class Island(Record):
    """Tables that foreign keys connect, the largest first; `bytes` with their indexes."""

    number: int
    tables: tuple[str, ...]
    bytes: int


class SettingFacts(Record):
    """A setting that differs from PostgreSQL's default."""

    name: str
    value: str
    default: str
    source: str


class PlanFacts(Record):
    """The plan of a template's statement, in PostgreSQL's text format.

    If the server did not plan it, `text` is empty and `reason` is the server's. `source` says which values
    its parameters had: none (generic), those of a session (seen), or values from statistics (drawn).
    `plan_hash` is equal for plans with the same nodes, tables and indexes; None without a plan.
    """

    template: int
    text: str
    reason: str
    source: PlanSource = "generic"
    plan_hash: str | None = None


class CounterFacts(Record):
    """The growth of one of the server's counters between the snapshots; times in milliseconds."""

    view: str
    object: str
    counter: str
    delta: float


class DatabaseResult(Record):
    """The result of watching a server.

    `tree` holds the time of busy sessions, `background` that of processes that serve no client. `templates`
    are in descending order of the time of busy sessions, then of executions. `counted_ns` is the time of all
    statements that ended, from pg_stat_statements; `own_active` is the average number of active sessions by
    the server's own count (PostgreSQL 14 and later), to compare with the samples. `transactions` and
    `writers` describe what sessions do within transactions. `horizons` is what kept dead rows from VACUUM at
    the end, the oldest first. `connections` is the number of connections to all databases, without uncork's
    own, in the snapshot that had more. `findings` are worth changing, the costliest
    first; a healthy server has none.
    `busiest` is None if the watch was short. `plans` has one plan of each template with the most time.
    `routes` is empty if no comment names one. `steps` add up to `tree`; empty without pg_stat_statements.
    `kernel_whole_ns` is the duration below which pg_stat_kcache counts an execution as user time as a whole;
    None without it. `counted` is what the steps `plan` and `execute` come from. `hidden` is None if the role
    may see the work of all roles. `unplanned` are the statements without a plan, by reason. `costliest`
    are the statements and waits with the most time, and what is known of each. All times and shares are of
    the watched database; only `databases` has the others.
    """

    run: DatabaseRunFacts
    answer: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    server_version: str
    database: str
    role: str
    standby: bool
    block_bytes: int
    watch: WatchFacts
    tree: TimeNode
    background: TimeNode
    history: History
    own_active: float | None
    own_idle: float | None
    counted_ns: float | None
    templates: tuple[TemplateActivity, ...]
    templates_more: int
    applications: tuple[Usage, ...]
    users: tuple[Usage, ...]
    databases: tuple[Usage, ...]
    blockers: tuple[BlockerFacts, ...]
    counters: tuple[CounterFacts, ...]
    resets: tuple[str, ...]
    tables: tuple[TableFacts, ...]
    tables_more: int
    indexes: tuple[IndexFacts, ...]
    counted_since_us: int | None
    foreign_keys: tuple[ForeignKeyFacts, ...]
    islands: tuple[Island, ...]
    settings: tuple[SettingFacts, ...]
    missing: tuple[Missing, ...]
    transactions: tuple[InTransaction, ...] = ()
    writers: tuple[RowWriter, ...] = ()
    horizons: tuple[HorizonHolder, ...] = ()
    connections: int | None = None
    findings: tuple[Finding, ...] = ()
    system: SystemUse | None = None
    busiest: Busiest | None = None
    plans: tuple[PlanFacts, ...] = ()
    routes: tuple[RouteActivity, ...] = ()
    steps: tuple[TimeStep, ...] = ()
    kernel_whole_ns: float | None = None
    counted: CountedTime | None = None
    hidden: HiddenWork | None = None
    unplanned: tuple[Unplanned, ...] = ()
    costliest: tuple[CostlyPart, ...] = ()
    version: int = DATABASE_RESULT_VERSION
