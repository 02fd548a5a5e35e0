"""The tables of a watched server. The terminal, Markdown and HTML share them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database import DatabaseResult, TableFacts, TemplateActivity, TimeNode, Usage
from uncork.model.template_words import short_template, short_templates
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import bytes_cell, count_cell, duration_cell, instant_cell, share_cell
from uncork.report.database.words import blocker_words, class_words, node_words, sessions_text
from uncork.report.figures import number_text
from uncork.report.quantity_words import share_text
from uncork.report.words import count_words

_INDENT: Final = "\N{NO-BREAK SPACE}" * 2
_LEAST_SHARE: Final = 0.01
"""Parts of the tree with a smaller share are grouped."""
_PARTS: Final = 200
"""Most templates with a section of their own."""


def _sessions(number: float) -> Value:
    return Value(sessions_text(number), sort=number)


def tree_table(result: DatabaseResult, *, width: int, least: float = _LEAST_SHARE) -> Table:
    """Return the time of busy sessions as a tree: each part is the sum of the indented parts below it."""
    return _tree(
        f"Where the time of busy sessions went{_left_out(least)}",
        result.tree,
        result,
        width,
        least,
        "busy sessions",
    )


def _left_out(least: float) -> str:
    return f"; parts under {share_text(least)} are left out" if least else ""


def background_table(result: DatabaseResult, *, width: int) -> Table | None:
    """Return the time of processes that serve no client; None if none was busy."""
    if not result.background.sessions:
        return None
    title = "Processes that serve no client, and parallel workers"
    return _tree(title, result.background, result, width, _LEAST_SHARE, "busy processes")


def _tree(title: str, tree: TimeNode, result: DatabaseResult, width: int, least: float, root: str) -> Table:
    texts = {template.number: template.text for template in result.templates}
    return Table(
        title,
        (Column("sessions", number=True), Column("share", number=True), Column("part", header=True)),
        tuple(_tree_rows(tree, 0, texts, width, least, root)),
    )


def _tree_rows(
    node: TimeNode, depth: int, texts: dict[int, str], width: int, least: float, root: str = ""
) -> Iterator[tuple[Value, ...]]:
    room = width - len(_INDENT) * depth
    text = texts.get(-1 if node.template is None else node.template, "")
    words = node_words(node, text if node.kind == "template" else "", max(20, room))
    children = node.children
    if node.kind == "template" and len(children) == 1 and children[0].name:
        beside = f" ({children[0].name})"
        words = f"{node_words(node, text, max(20, room - len(beside)))}{beside}"
        children = ()
    yield _sessions(node.sessions), share_cell(node.share), Value(_INDENT * depth + (root or words))
    large = [child for child in children if child.share >= least]
    for child in large:
        yield from _tree_rows(child, depth + 1, texts, width, least)
    small = [child for child in children if child.share < least]
    left = sum(child.share for child in small)
    if small and left >= least and (large or node.kind == "all"):
        sessions = sum(child.sessions for child in small)
        yield _sessions(sessions), share_cell(left), Value(f"{_INDENT * (depth + 1)}{len(small)} smaller")


def parts_of(result: DatabaseResult) -> tuple[TemplateActivity, ...]:
    """Return the templates that have a section of their own."""
    return tuple(template for template in result.templates if template.number >= 0)[:_PARTS]


def template_id(template_activity: TemplateActivity) -> str:
    """Return the id of a template's section."""
    return f"template-{template_activity.number}"


def templates_table(result: DatabaseResult, most: int, *, width: int) -> Table | None:
    """Return templates by the time of busy sessions, with what they mostly did; None if there are none."""
    found = [template for template in result.templates if template.sessions]
    if not found:
        return None
    texts = short_templates([activity.text for activity in found[:most]], width)
    left = len(found) - most
    more = f"; {count_words(left, 'other template')} not shown" if left > 0 else ""
    counted = result.counted_ns is not None
    links = {activity.number: template_id(activity) for activity in parts_of(result)}
    columns = [
        Column("#", number=True),
        Column("sessions", number=True),
        Column("share", number=True),
        Column("mostly"),
    ]
    if counted:
        columns += [Column("calls", number=True), Column("mean", number=True)]
    return Table(
        f"Templates by time of busy sessions{more}",
        (*columns, Column("template", header=True)),
        tuple(
            (
                Value(str(rank), sort=rank),
                _sessions(activity.sessions),
                share_cell(activity.share),
                Value(class_words(activity.classes[0].name), note=_others(activity)),
                *(_calls(activity) if counted else ()),
                Value(text, code=True, link=links.get(activity.number, "")),
            )
            for rank, (activity, text) in enumerate(zip(found[:most], texts, strict=True), 1)
        ),
        sortable=True,
    )


def _others(template_activity: TemplateActivity) -> str:
    if template_activity.classes[0].share > 0.95:
        return ""
    first = template_activity.classes[0]
    second = template_activity.classes[1] if len(template_activity.classes) > 1 else None
    beside = f", {second.share:.0%} {class_words(second.name)}" if second is not None else ""
    return f"{first.share:.0%}{beside}".replace("%", " %")


def _calls(template_activity: TemplateActivity) -> tuple[Value, Value]:
    figures = template_activity.statements
    if figures is None:
        return Value(""), Value("")
    mean = figures.execution_ns / figures.calls if figures.calls else None
    return count_cell(figures.calls), duration_cell(mean)


def statements_table(result: DatabaseResult, most: int, *, width: int) -> Table | None:
    """Return templates by the time that pg_stat_statements counted; None if it counted nothing."""
    counted = [
        (template, template.statements) for template in result.templates if template.statements is not None
    ]
    if not counted:
        return None
    counted.sort(key=lambda item: -item[1].execution_ns)
    texts = short_templates([activity.text for activity, _ in counted[:most]], width)
    left = len(counted) - most
    more = f"; {count_words(left, 'other template')} not shown" if left > 0 else ""
    block = result.block_bytes
    links = {activity.number: template_id(activity) for activity in parts_of(result) if not activity.sessions}
    return Table(
        f"Templates by time of completed executions, from pg_stat_statements{more}",
        (
            *(Column(name, number=True) for name in ("time", "share", "calls", "mean", "rows per call")),
            *(Column(name, number=True) for name in ("in memory", "read", "temporary", "WAL", "planning")),
            Column("jit", number=True),
            Column("template", header=True),
        ),
        tuple(
            (
                duration_cell(figures.execution_ns),
                share_cell(activity.execution_share),
                *_calls(activity),
                count_cell(figures.rows / figures.calls if figures.calls else None),
                bytes_cell(figures.shared_hit * block),
                bytes_cell(figures.shared_read * block),
                bytes_cell((figures.temp_read + figures.temp_written) * block),
                bytes_cell(figures.wal_bytes),
                duration_cell(figures.planning_ns if figures.plans else None),
                duration_cell(figures.jit_ns if figures.jit_functions else None),
                Value(text, code=True, link=links.get(activity.number, ""), back=False),
            )
            for (activity, figures), text in zip(counted[:most], texts, strict=True)
        ),
        sortable=True,
    )


def usage_tables(result: DatabaseResult) -> Iterator[Table]:
    """Yield busy sessions by application, role and database; without tables of one unnamed row."""
    for name, found in (
        ("application", result.applications),
        ("role", result.users),
        ("database", result.databases),
    ):
        if found and (len(found) > 1 or found[0].name):
            yield _usage(name, found)


def _usage(name: str, found: Sequence[Usage]) -> Table:
    return Table(
        f"By {name}",
        (Column(name, header=True), Column("sessions", number=True), Column("share", number=True)),
        tuple(
            (Value(usage.name or "(unknown)"), _sessions(usage.sessions), share_cell(usage.share))
            for usage in found
        ),
        sortable=True,
    )


def blockers_table(
    result: DatabaseResult, *, width: int, most: int | None = None, waiters: int | None = None
) -> Table | None:
    """Return who blocks whom, by root blocker; None if nobody was blocked.

    `most` limits the root blockers, `waiters` the blocked sessions listed for each.
    """
    if not result.blockers:
        return None
    rows: list[tuple[Value, ...]] = []
    shown = result.blockers[:most]
    left = len(result.blockers) - len(shown)
    more = f"; {left} smaller root blockers not shown" if left else ""
    for blocker in shown:
        rows.append(
            (
                _sessions(blocker.sessions),
                Value(str(blocker.most), sort=blocker.most),
                Value(str(blocker.chain), sort=blocker.chain),
                duration_cell(blocker.transaction_ns),
                Value(blocker_words(blocker)),
            )
        )
        for waiter in blocker.waiters[:waiters]:
            text = short_template(waiter.text, max(20, width - 40)) if waiter.text else "(unknown statement)"
            who = f"{waiter.application}: " if waiter.application else ""
            words = f"{_INDENT}blocks {who}{text} ({waiter.event})"
            rows.append((_sessions(waiter.sessions), *[Value("")] * 3, Value(words)))
    return Table(
        f"Who blocks whom: blocked sessions on average, and their root blockers{more}",
        (
            Column("blocked", number=True),
            Column("at most", number=True),
            Column("chain", number=True),
            Column("open for", number=True),
            Column("by", header=True),
        ),
        tuple(rows),
    )


def counters_table(result: DatabaseResult) -> Table | None:
    """Return by how much the server's counters grew; None if none changed."""
    if not result.counters:
        return None
    seconds = (result.watch.ended_us - result.watch.begun_us) / 1e6
    return Table(
        "The server's own counters: by how much they grew",
        (
            Column("view", header=True),
            Column("object"),
            Column("counter"),
            Column("grew by", number=True),
            Column("per second", number=True),
        ),
        tuple(
            (
                Value(counter.view),
                Value(counter.object),
                Value(counter.counter, code=True),
                _amount(counter.counter, counter.delta),
                _amount(counter.counter, counter.delta / seconds),
            )
            for counter in result.counters
        ),
        sortable=True,
    )


def _amount(counter: str, value: float) -> Value:
    if counter.endswith("bytes"):
        return bytes_cell(round(value))
    if counter.endswith("_time"):
        return duration_cell(value * 1e6)
    return count_cell(round(value) if value >= 100 else float(f"{value:.3g}"))


def tables_table(result: DatabaseResult, most: int, *, brief: bool = False) -> Table | None:
    """Return tables, the largest first, with their activity; None if there are none.

    `brief` leaves columns out for a narrow screen.
    """
    found = [table for table in result.tables if table.kind != "partitioned table"]
    if not found:
        return None
    left = len(found) + result.tables_more - most
    more = f"; {count_words(left, 'other')} not shown" if left > 0 else ""
    columns = [name for name in _TABLE_COLUMNS if not (brief and name in _NOT_BRIEF)]
    return Table(
        f"Tables by size, with their activity{more}",
        (Column("table", header=True), *(Column(name, number=True) for name in columns)),
        tuple(
            (Value(table.name), *(cells[name] for name in columns))
            for table, cells in ((one, _table_cells(one)) for one in found[:most])
        ),
        sortable=True,
    )


_TABLE_COLUMNS: Final = (
    *("size", "indexes", "rows", "dead", "left empty", "full scans", "rows scanned", "index scans"),
    *("inserted", "updated", "HOT", "deleted", "vacuumed"),
)
_UNKNOWN: Final = Value("unknown", sort=-1)
_NOT_BRIEF: Final = frozenset({"rows scanned", "inserted", "deleted", "vacuumed"})


def _table_cells(table: TableFacts) -> dict[str, Value]:
    return {
        "size": Value("(locked)") if table.bytes is None else bytes_cell(table.bytes),
        "indexes": bytes_cell(table.index_bytes),
        "rows": count_cell(None if table.rows is None else round(table.rows)),
        "dead": count_cell(table.dead),
        "left empty": _UNKNOWN if table.bloat_bytes is None else bytes_cell(table.bloat_bytes),
        "full scans": count_cell(None if table.whole_reads is None else _rounded(table.whole_reads)),
        "rows scanned": count_cell(table.seq_rows),
        "index scans": count_cell(table.index_scans),
        "inserted": count_cell(table.inserted),
        "updated": count_cell(table.updated),
        "HOT": share_cell(table.hot_updated / table.updated) if table.updated else Value(""),
        "deleted": count_cell(table.deleted),
        "vacuumed": instant_cell(table.vacuumed_us),
    }


def _rounded(times: float) -> float:
    return round(times) if times >= 10 else float(f"{times:.2g}")


def indexes_table(result: DatabaseResult, most: int, *, doubtful: bool = False) -> Table | None:
    """Return indexes, the largest first; `doubtful` keeps only indexes that may not be worth their upkeep."""
    found = [index for index in result.indexes if index.warning or not doubtful]
    if not found:
        return None
    title = "Indexes that may not be worth their upkeep" if doubtful else "Indexes by size"
    left = len(found) - most
    more = f"; {count_words(left, 'other')} not shown" if left > 0 else ""
    words = {
        "": "",
        "invalid": "invalid: its creation failed",
        "duplicate": "the same as",
        "covered": "covered by",
        "unused": "never scanned",
    }
    return Table(
        title + more,
        (
            Column("index", header=True),
            Column("table"),
            *(Column(name, number=True) for name in ("size", "left empty", "scans", "scans since reset")),
            Column("reason"),
        ),
        tuple(
            (
                Value(index.name),
                Value(index.table),
                Value("(locked)") if index.bytes is None else bytes_cell(index.bytes),
                _UNKNOWN if index.bloat_bytes is None else bytes_cell(index.bloat_bytes),
                count_cell(index.scans),
                count_cell(index.scans_ever),
                Value(f"{words[index.warning]} {index.same_as}".strip()),
            )
            for index in found[:most]
        ),
        sortable=True,
    )


def islands_table(result: DatabaseResult) -> Table | None:
    """Return the islands of tables joined by foreign keys; None if there are none."""
    if not result.islands:
        return None
    alone = [table for table in result.tables if table.kind != "partitioned table"]
    total = sum((table.bytes or 0) + table.index_bytes for table in alone)
    return Table(
        "Islands: tables joined by foreign keys",
        (
            Column("", number=True),
            Column("size", number=True),
            Column("share", number=True),
            Column("tables", header=True),
        ),
        tuple(
            (
                Value(str(island.number)),
                bytes_cell(island.bytes),
                share_cell(min(1.0, island.bytes / total) if total else 0.0),
                Value(", ".join(island.tables)),
            )
            for island in result.islands
        ),
    )


def foreign_keys_table(result: DatabaseResult) -> Table | None:
    """Return foreign keys without an index; None if there are none."""
    bare = [foreign_key for foreign_key in result.foreign_keys if not foreign_key.indexed]
    if not bare:
        return None
    return Table(
        "Foreign keys without an index",
        (Column("table", header=True), Column("columns"), Column("references"), Column("constraint")),
        tuple(
            (Value(key.table), Value(key.columns, code=True), Value(key.referred), Value(key.name))
            for key in bare
        ),
        sortable=True,
    )


def referring_table(result: DatabaseResult, most: int) -> Table | None:
    """Return how many rows refer to one row by each foreign key, the most first; None if that is unknown."""
    known = [foreign_key for foreign_key in result.foreign_keys if foreign_key.rows_each is not None]
    if not known:
        return None
    known.sort(key=lambda one: (-(one.most_each or one.rows_each or 0.0), one.table, one.columns))
    return Table(
        "Rows that refer to one row, estimated from ANALYZE",
        (
            *(Column("table", header=True), Column("columns"), Column("references")),
            *(Column("on average", number=True), Column("at most", number=True), Column("index")),
        ),
        tuple(
            (
                *(Value(key.table), Value(key.columns, code=True), Value(key.referred)),
                Value(_about(key.rows_each)),
                Value(_about(key.most_each)),
                Value("yes" if key.indexed else "no"),
            )
            for key in known[:most]
        ),
        sortable=True,
    )


def _about(number: float | None) -> str:
    return "" if number is None else number_text(number)


def settings_table(result: DatabaseResult) -> Table | None:
    """Return settings that differ from PostgreSQL's defaults; None if there are none."""
    if not result.settings:
        return None
    return Table(
        "Settings that differ from PostgreSQL's defaults",
        (Column("setting", header=True), Column("value"), Column("default"), Column("set in")),
        tuple(
            (
                Value(setting.name),
                Value(short_template(setting.value), code=True),
                Value(short_template(setting.default), code=True),
                Value(setting.source),
            )
            for setting in result.settings
        ),
        sortable=True,
    )


def lacks_table(result: DatabaseResult) -> Table | None:
    """Return what is missing from the report, and how to get it; None if nothing is missing."""
    if not result.missing:
        return None
    return Table(
        "What is missing",
        (Column("needs", header=True), Column("missing"), Column("how to get it")),
        tuple(
            (Value(missing.what), Value(missing.lost), Value(missing.remedy)) for missing in result.missing
        ),
    )


def watch_table(result: DatabaseResult) -> Table:
    """Return how the server was watched, and what that cost the server and this machine."""
    watch = result.watch
    length = (watch.ended_us - watch.begun_us) * 1000
    rows = [
        ("watched", format_duration(length)),
        ("samples", f"{format_count(watch.samples)}, {watch.rate_hz:g} a second requested"),
        ("missed", format_count(watch.missed)),
        ("longest time between samples", format_duration(watch.longest_ns)),
        ("time to answer", f"{format_duration(watch.answer_ns)} on average"),
        ("lookups of blockers", f"{format_count(watch.blockers_asked)} (pg_blocking_pids)"),
        (
            "processor time of uncork",
            f"{format_duration(watch.client_cpu_ns)} ({_percent(watch.client_cpu_ns, length)} of one)",
        ),
    ]
    if watch.server_ns is not None:
        rows.append(
            (
                "time of uncork's statements on the server",
                f"{format_duration(watch.server_ns)} ({_percent(watch.server_ns, length)} of one session)",
            )
        )
    return Table(
        "How the server was watched, and what that cost",
        (Column("", header=True), Column("")),
        tuple((Value(name), Value(text)) for name, text in rows),
    )


def clocks_table(result: DatabaseResult) -> Table | None:
    """Return samples next to the server's own clocks; None if the server has none."""
    seconds = (result.watch.ended_us - result.watch.begun_us) / 1e6
    idle = sum(child.sessions for child in result.tree.children if child.name == IDLE)
    rows = [
        ("active", result.tree.sessions - idle, result.own_active),
        ("idle in transaction", idle, result.own_idle),
    ]
    synced = [
        counter.delta / 1e3 / seconds
        for counter in result.counters
        if (counter.object, counter.counter) == ("client backend, wal, normal", "fsync_time")
    ]
    if synced:
        seen = (
            child.sessions
            for node in result.tree.children
            for child in node.children
            if child.name == "WalSync"
        )
        rows.append(("syncing the log", sum(seen), sum(synced)))
    known = [(name, samples, own) for name, samples, own in rows if own is not None]
    if not known:
        return None
    return Table(
        "Samples compared with the server's own clocks: sessions on average",
        (
            Column("", header=True),
            Column("by samples", number=True),
            Column("by the server", number=True),
        ),
        tuple((Value(name), _sessions(samples), _sessions(own)) for name, samples, own in known),
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
