"""The evidence that rules read: statements, where sessions' time goes, tables, and the catalogue. Pure.

Rules use only what is here, so that they work on a watched server, on logs, and on both together.
What is unknown is None or empty, and a rule that needs it finds nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from uncork.model.database.catalogue import Catalogue, ColumnFacts, PolicyFacts, TriggerBody
from uncork.model.database.finding import Bill
from uncork.model.database.index import IndexShape
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.model.database.sessions import SessionRates
from uncork.model.database.statement import Predicate, StatementShape
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database_transactions import InTransaction
from uncork.model.results.log import LogResult
from uncork.stats.sampled_time import mean_over_time

if TYPE_CHECKING:
    from uncork.model.results.database import (
        BlockerFacts,
        CounterFacts,
        DatabaseResult,
        ForeignKeyFacts,
        IndexFacts,
        TableFacts,
    )

_Item = TypeVar("_Item")
_Key = TypeVar("_Key")

WORK: Final = frozenset({CPU, "IO", "IPC", "LWLock", "BufferPin"})
"""Wait classes in which a statement does its own work, or waits for blocks and helper processes."""
_HOUR_S: Final = 3600.0
_BLOCK_BYTES: Final = 8192
_WAL_LOCKS: Final = frozenset({"walwrite", "walbufmapping", "walinsert"})
_WAL_FILES: Final = ("walwrite", "walsync", "walinit")
_NOT_UNDERSTOOD: Final = StatementShape("")
_SIZE: Final = re.compile(r"(\d+)\s*(B|kB|MB|GB|TB)")
MEMORY_UNITS: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
"""PostgreSQL's units of memory are powers of 1024."""
_CALLS: Final = 20
_PER_S: Final = 0.5
"""Total calls, and calls per second, from which on a statement is part of the application's
traffic. A statement that runs less often is a report or a job: nobody waits for it, so it may scan
a whole table, sort on disk and be compiled."""
_FEW_CALLS: Final = 5
_TOGETHER: Final = 2.0
"""Calls, and sessions that are busy with a statement on average, from which on it is traffic even
if each call takes so long that there are few: a report or a job runs in one session."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The time of sessions in one place: what they ran, what they waited for, and who they were.

    `wait_class` is the class of the wait event, `CPU` while working and `IDLE` while idle in
    transaction. `batches` are the average numbers of sessions there in equal parts of the watch.
    """

    template: int | None
    wait_class: str
    wait_event: str
    application: str
    user: str
    batches: tuple[float, ...]

    @property
    def sessions(self) -> float:
        """The average number of sessions over the whole watch."""
        return sum(self.batches) / len(self.batches) if self.batches else 0.0

    @property
    def waits_for_wal(self) -> bool:
        """Whether the time is spent waiting until WAL is inserted, written or flushed.

        PostgreSQL 17 renamed the events: WALSync became WalSync.
        """
        event = self.wait_event.lower()
        if self.wait_class == "LWLock":
            return event in _WAL_LOCKS
        return self.wait_class == "IO" and event.startswith(_WAL_FILES)


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Return the items of each key, in their order, the key of the first item first."""
    found: dict[_Key, list[_Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def waits_for(wait_class: str, *events: str) -> Callable[[Piece], bool]:
    """Return whether a piece of time is spent waiting for one of these events."""
    return lambda piece: piece.wait_class == wait_class and piece.wait_event in events


def known_shape(shape: StatementShape | None) -> Callable[[], StatementShape | None]:
    """Return the `shape_of` of a statement that has been taken apart."""
    return lambda: shape


@dataclass(frozen=True, slots=True)
class Statement:
    """One template with what was counted of it during `seconds`; what nobody counted is None.

    `text` is the template (``?`` for values), `sql` the statement in pg_stat_statements (``$1``), empty if
    unknown. `mean_ns` is the mean execution time of a call. `rows`, `blocks` (shared buffers hit and read),
    `blocks_read` and the sizes in bytes are totals. `nested` is true if it ran within functions only.
    `assigned` are the constants that an UPDATE assigns to columns, None for NULL, in each text of it that
    sessions sent; a text that assigns anything else has none. `compared` are the constants with which all
    texts of it compare columns. `repeated` are the updates of a log that assigned a row the values which it
    had been given before, and all updates that the log was read for. `role` is the role that ran it most,
    empty if unknown. `policies` add their conditions to it for that role; `shape` has these conditions, and
    plans that lack them are left out of `plans`. `shape_of` takes the statement apart, at once or when a rule
    first needs it; None if that is impossible.
    """

    number: int
    text: str
    sql: str = ""
    identity: str | None = None
    calls: int | None = None
    mean_ns: float | None = None
    rows: int | None = None
    blocks: int | None = None
    blocks_read: int | None = None
    temp_bytes: int | None = None
    wal_bytes: int | None = None
    jit_ns: float | None = None
    planning_ns: float | None = None
    nested: bool = False
    shape_of: Callable[[], StatementShape | None] = field(
        default=known_shape(None), repr=False, compare=False
    )
    plans: tuple[StatementPlan, ...] = ()
    assigned: tuple[Mapping[str, str | None], ...] = ()
    compared: Mapping[str, str] = field(default_factory=dict)
    repeated: tuple[int, int] | None = None
    role: str = ""
    policies: tuple[PolicyFacts, ...] = ()

    def a_call(self, total: float | None) -> float | None:
        """Return a total for each call; None if the total or the number of calls is unknown."""
        return total / self.calls if total is not None and self.calls else None

    @property
    def shape(self) -> StatementShape:
        """What the statement does, taken apart; without a kind if that is impossible."""
        return self.shape_of() or _NOT_UNDERSTOOD

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """What the statement compares, as far as its text is understood."""
        return self.shape.predicates

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables in the statement's text, each as often as it is there, as far as it is understood."""
        return tuple(use.name for use in self.shape.tables if use.kind == "table")

    def uses(self, table: str) -> bool:
        """Return whether the statement reads or changes a table, as far as its text is understood."""
        return any(use.name == table for use in self.shape.tables)

    def changes(self, table: str) -> bool:
        """Return whether the statement changes rows of a table, as far as its text is understood."""
        return any(use.changed and use.name == table for use in self.shape.tables)

    @property
    def plan(self) -> StatementPlan | None:
        """The plan that describes its execution best: executed, else with real values, else generic."""
        ranks = {"executed": 0, "seen": 1, "drawn": 2, "generic": 3}
        return min(self.plans, key=lambda plan: ranks[plan.source], default=None)

    @property
    def nodes(self) -> tuple[PlanNode, ...]:
        """The nodes of that plan, from the top; none without a plan."""
        return () if self.plan is None else tuple(self.plan.root.walk())

    @property
    def real_nodes(self) -> tuple[PlanNode, ...]:
        """The nodes of all plans with the values of calls."""
        plans = (plan for plan in self.plans if plan.source in ("seen", "executed"))
        return tuple(node for plan in plans for node in plan.root.walk())


@dataclass(frozen=True)
class Existing:
    """An index that exists: its facts, and the function that takes its definition apart."""

    facts: IndexFacts
    take_apart: Callable[[IndexFacts], IndexShape | None] = field(repr=False, compare=False)

    @cached_property
    def shape(self) -> IndexShape:
        """Its parts, taken apart when they are first needed; without keys if that is impossible."""
        return self.take_apart(self.facts) or IndexShape(self.facts.table, ())


@dataclass(frozen=True)
class Evidence:
    """Everything that rules may use. `seconds` is the length of the watch or of the log.

    `tables` and `indexes` are by the name of the table, as in `TableFacts`. `database` is the result of a
    watched server, for its counters, blockers and settings; None if there are only logs. `log` is the result
    of logs of the same server, None without any; `log_numbers` maps its templates to `statements`.
    `take_filter` takes the filter of a scan in a plan apart. `take_body` does so with the body of a function:
    it returns the SQL of each statement, and its shape with parameters for the function's variables.
    `turn_body` takes the body of a trigger for each row, the record that it reads (``new`` or ``old``) and
    its table; it returns the body for all rows of a statement, None if there is none.
    """

    seconds: float
    pieces: tuple[Piece, ...]
    statements: Mapping[int, Statement]
    tables: Mapping[str, TableFacts] = field(default_factory=dict)
    indexes: Mapping[str, tuple[Existing, ...]] = field(default_factory=dict)
    foreign_keys: tuple[ForeignKeyFacts, ...] = ()
    catalogue: Catalogue = field(default_factory=Catalogue)
    rates: SessionRates | None = None
    database: DatabaseResult | None = None
    log: LogResult | None = None
    log_numbers: Mapping[int, int] = field(default_factory=dict)
    take_filter: Callable[[PlanNode], tuple[Predicate, ...]] = field(
        default=lambda _node: (), repr=False, compare=False
    )
    take_body: Callable[[str], tuple[tuple[str, StatementShape], ...]] = field(
        default=lambda _source: (), repr=False, compare=False
    )
    turn_body: Callable[[str, str, str], TriggerBody | None] = field(
        default=lambda _source, _record, _table: None, repr=False, compare=False
    )

    @cached_property
    def sessions(self) -> float:
        """The average number of busy sessions."""
        return sum(piece.sessions for piece in self.pieces)

    @cached_property
    def major(self) -> int:
        """The server's major version; 0 if unknown."""
        found = None if self.database is None else re.search(r"\d+", self.database.server_version)
        return 0 if found is None else int(found[0])

    @property
    def is_standby(self) -> bool:
        """Whether the watched server replays the changes of another one."""
        return self.database is not None and self.database.standby

    @property
    def block_bytes(self) -> int:
        """The size of a block."""
        return _BLOCK_BYTES if self.database is None else self.database.block_bytes

    @cached_property
    def _by_template(self) -> Mapping[int | None, tuple[Piece, ...]]:
        pieces = grouped(self.pieces, lambda piece: piece.template)
        return {number: tuple(of_template) for number, of_template in pieces.items()}

    @cached_property
    def keys_of(self) -> Mapping[str, Sequence[ForeignKeyFacts]]:
        """The foreign keys of each table that has any, by its name."""
        return grouped(self.foreign_keys, lambda key: key.table)

    @property
    def transactions(self) -> tuple[InTransaction, ...]:
        """What sessions did within transactions, if the server was watched."""
        return () if self.database is None else self.database.transactions

    @property
    def blockers(self) -> tuple[BlockerFacts, ...]:
        """The transactions behind which sessions waited, if the server was watched."""
        return () if self.database is None else self.database.blockers

    @property
    def counters(self) -> tuple[CounterFacts, ...]:
        """The growth of the server's counters, if it was watched."""
        return () if self.database is None else self.database.counters

    def grown(self, *names: str) -> float:
        """Return how much counters grew during the watch, summed over names and objects; 0 if unknown."""
        return sum(counter.delta for counter in self.counters if counter.counter in names)

    def setting(self, name: str) -> str:
        """Return the value of a setting of the server; an empty string if it is unknown."""
        settings = () if self.database is None else self.database.settings
        reported = (setting.value for setting in settings if setting.name == name)
        return self.catalogue.setting(name) or next(reported, "")

    def setting_bytes(self, name: str) -> int | None:
        """Return a size among the server's settings in bytes; None if it is unknown."""
        match = _SIZE.fullmatch(self.setting(name).strip())
        return None if match is None else int(match[1]) * MEMORY_UNITS[match[2]]

    def busy(self, template: int, classes: Collection[str] = WORK) -> float:
        """Return how many sessions were in these classes of a template on average."""
        pieces = self._by_template.get(template, ())
        return sum(piece.sessions for piece in pieces if piece.wait_class in classes)

    def all_of(self, template: int) -> float:
        """Return how many sessions were busy with a template on average, whatever they waited for."""
        return sum(piece.sessions for piece in self._by_template.get(template, ()))

    def executing(self, template: int) -> float:
        """Return how many sessions executed a template on average; a session idle after it does not count."""
        return sum(piece.sessions for piece in self.pieces_of(template) if piece.wait_class != IDLE)

    def pieces_of(self, template: int) -> tuple[Piece, ...]:
        """Return the pieces of time of a template."""
        return self._by_template.get(template, ())

    def sessions_where(self, matches: Callable[[Piece], bool]) -> dict[int, float]:
        """Return how many sessions were in matching pieces of each template on average, the most first."""
        found: dict[int, float] = {}
        for piece in filter(matches, self.pieces):
            if piece.template is not None:
                found[piece.template] = found.get(piece.template, 0.0) + piece.sessions
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def sessions_in(self, matches: Callable[[Piece], bool]) -> float:
        """Return how many sessions were in matching pieces on average."""
        return sum(piece.sessions for piece in self.pieces if matches(piece))

    def of_class(self, wait_class: str) -> float:
        """Return how many sessions were in a wait class on average."""
        return self.sessions_in(lambda piece: piece.wait_class == wait_class)

    def part_of_class(self, wait_class: str, sessions: float) -> float:
        """Return a number of sessions as a fraction of those in a wait class, 0 to 1."""
        whole = self.of_class(wait_class)
        return min(1.0, sessions / whole) if whole else 0.0

    def share(self, sessions: float) -> float:
        """Return a number of sessions as a fraction of all busy sessions."""
        return min(1.0, sessions / self.sessions) if self.sessions else 0.0

    def bill(self, part: Callable[[Piece], float]) -> Bill:
        """Return what a finding costs: `part` is the fraction of each piece of time that it causes."""
        return self._bill((part(piece), piece) for piece in self.pieces)

    def bill_of(
        self,
        parts: Mapping[int, float] | Collection[int | None],
        classes: Collection[str] = WORK,
        *,
        without_wal: Collection[int] = (),
        application: str | None = None,
    ) -> Bill:
        """Return the bill of templates: all of their time in these classes, or the given fractions of it.

        Waits for WAL do not count for templates in `without_wal`. With `application`, only its time counts.
        """
        fractions = parts if isinstance(parts, Mapping) else dict.fromkeys(parts, 1.0)
        return self._bill(
            (fraction, piece)
            for number, fraction in fractions.items()
            for piece in self._by_template.get(number, ())
            if piece.wait_class in classes and application in (None, piece.application)
            if not (piece.waits_for_wal and number in without_wal)
        )

    def _bill(self, parts: Iterable[tuple[float, Piece]]) -> Bill:
        batches: list[float] = []
        for fraction, piece in parts:
            if fraction:
                batches = batches or [0.0] * len(piece.batches)
                batches = [
                    value + fraction * more for value, more in zip(batches, piece.batches, strict=True)
                ]
        mean = mean_over_time(batches)
        share = self.share(mean.mean)
        high = mean.high * _HOUR_S if math.isfinite(mean.high) else None
        return Bill(mean.mean * _HOUR_S, mean.low * _HOUR_S, high, share)

    def bill_of_seconds(self, seconds: float) -> Bill:
        """Return the bill of so many seconds in the whole watch or log; nothing is known of its interval."""
        rate = seconds / self.seconds
        return Bill(rate * _HOUR_S, 0.0, None, self.share(rate))

    def bill_of_waiting(self, wait_class: str, sessions: float) -> Bill:
        """Return the bill of so many of the sessions in a wait class."""
        part = self.part_of_class(wait_class, sessions)
        return self.bill(lambda piece: part if piece.wait_class == wait_class else 0.0)

    def statement(self, number: int | None) -> Statement | None:
        """Return the statement with a number; None if there is none."""
        return None if number is None else self.statements.get(number)

    def chosen(self, numbers: Iterable[int | None]) -> list[Statement]:
        """Return the statements with these numbers, in their order; unknown ones are left out."""
        found = map(self.statement, numbers)
        return [statement for statement in found if statement is not None]

    def costliest(self) -> Iterator[Statement]:
        """Yield the statements, those with most working time first."""
        yield from self._ranked

    @cached_property
    def _ranked(self) -> Sequence[Statement]:
        return sorted(
            self.statements.values(), key=lambda statement: (-self.busy(statement.number), statement.number)
        )

    def by_cost(self, parts: Mapping[int, float]) -> list[Statement]:
        """Return statements by what fractions of their working time cost, the most first."""
        numbers = sorted(parts, key=lambda number: -parts[number] * self.busy(number))
        return self.chosen(numbers)

    def is_traffic(self, statement: Statement) -> bool:
        """Return whether a statement is called often, or executed by several sessions at once."""
        calls = statement.calls or 0
        often = calls >= _CALLS and calls / self.seconds >= _PER_S
        return often or (calls >= _FEW_CALLS and self.all_of(statement.number) >= _TOGETHER)

    def rows(self, table: str) -> float:
        """Return a table's number of rows, as the planner or else the counters estimate it; 0 if unknown."""
        facts = self.tables.get(table)
        if facts is None:
            return 0.0
        return float(facts.live or 0) if facts.rows is None else max(0.0, facts.rows)

    def index_shapes(self, table: str) -> list[IndexShape]:
        """Return the valid indexes of a table whose definitions are known."""
        valid = (index for index in self.indexes.get(table, ()) if index.facts.warning != "invalid")
        return [index.shape for index in valid if index.shape.keys]

    def indexed(self, table: str, column: str, *, completely: bool = False) -> bool:
        """Return whether an index begins with a column; `completely` requires one without a condition."""
        return any(
            index.shape.columns[:1] == (column,) and not (completely and index.shape.predicate)
            for index in self.indexes.get(table, ())
        )

    def options(self, table: str) -> Mapping[str, str]:
        """Return the storage parameters that a table has set."""
        options = self.catalogue.options.get(table)
        return {} if options is None else options.options

    def column(self, table: str, name: str) -> ColumnFacts | None:
        """Return a column of a table; None if it is unknown."""
        return self.catalogue.column(table, name)

    def distinct(self, table: str, name: str) -> float | None:
        """Return the estimated number of distinct values of a column; None if it was never analysed."""
        column = self.column(table, name)
        if column is None or column.distinct is None:
            return None
        return -column.distinct * self.rows(table) if column.distinct < 0 else column.distinct
