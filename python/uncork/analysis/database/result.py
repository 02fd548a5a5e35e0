"""Build the result of a watched server from what was stored of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from uncork.analysis.database.evidence import (
    evidence_of,
    main_roles,
    pieces_of,
    plans_of,
    statement_plans,
    unplanned,
)
from uncork.analysis.database.schema import NEEDED_BEFORE, NOT_NEEDED, catalogue_of, schema_facts
from uncork.analysis.database.steps import counted_time, steps_of
from uncork.diagnosis.evidence import Evidence
from uncork.diagnosis.findings import costly_parts, find_findings
from uncork.model.database.missing import HiddenWork
from uncork.model.database.sessions import SessionRates
from uncork.model.database.wait_classes import IDLE
from uncork.model.records import build_from
from uncork.model.results.database import (
    IDLE_TEMPLATE,
    CounterFacts,
    DatabaseResult,
    DatabaseRunFacts,
    KernelFacts,
    RouteActivity,
    SettingFacts,
    TemplateActivity,
    WatchFacts,
)
from uncork.model.results.database_transactions import HorizonHolder
from uncork.model.tables.catalogue import CATALOGUE_TABLES
from uncork.model.tables.database import DATABASE_TABLES, HIDDEN_STATEMENTS, SettingRow
from uncork.model.tables.rows import Rows
from uncork.model.tables.system import SYSTEM_TABLES
from uncork.profile import activity, deltas
from uncork.profile.activity import CLIENT
from uncork.profile.blocking import find_blockers
from uncork.profile.missing import find_missing
from uncork.profile.server_templates import own_keys
from uncork.profile.system import system_use
from uncork.profile.transactions import in_transactions, row_writers
from uncork.store.layout import Manifest, read_manifest
from uncork.store.tables import read_evidence, release_memory, typed_rows

Row = Mapping[str, Any]
Tables = Mapping[str, pa.Table]

MOST_TEMPLATES: Final = 1_000
"""The most templates that a report lists; the tables of the run hold all of them."""
_NOBODYS: Final = frozenset({"default", "override"})
"""Sources of settings that nobody chose: the server computed them."""
_OF_WATCH: Final = (
    *("begun_us", "ended_us", "rate_hz", "missed", "longest_ns"),
    *("client_cpu_ns", "round_trip_ns"),
)
_WAITS: Final = ("state", "wait_class", "wait_event")
_BY_PROCESS: Final = ("pid", "application", "user", "template", *_WAITS)
_KEYS: Final = ("backend", "state", "wait_class", "wait_event", "template", "application", "user", "database")


def database_result(run: DatabaseRunFacts, facts: Mapping[str, Any], tables: Tables) -> DatabaseResult:
    """Build the result of a watched server from the facts and tables stored of it. Pure."""
    return database_evidence(run, facts, tables)[0]


def database_evidence(
    run: DatabaseRunFacts, facts: Mapping[str, Any], tables: Tables
) -> tuple[DatabaseResult, Evidence]:
    """Build the result of a watched server, and the evidence that its findings rest on. Pure."""
    watched = facts["watch"]
    begun, ended = watched["begun_us"], watched["ended_us"]
    whole = float(max(1, ended - begun))
    samples = tables["database_samples"].to_pylist()
    times = [row["time_us"] for row in samples]
    shares = activity.weights(times, begun, ended)
    places = activity.history_places(times, begun, ended)
    client = pc.equal(tables["database_activity"]["backend"], activity.CLIENT)
    all_sessions = tables["database_activity"].filter(client)
    database = facts["server"]["database"]
    # Sessions of other databases have a line of their own: no change of this database shortens their time.
    sessions = all_sessions.filter(pc.equal(all_sessions["database"], database))
    rows = _weighed(sessions, shares, _KEYS)
    by_process = _weighed(sessions, shares, _BY_PROCESS)
    others = _weighed(tables["database_activity"].filter(pc.invert(client)), shares, _KEYS)
    texts = dict(_columns(tables["database_templates"], "template", "text"))
    moments = {name: _moments(tables[name], NEEDED_BEFORE.get(name)) for name in _BY_MOMENT}
    release_memory()
    counters = moments["database_counters"]
    tree = activity.time_tree(rows, whole)
    own_entries = own_keys(watched)
    grown = [
        row for row in deltas.statement_deltas(*moments["database_statements"]) if row["database"] == database
    ]
    statements = [row for row in grown if deltas.statement_key(row) not in own_entries]
    own = [row for row in grown if deltas.statement_key(row) in own_entries]
    kernel = _kernel(tables["database_kernel"], facts)
    templates = _templates(rows, whole, tables["database_templates"], statements, kernel)
    counting = (
        facts["server"]["statements"] == "counting"
        and "after" in facts["snapshots"]
        and not any("pg_stat_statements" in _failed(facts, moment) for moment in ("before", "after"))
    )
    counted = counted_time(statements, facts["snapshots"]) if counting else None
    horizons = [{**row, "now_us": ended} for row in tables["database_horizons"].to_pylist()]
    counter_facts = deltas.counter_deltas(*counters, unread=_failed(facts, "before"))
    here = [counter for counter in counter_facts if counter.object == database]
    plans = tables["database_plans"].to_pylist()
    over_time = activity.history(_weighed(sessions, shares, _WAITS, places), places, shares, begun, ended)
    own_active = _own_count(counters, here, facts["snapshots"], samples, "active_time")
    result = DatabaseResult(
        run=run,
        answer="",
        reasons=(),
        warnings=(),
        server_version=" ".join(facts["server"]["version"].split(" ")[:2]).rstrip(","),
        database=database,
        role=facts["server"]["role"],
        standby=facts["server"]["standby"],
        block_bytes=facts["server"]["block_size"],
        watch=_watch(
            watched,
            samples,
            shares,
            sum(row["execution_ns"] for row in own) if counting and facts["server"]["counts_own"] else None,
        ),
        tree=tree,
        background=activity.time_tree(others, whole, by_process=True),
        history=over_time,
        own_active=own_active,
        own_idle=_own_count(counters, here, facts["snapshots"], (), "idle_in_transaction_time"),
        counted_ns=sum(row["execution_ns"] for row in statements) if counting else None,
        templates=tuple(templates[:MOST_TEMPLATES]),
        templates_more=max(0, len(templates) - MOST_TEMPLATES),
        applications=_usage(rows, "application", whole, tree.sessions),
        users=_usage(rows, "user", whole, tree.sessions),
        databases=_databases(_weighed(all_sessions, shares, ("database",)), whole),
        blockers=find_blockers(samples, _held(tables["database_activity"]), begun, ended, texts),
        counters=counter_facts,
        resets=deltas.resets(*counters) if counters[1] else (),
        settings=tuple(
            build_from(SettingFacts, row)
            for row in typed_rows(tables["database_settings"], SettingRow)
            if row.source not in _NOBODYS
        ),
        missing=find_missing(facts, file_waits=activity.file_waits(tree)),
        transactions=in_transactions(_idle(sessions), by_process, whole, texts),
        writers=row_writers(by_process, whole, len(samples), texts, statements if counting else ()),
        connections=_connections(counters),
        horizons=horizon_holders(_last_look(tables, samples), horizons, database, texts),
        system=system_use(tables),
        busiest=activity.busiest(over_time),
        steps=steps_of(tree, counted) if counted else (),
        counted=counted,
        kernel_whole_ns=facts["server"]["kernel_whole_ns"],
        routes=routes_of(_weighed(sessions, shares, ("origin", "template")), whole, texts),
        **schema_facts(moments, tables, facts["server"], _failed(facts, "before")),
    )
    result = replace(result, plans=plans_of(plans))
    pieces = pieces_of(sessions, shares)
    seen = evidence_of(
        result,
        pieces,
        tables["database_templates"],
        catalogue_of(tables, facts),
        statement_plans(plans),
        session_rates_of(result),
        _texts(tables["database_texts"]),
        main_roles(statements, pieces),
    )
    findings = find_findings(seen)
    hidden = hidden_work(facts["server"], result.watch.hidden, statements, counters, rows, own_active, whole)
    result = replace(
        result,
        findings=findings,
        costliest=costly_parts(seen, findings),
        hidden=hidden,
        unplanned=unplanned(
            plans, seen.statements, _times(result), _elsewhere(statements, result), facts["server"]
        ),
    )
    return result, seen


_BY_MOMENT: Final = ("database_statements", "database_counters", "database_relations", "database_indexes")


def _times(result: DatabaseResult) -> dict[int, float]:
    if result.counted_ns:
        return {
            template.number: template.statements.execution_ns
            for template in result.templates
            if template.statements
        }
    return {template.number: template.sessions for template in result.templates}


def _elsewhere(statements: Iterable[Row], result: DatabaseResult) -> set[int]:
    here = {row["template"] for row in statements if row["database"] == result.database}
    return {row["template"] for row in statements} - here


def _texts(table: pa.Table) -> Mapping[int, Sequence[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for template, text in _columns(table, "template", "text"):
        found[template].append(text)
    return found


def _moments(table: pa.Table, before: Sequence[str] | None) -> tuple[Rows, Rows]:
    """Return a table's rows before and after; with `before`, only these columns of the earlier rows."""
    earlier = table.filter(pc.equal(table["moment"], "before"))
    later = table.filter(pc.equal(table["moment"], "after"))
    if before is not None:
        earlier = earlier.select(list(before))
        later = later.select([name for name in later.column_names if name not in NOT_NEEDED])
    return _compact(earlier), _compact(later)


def _compact(table: pa.Table) -> Rows:
    """Return a table's rows; equal texts, such as names of schemas, are the same object."""
    columns = []
    for column in table.columns:
        values = column.to_pylist()
        if pa.types.is_string(column.type):
            known: dict[str | None, str | None] = {}
            values = [known.setdefault(value, value) for value in values]
        columns.append(values)
    return Rows(table.column_names, zip(*columns, strict=True))


def _columns(table: pa.Table, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def _weighed(
    table: pa.Table, shares: Sequence[float], keys: Sequence[str], places: Sequence[int] | None = None
) -> list[Row]:
    """Add up the time of processes in the same place; with `places` by step of the history too."""
    weight = pc.take(pa.array(shares, pa.float64()), table["sample"])
    table = table.append_column("weight", weight)
    if places is not None:
        table = table.append_column("place", pc.take(pa.array(places, pa.int64()), table["sample"]))
        keys = (*keys, "place")
    sums = table.group_by(list(keys)).aggregate([("weight", "sum")])
    rows: list[Row] = sums.rename_columns([*keys, "weight"]).to_pylist()
    return rows


def _held(table: pa.Table) -> list[Row]:
    """Return the rows of samples in which a session is blocked."""
    samples = pc.unique(table.filter(pc.is_valid(table["blocked_by"]))["sample"])
    rows: list[Row] = table.filter(pc.is_in(table["sample"], samples)).to_pylist()
    return rows


def _connections(counters: tuple[Rows, Rows]) -> int | None:
    """Return the number of connections without our own in the snapshot that had more of them."""
    found = [
        [row["value"] for row in rows if (row["view"], row["counter"]) == ("pg_stat_database", "numbackends")]
        for rows in counters
    ]
    return max((max(0, round(sum(values)) - 1) for values in found if values), default=None)


def _last_look(tables: Tables, samples: Sequence[Row]) -> list[Row]:
    last = samples[-1]["sample"] if samples else -1
    table = tables["database_activity"]
    rows: list[Row] = table.filter(pc.equal(table["sample"], last)).to_pylist()
    return rows


def _idle(table: pa.Table) -> list[Row]:
    names = ("pid", "application", "user", "template", "state_us", "transaction_us", "held_age")
    idle = table.filter(pc.starts_with(table["state"], IDLE))
    rows: list[Row] = idle.select(list(names)).to_pylist()
    return rows


def _usage(rows: Sequence[Row], name: str, whole: float, sessions: float) -> Any:
    return activity.usage(activity.averages(rows, lambda row: row[name] or "", whole), sessions)


def _databases(rows: Sequence[Row], whole: float) -> Any:
    found = activity.averages(rows, lambda row: row["database"] or "", whole)
    return activity.usage(found, sum(found.values()))


def _watch(
    watched: Row, samples: Sequence[Row], shares: Sequence[float], server_ns: float | None
) -> WatchFacts:
    whole = max(1, watched["ended_us"] - watched["begun_us"])
    return WatchFacts(
        **{name: watched[name] for name in _OF_WATCH},
        samples=len(samples),
        answer_ns=sum(row["query_ns"] for row in samples) / len(samples) if samples else 0.0,
        server_ns=server_ns,
        blockers_asked=sum(row["asked"] for row in samples),
        hidden=sum(row["hidden"] * share for row, share in zip(samples, shares, strict=True)) / whole,
    )


def _failed(facts: Mapping[str, Any], moment: str) -> Mapping[str, str]:
    failed: Mapping[str, str] = facts["snapshots"].get(moment, {}).get("failed", {})
    return failed


def _own_count(
    counters: tuple[Sequence[Row], Sequence[Row]],
    grown: Sequence[CounterFacts],
    snapshots: Row,
    samples: Sequence[Row],
    counter: str,
) -> float | None:
    """Return the average number of sessions by one of the server's own counts of their time.

    `grown` are counters of the watched database.
    uncork's own session, which is active while it answers (`samples`), is left out.
    """
    wanted = ("pg_stat_database", counter)
    if not all(any((row["view"], row["counter"]) == wanted for row in rows) for rows in counters):
        return None
    elapsed_ms = (snapshots["after"]["begun_us"] - snapshots["before"]["begun_us"]) / 1e3
    own_ms = sum(row["query_ns"] for row in samples) / 1e6
    counted_ms = sum(one.delta for one in grown if (one.view, one.counter) == wanted)
    return float(max(0.0, counted_ms - own_ms) / max(1.0, elapsed_ms))


# ---- templates ----


def _kernel(table: pa.Table, facts: Mapping[str, Any]) -> Mapping[deltas.Key, KernelFacts]:
    """Return what pg_stat_kcache counted of each entry; empty unless both snapshots have it."""
    if any("pg_stat_kcache" in _failed(facts, moment) for moment in ("before", "after")):
        return {}
    return deltas.kernel_deltas(*_moments(table, None))


def _templates(
    rows: Sequence[Row],
    whole: float,
    table: pa.Table,
    statements: Sequence[Row],
    kernel: Mapping[deltas.Key, KernelFacts],
) -> list[TemplateActivity]:
    by_template: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows:
        # A session that is idle in a transaction executes nothing: its time is none of its last statement.
        idle = activity.wait_class(row) == IDLE
        by_template[IDLE_TEMPLATE if idle else row["template"]].append(row)
    counted: dict[int | None, list[Row]] = defaultdict(list)
    for row in statements:
        counted[row["template"]].append(row)
    all_ns = sum(row["execution_ns"] for row in statements)
    total = sum(row["weight"] for row in rows) / whole
    found = []
    for number, text, identity in chain(
        _columns(table, "template", "text", "identity"),
        [(None, "(unknown)", None), (IDLE_TEMPLATE, f"({IDLE})", None)],
    ):
        mine, figures = by_template[number], counted[number]
        if not mine and not figures:
            continue
        sessions = sum(row["weight"] for row in mine) / whole
        totals = deltas.statement_totals(figures) if figures else None
        found.append(
            TemplateActivity(
                number=-1 if number is None else number,
                text=text,
                identity=identity,
                sessions=sessions,
                share=sessions / total if total else 0.0,
                classes=activity.usage(activity.averages(mine, activity.wait_class, whole), sessions),
                applications=_usage(mine, "application", whole, sessions),
                statements=totals,
                execution_share=totals.execution_ns / all_ns if totals and all_ns else 0.0,
                kernel=deltas.kernel_totals(
                    kernel[key] for key in map(deltas.statement_key, figures) if key in kernel
                ),
            )
        )
    return sorted(found, key=lambda one: (-one.sessions, -one.execution_share, one.text))


def stored_database_result(folder: Path) -> DatabaseResult:
    """Build the result of a stored watch of a server.

    Raises:
        StoreError: if its files are damaged.
    """
    return stored_database_evidence(folder)[0]


def stored_database_evidence(folder: Path) -> tuple[DatabaseResult, Evidence]:
    """Build the result of a stored watch of a server, with the evidence for rules.

    Raises:
        StoreError: if its files are damaged.
    """
    facts, tables = read_evidence(folder, (*DATABASE_TABLES, *CATALOGUE_TABLES, *SYSTEM_TABLES))
    return database_evidence(database_run_facts(read_manifest(folder)), facts, tables)


def database_run_facts(manifest: Manifest) -> DatabaseRunFacts:
    """Return which run it is, and how it went."""
    options: Mapping[str, Any] = manifest.options
    return build_from(
        DatabaseRunFacts,
        manifest,
        elapsed_ns=sum(attempt.elapsed_ns for attempt in manifest.attempts),
        server=manifest.server.removeprefix("existing: "),
        reproduce=str(options.get("command", "uncork profile db")),
    )


# ---- build the rates of sessions and transactions from the growth of the server's counters ----


_VIEW: Final = "pg_stat_database"
_SESSIONS: Final = 14
"""The first version whose pg_stat_database counts sessions."""


def session_rates_of(result: DatabaseResult) -> SessionRates | None:
    """Return the rates of the watched database; None if its counters did not grow or were reset meanwhile.

    Commits of uncork's own samples are left out.
    """
    version = re.search(r"\d+", result.server_version)
    reset = any(name.startswith(_VIEW) and name.endswith(f" {result.database}") for name in result.resets)
    seconds = (result.watch.ended_us - result.watch.begun_us) / 1e6
    if version is None or reset or seconds <= 0:
        return None
    return session_rates(
        result.counters, result.database, seconds, int(version[0]), own_commits=result.watch.samples
    )


def session_rates(
    counters: Iterable[CounterFacts], database: str, seconds: float, version: int, *, own_commits: int = 0
) -> SessionRates | None:
    """Return the rates of a database over `seconds`; None if none of its counters grew.

    `version` is the server's major version. `own_commits` are left out.
    """
    grown = {one.counter: one.delta for one in counters if (one.view, one.object) == (_VIEW, database)}
    if not grown:
        return None

    def rate(counter: str) -> float:
        return grown.get(counter, 0.0) / seconds

    def since_14(counter: str) -> float | None:
        return rate(counter) if version >= _SESSIONS else None

    idle, active = (grown.get(f"{state}_time", 0.0) for state in ("idle_in_transaction", "active"))
    return SessionRates(
        commits=max(0.0, rate("xact_commit") - own_commits / seconds),
        rollbacks=rate("xact_rollback"),
        deadlocks=rate("deadlocks"),
        temp_files=rate("temp_files"),
        temp_bytes=rate("temp_bytes"),
        opened=since_14("sessions"),
        abandoned=since_14("sessions_abandoned"),
        fatal=since_14("sessions_fatal"),
        killed=since_14("sessions_killed"),
        idle_share=idle / (idle + active) if version >= _SESSIONS and idle + active > 0 else None,
    )


# ---- what the role that watched may not see: the work of other roles ----


_LEAST_ACTIVE: Final = 0.05
"""Active sessions on average, by the server's count, below which no share of them is computed."""


def hidden_work(
    server: Row,
    hidden_sessions: float,
    statements: Iterable[Row],
    counters: tuple[Iterable[Row], Iterable[Row]],
    sessions: Iterable[Row],
    own_active: float | None,
    length_us: float,
) -> HiddenWork | None:
    """Return what other roles did unseen; None if the role may see everything, or missed nothing. Pure.

    `statements` are the differences of the entries that the role may see, `counters` the rows
    before and after. `sessions` are the time of busy sessions by place (`weight`), and `own_active`
    the number of active ones by the server's count. If the counters of hidden statements fell (a
    reset, or entries that were evicted), their share is unknown.
    """
    if server["sees_all"]:
        return None
    database = server["database"]
    seen_ms = (
        sum(row["execution_ns"] for row in statements if row["database"] == database and row["toplevel"])
        / 1e6
    )
    before_ms, after_ms = map(_hidden_ms, counters)
    hidden_ms = None if before_ms is None or after_ms is None else after_ms - before_ms
    rows = list(sessions)
    active = (
        sum(row["weight"] for row in rows if row["database"] == database and row["state"] == "active")
        / length_us
    )
    share: float | None = None
    base: Literal["statements", "sessions", ""] = ""
    if hidden_ms is not None and hidden_ms >= 0 and hidden_ms + seen_ms > 0:
        share, base = hidden_ms / (hidden_ms + seen_ms), "statements"
    elif own_active is not None and own_active >= _LEAST_ACTIVE:
        share, base = max(0.0, 1.0 - active / own_active), "sessions"
    if not hidden_sessions and not share:
        return None
    return HiddenWork(server["role"], hidden_sessions, share, base, busy=bool(rows))


def _hidden_ms(counters: Iterable[Row]) -> float | None:
    wanted = (HIDDEN_STATEMENTS, "total_exec_time")
    return next((row["value"] for row in counters if (row["view"], row["counter"]) == wanted), None)


# ---- what keeps dead rows from VACUUM: sessions, standbys, prepared transactions, slots ----


_MOST_HOLDERS: Final = 10
_STANDBY: Final = "walsender"
_IGNORED: Final = re.compile(r"vacuum\b|(?:create|drop)\s+(?:unique\s+)?index\s+concurrently\b|reindex\b")
"""Statements whose own snapshots VACUUM ignores, or that end soon after it."""


def horizon_holders(
    sessions: Sequence[Row], others: Sequence[Row], database: str, texts: Mapping[int, str]
) -> tuple[HorizonHolder, ...]:
    """Return what keeps dead rows of a database, the oldest first.

    `sessions` are the rows of the last sample: a transaction that lasts is in every one. `others`
    are the rows of the table database_horizons, with the time of reading (`now_us`). Transactions
    in other databases keep nothing here; a physical slot and a standby have no database.
    """
    found = [
        *_sessions([session for session in sessions if session["database"] in (database, None)], texts),
        *_others([row for row in others if row["database"] in (database, None)]),
    ]
    return tuple(
        sorted(found, key=lambda one: (-one.held_age, -(one.open_ns or 0), one.name))[:_MOST_HOLDERS]
    )


def _sessions(rows: Sequence[Row], texts: Mapping[int, str]) -> Iterator[HorizonHolder]:
    for row in rows:
        text = texts.get(row["template"], "")
        if row["held_age"] is None or row["backend"] not in (CLIENT, _STANDBY) or _IGNORED.match(text):
            continue
        waits = (row["state"] or "").startswith(IDLE)
        yield HorizonHolder(
            "session" if row["backend"] == CLIENT else "standby",
            row["application"] or "",
            row["user"] or "",
            row["held_age"],
            None if row["transaction_us"] is None else row["transaction_us"] * 1000,
            idle_ns=row["state_us"] * 1000 if waits and row["state_us"] is not None else None,
            pid=row["pid"],
            template=row["template"],
            text=text,
        )


def _others(rows: Sequence[Row]) -> Iterator[HorizonHolder]:
    for row in rows:
        open_us = None if row["since_us"] is None else max(0, row["now_us"] - row["since_us"])
        yield HorizonHolder(
            row["kind"],
            row["name"],
            row["user"] or "",
            row["held_age"] or 0,
            None if open_us is None else open_us * 1000,
            active=bool(row["active"]),
        )


# ---- busy sessions by the route that comments in their statements name ----


_MOST_ROUTES: Final = 100
"""The most routes that a report shows."""
_MOST_OF_ROUTE: Final = 20
_UNKNOWN: Final = "(not told)"


def routes_of(rows: Sequence[Row], whole: float, texts: Mapping[int, str]) -> tuple[RouteActivity, ...]:
    """Return the routes with the most busy sessions first; empty if no comment names one.

    `rows` are sessions by origin and template with their time (`weight`) in a watch of `whole` microseconds,
    and `texts` are templates by number. Sessions without a route are one row with the name "".
    """
    by_route: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_route[row["origin"] or ""].append(row)
    if set(by_route) <= {""}:
        return ()
    averages = {name: sum(row["weight"] for row in of) / whole for name, of in by_route.items()}
    found = activity.usage(averages, sum(averages.values()))
    return tuple(
        RouteActivity(
            usage.name,
            usage.sessions,
            usage.share,
            activity.usage(
                activity.averages(
                    by_route[usage.name], lambda row: texts.get(row["template"], _UNKNOWN), whole
                ),
                usage.sessions,
            )[:_MOST_OF_ROUTE],
        )
        for usage in found[:_MOST_ROUTES]
    )
