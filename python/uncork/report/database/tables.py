"""The tables of a watched server. The terminal, Markdown and HTML share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database import (
    BlockerFacts,
    DatabaseResult,
    RouteActivity,
    StepName,
    TemplateActivity,
    TimeNode,
    Usage,
)
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration, share_text
from uncork.report.blocks import Table, Value
from uncork.report.cells import (
    bytes_cell,
    column,
    count_cell,
    duration_cell,
    facts_table,
    header,
    instant_cell,
    mean_cell,
    not_shown,
    number,
    rank_cells,
    share_cell,
    table_if_any,
    table_of,
    template_cells,
)
from uncork.report.database.words import blocker_words, class_words, node_words, sessions_text
from uncork.report.words import number_text

_INDENT: Final = "\N{NO-BREAK SPACE}" * 2
_LEAST_SHARE: Final = 0.01
"""Parts of the tree with a smaller share are grouped."""
_STEPS: Final[Mapping[StepName, str]] = {
    "plan": "planning",
    "execute": "executing",
    "commit": "waiting for the write-ahead log",
    "idle in transaction": "idle in transaction",
    "unknown": "unknown",
}
_UNCOUNTED: Final = "parsing, planning, statements that had not ended"
_COUNTED: Final = "parsing, statements that had not ended"
_ROUTE_WIDTH: Final = 70
_SHORT: Final = 1e5
"""The longest duration below which executions may count as a whole without a note."""
_PARTS: Final = 200
"""Most templates with a section of their own."""


def _sessions(number: float) -> Value:
    return Value(sessions_text(number), sort=number)


def tree_table(result: DatabaseResult, *, width: int, least: float = _LEAST_SHARE) -> Table:
    """Return the time of busy sessions as a tree: each part is the sum of the indented parts below it."""
    left_out = f"; parts under {share_text(least)} are left out" if least else ""
    title = f"Where the time of busy sessions went{left_out}"
    return _tree(title, result.tree, result, width, least, "busy sessions")


def background_table(result: DatabaseResult, *, width: int) -> Table | None:
    """Return the time of processes that serve no client; None if none was busy."""
    if not result.background.sessions:
        return None
    title = "Processes that serve no client, and parallel workers"
    return _tree(title, result.background, result, width, _LEAST_SHARE, "busy processes")


def _tree(title: str, tree: TimeNode, result: DatabaseResult, width: int, least: float, root: str) -> Table:
    texts = {template.number: template.text for template in result.templates}
    return table_of(
        title,
        tuple(_tree_rows(tree, 0, texts, width, least, root)),
        number("sessions", lambda row: _sessions(row[0])),
        number("share", lambda row: share_cell(row[1])),
        header("part", lambda row: row[2]),
    )


def _tree_rows(
    node: TimeNode, depth: int, texts: dict[int, str], width: int, least: float, root: str = ""
) -> Iterator[tuple[float, float, str]]:
    """Yield the sessions, the share and the indented name of a part, and of the parts below it."""
    room = width - len(_INDENT) * depth
    text = texts.get(-1 if node.template is None else node.template, "")
    words = node_words(node, text if node.kind == "template" else "", max(20, room))
    children = node.children
    if node.kind == "template" and len(children) == 1 and children[0].name:
        beside = f" ({children[0].name})"
        words = f"{node_words(node, text, max(20, room - len(beside)))}{beside}"
        children = ()
    yield node.sessions, node.share, _INDENT * depth + (root or words)
    large = [child for child in children if child.share >= least]
    for child in large:
        yield from _tree_rows(child, depth + 1, texts, width, least)
    small = [child for child in children if child.share < least]
    left = sum(child.share for child in small)
    if small and left >= least and (large or node.kind == "all"):
        yield sum(child.sessions for child in small), left, f"{_INDENT * (depth + 1)}{len(small)} smaller"


def parts_of(result: DatabaseResult) -> tuple[TemplateActivity, ...]:
    """Return the templates that have a section of their own."""
    return tuple(template for template in result.templates if template.number >= 0)[:_PARTS]


def template_id(template_activity: TemplateActivity) -> str:
    """Return the id of a template's section."""
    return f"template-{template_activity.number}"


def templates_table(result: DatabaseResult, most: int, *, width: int) -> Table | None:
    """Return templates by the time of busy sessions, with what they mostly did; None if there are none."""
    found = [template for template in result.templates if template.sessions]
    shown = found[:most]
    counted = result.counted_ns is not None
    return table_if_any(
        f"Templates by time of busy sessions{not_shown(len(found) - most, 'other template')}",
        shown,
        number("#", rank_cells(len(shown))),
        number("sessions", lambda template: _sessions(template.sessions)),
        number("share", lambda template: share_cell(template.share)),
        column("mostly", _mostly),
        number("calls", _calls, when=counted),
        number("mean", _mean, when=counted),
        header("template", _template_cells(shown, width, parts_of(result))),
        sortable=True,
    )


def _mostly(template_activity: TemplateActivity) -> Value:
    first, *others = template_activity.classes
    words = class_words(first.name)
    if first.share > 0.95:
        return Value(words)
    beside = f", {others[0].share:.0%} {class_words(others[0].name)}" if others else ""
    return Value(words, note=f"{first.share:.0%}{beside}".replace("%", " %"))


def _template_cells(
    shown: Sequence[TemplateActivity], width: int, linked: Sequence[TemplateActivity], *, back: bool = True
) -> list[Value]:
    """Return the texts of templates in `width` characters; `linked` ones have a section."""
    links = {activity.number: template_id(activity) for activity in linked}
    ids = [links.get(activity.number, "") for activity in shown]
    return template_cells([activity.text for activity in shown], width, ids, back=back)


def _calls(template_activity: TemplateActivity) -> Value:
    figures = template_activity.statements
    return count_cell(None if figures is None else figures.calls)


def _mean(template_activity: TemplateActivity) -> Value:
    figures = template_activity.statements
    return duration_cell(None) if figures is None else mean_cell(figures.execution_ns, figures.calls)


def statements_table(result: DatabaseResult, most: int, *, width: int) -> Table | None:
    """Return templates by the time that pg_stat_statements counted; None if it counted nothing."""
    counted = [
        (template, template.statements) for template in result.templates if template.statements is not None
    ]
    counted.sort(key=lambda item: -item[1].execution_ns)
    shown = [template for template, _ in counted[:most]]
    block = result.block_bytes
    linked = [activity for activity in parts_of(result) if not activity.sessions]
    left = not_shown(len(counted) - most, "other template")
    return table_if_any(
        f"Templates by time of completed executions, from pg_stat_statements{left}",
        [figures for _, figures in counted[:most]],
        number("time", lambda figures: duration_cell(figures.execution_ns)),
        number("share", [share_cell(template.execution_share) for template in shown]),
        number("calls", lambda figures: count_cell(figures.calls)),
        number("mean", [_mean(template) for template in shown]),
        number(
            "rows per call",
            lambda figures: count_cell(figures.rows / figures.calls if figures.calls else None),
        ),
        number("in memory", lambda figures: bytes_cell(figures.shared_hit * block)),
        number("read", lambda figures: bytes_cell(figures.shared_read * block)),
        number("temporary", lambda figures: bytes_cell((figures.temp_read + figures.temp_written) * block)),
        number("WAL", lambda figures: bytes_cell(figures.wal_bytes)),
        number("planning", lambda figures: duration_cell(figures.planning_ns if figures.plans else None)),
        number("jit", lambda figures: duration_cell(figures.jit_ns if figures.jit_functions else None)),
        header("template", _template_cells(shown, width, linked, back=False)),
        sortable=True,
    )


def kernel_table(result: DatabaseResult, most: int, *, width: int) -> Table | None:
    """Return templates by processor time, in user mode and in the kernel; None without pg_stat_kcache."""
    counted = [
        (template, template.kernel, template.statements.execution_ns)
        for template in result.templates
        if template.kernel is not None and template.statements is not None
    ]
    counted.sort(key=lambda item: -(item[1].user_ns + item[1].system_ns))
    shown = [template for template, _, _ in counted[:most]]
    all_ns = sum(kernel.user_ns + kernel.system_ns for _, kernel, _ in counted)
    whole_ns = result.kernel_whole_ns or 0.0
    short = (
        f"; executions shorter than {format_duration(whole_ns)} count as user time as a whole"
        if whole_ns > _SHORT
        else ""
    )
    return table_if_any(
        f"Templates by processor time, from pg_stat_kcache{short}"
        f"{not_shown(len(counted) - most, 'other template')}",
        [
            (kernel.user_ns + kernel.system_ns, kernel, execution_ns)
            for _, kernel, execution_ns in counted[:most]
        ],
        number("processor", lambda row: duration_cell(row[0])),
        number("share", lambda row: share_cell(row[0] / all_ns if all_ns else 0.0)),
        number("user", lambda row: duration_cell(row[1].user_ns)),
        number("system", lambda row: duration_cell(row[1].system_ns)),
        # Parallel workers use several processors at a time.
        number("waiting", lambda row: duration_cell(max(0.0, row[2] - row[0]))),
        number("from disk", lambda row: bytes_cell(row[1].read_bytes)),
        number("written", lambda row: bytes_cell(row[1].written_bytes)),
        header("template", _template_cells(shown, width, parts_of(result), back=False)),
        sortable=True,
    )


def steps_table(result: DatabaseResult) -> Table | None:
    """Return how busy sessions' time divides into steps; None if pg_stat_statements was not read."""
    planned = any(step.name == "plan" for step in result.steps)
    notes: Mapping[StepName, str] = {
        "plan": "pg_stat_statements",
        "execute": "pg_stat_statements",
        "commit": "commits",
        "unknown": _COUNTED if planned else _UNCOUNTED,
    }
    return table_if_any(
        "Busy sessions by step",
        result.steps,
        header("step", lambda step: Value(_STEPS[step.name], note=notes.get(step.name, ""))),
        number("sessions", lambda step: _sessions(step.sessions)),
        number("share", lambda step: share_cell(step.share)),
    )


def routes_table(result: DatabaseResult, most: int) -> Table | None:
    """Return up to `most` routes with their sessions; None if no comment names a route."""
    return table_if_any(
        "Busy sessions by the route that comments in their statements name"
        f"{not_shown(len(result.routes) - most, 'other')}",
        result.routes[:most],
        header("route", _route),
        number("sessions", lambda route: _sessions(route.sessions)),
        number("share", lambda route: share_cell(route.share)),
        column("statement with most time", _costliest),
        sortable=True,
    )


def route_templates_table(route_activity: RouteActivity, *, width: int) -> Table:
    """Return the statements of a route."""
    texts = [template.name for template in route_activity.templates]
    return table_of(
        f"Statements of {_route(route_activity)}",
        route_activity.templates,
        number("sessions", lambda template: _sessions(template.sessions)),
        number("share", lambda template: share_cell(template.share)),
        header("template", template_cells(texts, width)),
        sortable=True,
    )


def _route(route_activity: RouteActivity) -> str:
    return route_activity.name or "(no route)"


def _costliest(route_activity: RouteActivity) -> Value:
    first = route_activity.templates[0]
    return Value(short_template(first.name, _ROUTE_WIDTH), note=share_text(first.share), code=True)


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
    return table_of(
        f"By {name}",
        found,
        header(name, lambda usage: usage.name or "(unknown)"),
        number("sessions", lambda usage: _sessions(usage.sessions)),
        number("share", lambda usage: share_cell(usage.share)),
        sortable=True,
    )


def blockers_table(
    result: DatabaseResult, *, width: int, most: int | None = None, waiters: int | None = None
) -> Table | None:
    """Return up to `most` root blockers, each with up to `waiters` sessions; None if there are none."""
    rows: list[tuple[float, BlockerFacts | None, str]] = []
    shown = result.blockers[:most]
    left = not_shown(len(result.blockers) - len(shown), "smaller root blocker")
    for blocker in shown:
        rows.append((blocker.sessions, blocker, blocker_words(blocker)))
        for waiter in blocker.waiters[:waiters]:
            text = short_template(waiter.text, max(20, width - 40)) if waiter.text else "(unknown statement)"
            who = f"{waiter.application}: " if waiter.application else ""
            rows.append((waiter.sessions, None, f"{_INDENT}blocks {who}{text} ({waiter.event})"))
    return table_if_any(
        f"Who blocks whom: blocked sessions on average, and their root blockers{left}",
        rows,
        number("blocked", lambda row: _sessions(row[0])),
        number("at most", lambda row: Value(str(row[1].most), sort=row[1].most) if row[1] else ""),
        number("chain", lambda row: Value(str(row[1].chain), sort=row[1].chain) if row[1] else ""),
        number("open for", lambda row: duration_cell(row[1].transaction_ns if row[1] else None)),
        header("by", lambda row: row[2]),
    )


def counters_table(result: DatabaseResult) -> Table | None:
    """Return by how much the server's counters grew; None if none changed."""
    seconds = (result.watch.ended_us - result.watch.begun_us) / 1e6
    return table_if_any(
        "The server's own counters: by how much they grew",
        result.counters,
        header("view", lambda counter: counter.view),
        column("object", lambda counter: counter.object),
        column("counter", lambda counter: Value(counter.counter, code=True)),
        number("grew by", lambda counter: _amount(counter.counter, counter.delta)),
        number("per second", lambda counter: _amount(counter.counter, counter.delta / seconds)),
        sortable=True,
    )


def _amount(counter: str, value: float) -> Value:
    if counter.endswith("bytes"):
        return bytes_cell(round(value))
    if counter.endswith("_time"):
        return duration_cell(value * 1e6)
    return count_cell(round(value) if value >= 100 else float(f"{value:.3g}"))


def tables_table(result: DatabaseResult, most: int, *, brief: bool = False) -> Table | None:
    """Return tables, the largest first; None if there are none. `brief` leaves columns out."""
    found = [table for table in result.tables if table.kind != "partitioned table"]
    left = not_shown(len(found) + result.tables_more - most, "other")
    return table_if_any(
        f"Tables by size, with their activity{left}",
        found[:most],
        header("table", lambda table: table.name),
        number("size", lambda table: _size(table.bytes)),
        number("indexes", lambda table: bytes_cell(table.index_bytes)),
        number("rows", lambda table: count_cell(None if table.rows is None else round(table.rows))),
        number("dead", lambda table: count_cell(table.dead)),
        number("left empty", lambda table: _bloat(table.bloat_bytes)),
        number("full scans", lambda table: count_cell(_rounded(table.whole_reads))),
        number("rows scanned", lambda table: count_cell(table.seq_rows), when=not brief),
        number("index scans", lambda table: count_cell(table.index_scans)),
        number("inserted", lambda table: count_cell(table.inserted), when=not brief),
        number("updated", lambda table: count_cell(table.updated)),
        number("HOT", lambda table: share_cell(table.hot_updated / table.updated) if table.updated else ""),
        number("deleted", lambda table: count_cell(table.deleted), when=not brief),
        number("vacuumed", lambda table: instant_cell(table.vacuumed_us), when=not brief),
        sortable=True,
    )


def _rounded(times: float | None) -> float | None:
    if times is None:
        return None
    return round(times) if times >= 10 else float(f"{times:.2g}")


def _size(size: int | None) -> Value:
    return Value("(locked)") if size is None else bytes_cell(size)


def _bloat(size: int | None) -> Value:
    return Value("unknown", sort=-1) if size is None else bytes_cell(size)


def indexes_table(result: DatabaseResult, most: int, *, doubtful: bool = False) -> Table | None:
    """Return indexes, the largest first; `doubtful` keeps only indexes that may not be worth their upkeep."""
    found = [index for index in result.indexes if index.warning or not doubtful]
    title = "Indexes that may not be worth their upkeep" if doubtful else "Indexes by size"
    words = {
        "": "",
        "invalid": "invalid: its creation failed",
        "duplicate": "the same as",
        "covered": "covered by",
        "unused": "never scanned",
    }
    return table_if_any(
        f"{title}{not_shown(len(found) - most, 'other')}",
        found[:most],
        header("index", lambda index: index.name),
        column("table", lambda index: index.table),
        number("size", lambda index: _size(index.bytes)),
        number("left empty", lambda index: _bloat(index.bloat_bytes)),
        number("scans", lambda index: count_cell(index.scans)),
        number("scans since reset", lambda index: count_cell(index.scans_ever)),
        column("reason", lambda index: f"{words[index.warning]} {index.same_as}".strip()),
        sortable=True,
    )


def islands_table(result: DatabaseResult) -> Table | None:
    """Return the islands of tables joined by foreign keys; None if there are none."""
    alone = [table for table in result.tables if table.kind != "partitioned table"]
    total = sum((table.bytes or 0) + table.index_bytes for table in alone)
    return table_if_any(
        "Islands: tables joined by foreign keys",
        result.islands,
        number("", lambda island: str(island.number)),
        number("size", lambda island: bytes_cell(island.bytes)),
        number("share", lambda island: share_cell(min(1.0, island.bytes / total) if total else 0.0)),
        header("tables", lambda island: ", ".join(island.tables)),
    )


def foreign_keys_table(result: DatabaseResult) -> Table | None:
    """Return foreign keys without an index; None if there are none."""
    bare = [foreign_key for foreign_key in result.foreign_keys if not foreign_key.indexed]
    return table_if_any(
        "Foreign keys without an index",
        bare,
        header("table", lambda key: key.table),
        column("columns", lambda key: Value(key.columns, code=True)),
        column("references", lambda key: key.referred),
        column("constraint", lambda key: key.name),
        sortable=True,
    )


def referring_table(result: DatabaseResult, most: int) -> Table | None:
    """Return how many rows refer to one row by each foreign key, the most first; None if that is unknown."""
    known = [foreign_key for foreign_key in result.foreign_keys if foreign_key.rows_each is not None]
    known.sort(key=lambda one: (-(one.most_each or one.rows_each or 0.0), one.table, one.columns))
    return table_if_any(
        "Rows that refer to one row, estimated from ANALYZE",
        known[:most],
        header("table", lambda key: key.table),
        column("columns", lambda key: Value(key.columns, code=True)),
        column("references", lambda key: key.referred),
        number("on average", lambda key: _about(key.rows_each)),
        number("at most", lambda key: _about(key.most_each)),
        column("index", lambda key: "yes" if key.indexed else "no"),
        sortable=True,
    )


def _about(number: float | None) -> str:
    return "" if number is None else number_text(number)


def settings_table(result: DatabaseResult) -> Table | None:
    """Return settings that differ from PostgreSQL's defaults; None if there are none."""
    return table_if_any(
        "Settings that differ from PostgreSQL's defaults",
        result.settings,
        header("setting", lambda setting: setting.name),
        column("value", lambda setting: Value(short_template(setting.value), code=True)),
        column("default", lambda setting: Value(short_template(setting.default), code=True)),
        column("set in", lambda setting: setting.source),
        sortable=True,
    )


def lacks_table(result: DatabaseResult) -> Table | None:
    """Return what is missing from the report, and how to get it; None if nothing is missing."""
    return table_if_any(
        "What is missing",
        result.missing,
        header("needs", lambda missing: missing.what),
        column("missing", lambda missing: missing.lost),
        column("how to get it", lambda missing: missing.remedy),
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
    return facts_table("How the server was watched, and what that cost", rows)


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
    return table_if_any(
        "Samples compared with the server's own clocks: sessions on average",
        [(name, samples, own) for name, samples, own in rows if own is not None],
        header("", lambda row: row[0]),
        number("by samples", lambda row: _sessions(row[1])),
        number("by the server", lambda row: _sessions(row[2])),
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
