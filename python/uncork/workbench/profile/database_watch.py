"""Watch a server: take a snapshot, samples at regular times, and another snapshot."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from uncork.engines.host import memory_bytes
from uncork.engines.watch.connection import Look, ServerSnapshot, ServerWatch
from uncork.engines.watch.details import Details
from uncork.engines.watch.session import own_queries
from uncork.errors import ServerCrash
from uncork.load.sampler import Sampler
from uncork.model.system import SERVER, SystemSeries, Watch
from uncork.profile.activity import CLIENT, wait_class
from uncork.profile.deltas import Key, statement_deltas, statement_key
from uncork.profile.plans.without_values import statement_without_values
from uncork.profile.server_templates import TemplateBook, is_normalised, own_statements
from uncork.profile.statement_origin import origin
from uncork.workbench.profile.database_plans import (
    FoundCatalogue,
    catalogue_tables,
    find_catalogue,
    find_plans,
    find_used,
    plans_table,
    statement_settings,
    top_statements,
)
from uncork.workbench.signals import uninterrupted

if TYPE_CHECKING:
    import pyarrow as pa


# Modules that build tables are imported where they are needed: the first sample comes sooner.

Row = dict[str, Any]
Status = Literal["complete", "interrupted", "failed"]
_Change = tuple[Mapping[str, Any] | None, Mapping[str, Any]]
"""An entry of pg_stat_statements, before and after."""

_BLOCKERS_NS: Final = 500_000_000
"""The minimum time between queries for blockers, because each briefly stops the lock manager."""
_SHOW_NS: Final = 1_000_000_000
_TEXTS: Final = 12
_TIMES: Final = 24
"""Texts to keep of each statement, and how often to ask for them."""
_PARAMETER: Final = "$1"
_FLUSH: Final = 500
"""The number of samples after which rows are packed."""


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """A progress snapshot: the time elapsed, and busy sessions on average since the last one, by class."""

    elapsed_ns: int
    sessions: float
    classes: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Watched:
    """The result of watching: facts and tables to store, how it ended, and why if early (`trouble`)."""

    status: Status
    facts: dict[str, Any]
    tables: dict[str, pa.Table]
    trouble: str


@dataclass(slots=True)
class Samples:
    """The samples so far. Each row has the server's id of a statement, or the number of its template.

    `texts` has the first text of each statement by the server's id. `seen` has a few texts as the
    sessions sent them, with their values; if the server tells no ids, they get them after the
    watch. `known` are the ids whose texts are not needed again, and `sampled` counts the clients'
    sessions by database and id. Without `values`, no path of a request is kept. `due_ns` is when
    the next sample is due, after the beginning.
    """

    begun_ns: int
    begun_us: int
    book: TemplateBook = field(default_factory=TemplateBook)
    samples: list[Row] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    packed: list[pa.Table] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    seen: dict[int, list[str]] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    sampled: Counter[tuple[str, int]] = field(default_factory=Counter)
    missed: int = 0
    values: bool = True
    due_ns: int = 0
    longest_ns: int = 0
    cpu_ns: int = 0
    _asked: Counter[int] = field(default_factory=Counter)
    _without_id: dict[int, list[str]] = field(default_factory=dict)

    def add(self, look: Look, blockers: bool) -> None:
        """Add a sample."""
        number = len(self.samples)
        for row in look.rows:
            text, query_id = row.pop("text"), row["query_id"]
            if query_id is not None:
                if text:
                    self._keep(query_id, text)
                if row["backend"] == CLIENT:
                    self.sampled[row["database"] or "", query_id] += 1
            row["origin"] = origin(row.pop("comment"), paths=self.values)
            row["template"] = self.book.number(None, text) if query_id is None else None
            if row["template"] is not None:
                self._keep_without_id(row["template"], text)
            row["sample"] = number
        self.rows += look.rows
        middle = (look.begun_ns + look.ended_ns) // 2
        time_us = self.begun_us + (middle - self.begun_ns) // 1000
        asked = sum(row["wait_class"] == "Lock" for row in look.rows) if blockers else 0
        if self.samples:
            self.longest_ns = max(self.longest_ns, (time_us - self.samples[-1]["time_us"]) * 1000)
        self.samples.append(
            {
                "sample": number,
                "time_us": time_us,
                "query_ns": look.ended_ns - look.begun_ns,
                "hidden": look.hidden,
                "asked": asked,
                "blockers": blockers,
            }
        )
        if len(self.samples) % _FLUSH == 0:
            self.pack()

    def _keep(self, query_id: int, text: str) -> None:
        """Keep the text of a session's statement, if it differs from the earlier ones.

        A text with parameters is not asked for again, nor is any after 12 of them or 24 samples:
        each costs up to track_activity_query_size bytes.
        """
        self.texts.setdefault(query_id, text)
        kept = self.seen.setdefault(query_id, [])
        self._asked[query_id] += 1
        if text not in kept:
            kept.append(text)
        if len(kept) == _TEXTS or self._asked[query_id] == _TIMES or _PARAMETER in text:
            self.known.add(query_id)

    def _keep_without_id(self, template: int, text: str) -> None:
        """Keep the text of a statement by its template, if the server tells no id (PostgreSQL 13)."""
        kept = self._without_id.setdefault(template, [])
        if len(kept) < _TEXTS and text not in kept:
            kept.append(text)

    def find_ids(self, texts: Mapping[int, str]) -> None:
        """Give the texts of sessions the ids of pg_stat_statements whose `texts` have the same template.

        A session whose statement is just being parsed has no id either, so others may be known by their id.
        """
        if not self._without_id:
            return
        for query_id, text in texts.items():
            number = self.book.number(query_id, text)
            if number is not None and number in self._without_id:
                kept = self.seen.setdefault(query_id, [])
                more = [text for text in self._without_id.pop(number) if text not in kept]
                kept += more[: _TEXTS - len(kept)]

    def now_us(self) -> int:
        """Return the time in microseconds since 1970, on the same clock as the samples."""
        return self.begun_us + (time.monotonic_ns() - self.begun_ns) // 1000

    def pack(self) -> None:
        """Pack rows, to use less memory."""
        from uncork.store.tables import rows_table  # noqa: PLC0415

        self.packed.append(rows_table("database_activity", self.rows))
        self.rows = []

    def activity(self) -> pa.Table:
        """Return all rows, with templates for statements that have an id."""
        import pyarrow as pa  # noqa: PLC0415

        self.pack()
        table = pa.concat_tables(self.packed)
        numbers = [
            template if query_id is None else self.book.number(query_id, None)
            for query_id, template in zip(
                table["query_id"].to_pylist(), table["template"].to_pylist(), strict=True
            )
        ]
        place = table.column_names.index("template")
        return table.set_column(place, table.schema.field(place), pa.array(numbers, pa.int64()))


@dataclass(slots=True)
class LookedBack:
    """What was read after the watch, as far as the server did not go away before.

    `own` are the entries of pg_stat_statements that count uncork's own statements.
    """

    after: ServerSnapshot | None = None
    changed: Sequence[_Change] = ()
    texts: Mapping[int, str] = field(default_factory=dict)
    own: Collection[Key] = frozenset()
    plans: Sequence[Row] = ()
    catalogue: FoundCatalogue = field(default_factory=FoundCatalogue)


def next_tick(tick: int, elapsed_ns: int, period_ns: int) -> int:
    """Return the next tick after one that ended `elapsed_ns` after the start.

    Ticks are due at whole periods from the start, so that delays do not add up. A late tick is
    taken at once, unless the tick after it is due too; then it is missed.
    """
    return max(tick + 1, elapsed_ns // period_ns)


def watch(
    server: ServerWatch,
    seconds: float,
    rate_hz: float,
    show: Callable[[ProgressSnapshot], None] | None = None,
    *,
    ended: Callable[[], bool] = lambda: False,
    values: bool = True,
) -> Watched:
    """Watch a server for `seconds`, until Ctrl-C, or until `ended` returns True.

    `show` is called with a snapshot every second. If the server goes away, the samples so far are
    kept. Without `values`, what is stored contains no values of rows: not from the statistics of
    columns, nor from the texts, comments and plans of statements. Raises ServerCrash if the server
    goes away before the first sample.
    """
    server.begin_sampling()
    found = Samples(time.monotonic_ns(), time.time_ns() // 1000, values=values)
    period_ns = round(1e9 / rate_hz)
    # The first sample comes before everything else, and further ones whenever they are due.
    take_due(server, found, period_ns)
    due = partial(take_due, server, found, period_ns)
    facts: dict[str, Any] = {"server": server.facts()}
    before = server.snapshot(whole=False, between=due)
    last = LookedBack()
    system: SystemSeries | None = None
    postmaster = server.postmaster()
    here = postmaster is not None
    facts["system"] = {"server_here": here, "memory_bytes": memory_bytes() if here else None}
    server.begin_sampling()
    sampler = None if postmaster is None else Sampler([Watch(SERVER, postmaster, children=True)], memory=True)
    status: Status = "complete"
    trouble = ""
    trip_ns: float | None = None
    try:
        try:
            sample_sessions(server, found, round(seconds * 1e9), period_ns, show, ended=ended)
        except KeyboardInterrupt:
            status = "interrupted"
        ended_us = found.now_us()
        try:
            with uninterrupted():
                system = None if sampler is None else sampler.stop()
                look_back(server, facts["server"], before, found, last, values=values)
                trip_ns = server.round_trip_ns()
        except KeyboardInterrupt:
            status = "interrupted"  # the signal came after the block: nothing is missing
    except ServerCrash as error:
        if not found.samples:
            raise
        status, trouble, ended_us = "failed", str(error), found.samples[-1]["time_us"]
    for query_id, text in {**found.texts, **last.texts}.items():
        found.book.number(query_id, text)
    facts["trouble"] = trouble
    facts["watch"] = {
        "begun_us": found.begun_us,
        "ended_us": ended_us,
        "rate_hz": rate_hz,
        "missed": found.missed,
        "longest_ns": found.longest_ns,
        "client_cpu_ns": found.cpu_ns,
        "own_statements": sorted(last.own),
        "round_trip_ns": trip_ns,
    }
    facts["catalogue"] = last.catalogue.facts
    facts["snapshots"] = {
        name: {"begun_us": snapshot.begun_us, "ended_us": snapshot.ended_us, "failed": dict(snapshot.failed)}
        for name, snapshot in (("before", before), ("after", last.after))
        if snapshot is not None
    }
    if sampler is not None:
        system = sampler.stop() or system
    from uncork.store.system import system_tables  # noqa: PLC0415

    tables = {
        **_tables(found, before, last.after, last.changed, last.texts),
        "database_plans": plans_table(found.book, last.plans, values=values),
        "database_texts": texts_table(found.book, found.seen if values else {}, last.after),
        **catalogue_tables(last.catalogue),
        **system_tables([] if system is None else [({}, system)]),
    }
    return Watched(status, facts, tables, trouble)


def look_back(
    server: ServerWatch,
    server_facts: Mapping[str, Any],
    before: ServerSnapshot,
    found: Samples,
    last: LookedBack,
    *,
    values: bool,
    between: Callable[[], None] = lambda: None,
) -> None:
    """Read the second snapshot, the texts of statements, the catalogue and plans, into `last`.

    `server_facts` are what the server says of itself. `between` is called between the steps. Raises
    ServerCrash if the server goes away.
    """
    after = server.snapshot(whole=True, between=between)
    indexes = after.tables["database_indexes"]
    tables = dict(zip(indexes.column("oid"), indexes.column("table_oid"), strict=True))
    for snapshot in (before, after):
        snapshot.add_index_scans(tables)
    last.changed = _changed(before, after)
    details = Details()
    try:
        last.texts = server.texts({*(row["query_id"] for _, row in last.changed), *found.texts})
        last.own = own_statements(
            (row for _, row in last.changed),
            (server_facts["role_oid"], server_facts["database_oid"]),
            last.texts,
            own_queries(),
        )
        found.find_ids(last.texts)
        known = {**found.texts, **last.texts}
        top = top_statements(
            last.changed, server_facts["database"], known, last.own, found.sampled, found.seen
        )
        sampled = (*found.texts.values(), *found.book.texts)
        between()
        used = find_used(before, after, [candidate.text for candidate in top], sampled)
        details = server.details(after, [row["oid"] for row in used.tables.rows], between)
    finally:
        last.after = after.with_details(details, server_facts["block_size"])
    roles = {row["user"] for _, row in last.changed}
    last.catalogue = find_catalogue(server, before, last.after, used, roles, values=values)
    between()
    settings = statement_settings(last.changed, last.catalogue.tables["database_role_settings"])
    last.plans = find_plans(server, top, settings)


def take_due(server: ServerWatch, found: Samples, period_ns: int) -> None:
    """Take a sample if one is due, between other queries.

    Raises ServerCrash if the server goes away.
    """
    elapsed = time.monotonic_ns() - found.begun_ns
    if elapsed < found.due_ns:
        return
    look = server.look(found.known, blockers=True)
    if look is None:
        found.missed += 1
    else:
        found.add(look, blockers=True)
    found.missed += max(0, (elapsed - found.due_ns) // period_ns)
    found.due_ns = (elapsed // period_ns + 1) * period_ns


def sample_sessions(
    server: ServerWatch,
    found: Samples,
    length_ns: int,
    period_ns: int,
    show: Callable[[ProgressSnapshot], None] | None = None,
    *,
    ended: Callable[[], bool] = lambda: False,
) -> None:
    """Sample a server's sessions at regular times, for `length_ns` or until `ended` returns True.

    Raises ServerCrash if the server goes away.
    """
    cpu, tick, asked_ns, shown_ns = time.process_time_ns(), found.due_ns // period_ns, -_BLOCKERS_NS, 0
    recent: Counter[str] = Counter()
    looks = 0
    try:
        while tick * period_ns < length_ns and not ended():
            elapsed = time.monotonic_ns() - found.begun_ns
            if elapsed < tick * period_ns:
                time.sleep((tick * period_ns - elapsed) / 1e9)
                elapsed = time.monotonic_ns() - found.begun_ns
            blockers = elapsed - asked_ns >= _BLOCKERS_NS
            look = server.look(found.known, blockers=blockers)
            if look is None:
                found.missed += 1
            else:
                found.add(look, blockers)
                asked_ns = elapsed if blockers else asked_ns
                looks += 1
                recent.update(wait_class(row) for row in look.rows if row["backend"] == CLIENT)
            elapsed = time.monotonic_ns() - found.begun_ns
            if show is not None and looks and elapsed - shown_ns >= _SHOW_NS:
                classes = tuple((name, number / looks) for name, number in recent.most_common())
                show(ProgressSnapshot(elapsed, sum(recent.values()) / looks, classes))
                shown_ns, looks = elapsed, 0
                recent.clear()
            following = next_tick(tick, elapsed, period_ns)
            found.missed += following - tick - 1
            tick = following
        left = length_ns - (time.monotonic_ns() - found.begun_ns)
        if left > 0 and not ended():
            time.sleep(left / 1e9)
    finally:
        found.cpu_ns = time.process_time_ns() - cpu


def _changed(before: ServerSnapshot, after: ServerSnapshot) -> list[_Change]:
    """Return the entries of pg_stat_statements that ran between the snapshots, before and after.

    Without the earlier entries, it is unknown what ran, and the result is empty.
    """
    if "pg_stat_statements" in before.failed:
        return []
    then, now = (snapshot.tables["database_statements"] for snapshot in (before, after))
    earlier = {statement_key(row): row for row in then}
    ran = {statement_key(row) for row in statement_deltas(then, now)}
    return [(earlier.get(statement_key(row)), row) for row in now if statement_key(row) in ran]


def _tables(
    found: Samples,
    before: ServerSnapshot,
    after: ServerSnapshot | None,
    changed: Sequence[_Change],
    texts: Mapping[int, str],
) -> dict[str, pa.Table]:
    import pyarrow as pa  # noqa: PLC0415

    from uncork.store.tables import rows_table  # noqa: PLC0415

    book = found.book
    sql = {
        book.number(query_id, None): text if found.values else statement_without_values(text)
        for query_id, text in texts.items()
        if is_normalised(text)
    }
    statements = [
        {**row, "moment": moment, "template": book.number(row["query_id"], None)}
        for then, now in changed
        for moment, row in (("before", then), ("after", now))
        if row is not None
    ]
    rows: dict[str, Sequence[Mapping[str, Any]]] = {
        "database_samples": found.samples,
        "database_templates": [
            {"template": number, "text": text, "identity": identity, "sql": sql.get(number)}
            for number, (text, identity) in enumerate(zip(book.texts, book.identities, strict=True))
        ],
        "database_statements": statements,
        "database_kernel": _kernel_rows(before, after, changed),
    }
    for name in ("database_foreign_keys", "database_horizons", "database_settings"):
        rows[name] = () if after is None else after.tables[name]
    tables = {name: rows_table(name, found_rows) for name, found_rows in rows.items()}
    for name in ("database_counters", "database_relations", "database_indexes"):
        tables[name] = pa.concat_tables(
            # Rows of a snapshot are dropped as soon as they are packed, because there can be very many.
            _of_moment(moment, rows_table(name, () if snapshot is None else snapshot.tables.pop(name)))
            for moment, snapshot in (("before", before), ("after", after))
        )
    return {**tables, "database_activity": found.activity()}


def _kernel_rows(
    before: ServerSnapshot, after: ServerSnapshot | None, changed: Sequence[_Change]
) -> list[Row]:
    if after is None:
        return []
    ran = {statement_key(row) for _, row in changed}
    return [
        {**row, "moment": moment}
        for moment, snapshot in (("before", before), ("after", after))
        for row in snapshot.tables["database_kernel"]
        if statement_key(row) in ran
    ]


def _of_moment(moment: str, table: pa.Table) -> pa.Table:
    """Fill the column `moment` of a table. Copies of many thousand rows would take much memory."""
    import pyarrow as pa  # noqa: PLC0415

    place = table.column_names.index("moment")
    return table.set_column(
        place, table.schema.field(place), pa.array([moment] * table.num_rows, pa.string())
    )


# ---- store the texts of statements that samples saw in sessions, with their values ----


_SETTING: Final = "track_activity_query_size"
_DEFAULT_BYTES: Final = 1024
_CLIPPED: Final = 3
"""Bytes that the server cuts off in addition, so that the last character stays whole."""


def texts_table(
    book: TemplateBook,
    seen: Mapping[int, Sequence[str]],
    after: ServerSnapshot | None,
) -> pa.Table:
    """Return texts of sessions as a stored table, without the ones that the server cut.

    `seen` has the texts by query id. Statements whose literals pg_stat_statements keeps, such as a
    new password, are left out.
    """
    from uncork.store.tables import rows_table  # noqa: PLC0415 -- not before the first sample

    longest = _longest(() if after is None else after.tables["database_settings"])
    numbers: Counter[int] = Counter()
    rows = []
    for query_id, texts in seen.items():
        template = book.number(query_id, None)
        if template is None:
            continue
        for text in texts:
            if is_normalised(text) and len(text.encode()) < longest - _CLIPPED:
                rows.append({"template": template, "number": numbers[template], "text": text})
                numbers[template] += 1
    return rows_table("database_texts", rows)


def _longest(settings: Sequence[Mapping[str, Any]]) -> int:
    """Return the length in bytes at which the server cuts texts; settings at their default are not listed."""
    for row in settings:
        if row["name"] == _SETTING:
            value = str(row["value"])
            number = int("".join(text for text in value if text.isdigit()))
            return (number * 1024 if value.endswith("kB") else number) - 1
    return _DEFAULT_BYTES - 1
