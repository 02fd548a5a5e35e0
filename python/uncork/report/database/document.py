"""The report on a watched server, as a document and in a terminal: where its time goes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from rich.console import Console

from uncork.model.results.database import DatabaseResult, PlanFacts, TemplateActivity
from uncork.model.template_words import short_template
from uncork.model.units import format_bytes, format_count, format_duration, share_text
from uncork.report.advice.document import write_findings
from uncork.report.blocks import (
    Beside,
    Block,
    Code,
    Document,
    Facts,
    Fold,
    Layer,
    Paragraph,
    Section,
    StackChart,
    Step,
    Table,
    filled_section,
)
from uncork.report.database.answer import uneven
from uncork.report.database.tables import (
    background_table,
    blockers_table,
    clocks_table,
    counters_table,
    foreign_keys_table,
    indexes_table,
    islands_table,
    kernel_table,
    lacks_table,
    parts_of,
    referring_table,
    route_templates_table,
    routes_table,
    settings_table,
    statements_table,
    steps_table,
    tables_table,
    template_id,
    templates_table,
    tree_table,
    usage_tables,
    watch_table,
)
from uncork.report.database.words import class_words, sessions_text
from uncork.report.draw.spark import spark_text
from uncork.report.findings import (
    careful_last,
    finding_sections,
    finding_steps,
    hidden_steps,
    missing_words,
    proof_steps,
    unplanned_words,
)
from uncork.report.system_blocks import system_blocks
from uncork.report.words import instant_text, span_text, step_text
from uncork.report.write.terminal_text import (
    TerminalPart,
    entry_width,
    wrapped,
    write_entry,
    write_lines,
    write_report,
    write_title,
)

_LINE: Final = 100
_LAYERS: Final = 7
"""Most wait classes with their own layer in the chart: as many as the page has colours."""
_LEAST_STEPS: Final = 3
_MOST: Final = 1_000


def build_database_document(result: DatabaseResult) -> Document:
    """Return the report on a watched server, without empty sections."""
    span = span_text(result.watch.begun_us, result.watch.ended_us)
    reasons = (
        *result.reasons,
        *result.warnings,
        unplanned_words(result.unplanned),
        *missing_words(result.missing),
    )
    where = f"{result.server_version} at {result.run.server}, {span}"
    return Document(
        title=result.run.id,
        question=f"Where does the time of this database go? {where}",
        answer=result.answer,
        reasons=tuple(filter(None, reasons)),
        steps=careful_last(_steps(result)),
        facts=tuple(_facts(result)),
        sections=tuple(_sections(result)),
        version=result.run.uncork_version,
    )


def _facts(result: DatabaseResult) -> Iterator[tuple[str, str]]:
    watch = result.watch
    yield "run", result.run.id
    yield "server", result.server_version + (" (standby)" if result.standby else "")
    yield "watched", format_duration((watch.ended_us - watch.begun_us) * 1000)
    yield "samples", format_count(watch.samples)
    yield "missed", format_count(watch.missed)
    yield "busy sessions", sessions_text(result.tree.sessions)
    if result.own_active is not None:
        yield "active by the server's own count", sessions_text(result.own_active)
    if result.counted_ns:
        yield "completed statements took", format_duration(result.counted_ns)
    share = watch.client_cpu_ns / max(1, (watch.ended_us - watch.begun_us) * 1000)
    yield "watching took", f"{share_text(share)} of a local processor"
    if watch.server_ns is not None:
        there = watch.server_ns / max(1, (watch.ended_us - watch.begun_us) * 1000)
        yield "and", f"{share_text(there)} of a session on the server"


def _steps(result: DatabaseResult) -> Iterator[Step]:
    """Yield what to do about the findings. A healthy server has no findings and needs no change."""
    yield from hidden_steps(result.hidden, result.unplanned, result.run.reproduce)
    if not result.tree.sessions and (result.hidden is None or not result.hidden.most):
        yield Step("Watch the server while it is slow, or for longer:", result.run.reproduce)
    elif result.run.status == "failed":
        yield Step("Watch the server again to its end:", result.run.reproduce)
    yield from finding_steps(result.findings)
    if not result.standby:
        yield from proof_steps(result.findings, result.run.id, result.run.server)
    if result.findings:
        yield Step("After a change, watch the server again:", result.run.reproduce)


def _sections(result: DatabaseResult) -> Iterator[Section]:
    yield from finding_sections(result.findings)
    time = (activity_chart(result), tree_table(result, width=_LINE), steps_table(result))
    yield from filled_section("time", "Where the time goes", *time)
    yield from filled_section("blockers", "Who blocks whom", blockers_table(result, width=_LINE))
    yield from filled_section(
        "templates",
        "Templates",
        templates_table(result, _MOST, width=_LINE),
        statements_table(result, _MOST, width=_LINE),
        kernel_table(result, _MOST, width=_LINE),
    )
    yield from filled_section("routes", "Routes", routes_table(result, _MOST), *_route_folds(result))
    usage = tuple(usage_tables(result))
    yield from filled_section("origins", "Who used the time", Beside(usage) if usage else None)
    yield from filled_section("background", "Other processes", background_table(result, width=_LINE))
    yield from filled_section(
        "schema",
        "Tables and indexes",
        indexes_table(result, _MOST, doubtful=True),
        tables_table(result, _MOST),
        _folded("All indexes", indexes_table(result, _MOST)),
    )
    yield from filled_section(
        "foreign-keys",
        "Foreign keys",
        islands_table(result),
        foreign_keys_table(result),
        referring_table(result, _MOST),
        Paragraph(_HOW_TO_DRAW) if result.islands else None,
    )
    if result.system is not None:
        yield Section("machine", "The machine", tuple(system_blocks(result.system)))
    yield from filled_section("settings", "Settings", settings_table(result))
    yield from filled_section(
        "counters", "The server's counters", _folded("All counters that changed", counters_table(result))
    )
    yield Section("watch", "How the server was watched", tuple(_how(result)))
    yield Section("reproduce", "How to repeat this profile", (Code(result.run.reproduce, "sh"),))
    yield from filled_section("details", "Template by template", *_details(result))


_HOW_TO_DRAW: Final = (
    "To draw these tables and foreign keys, repeat the profile with --graph tables.dot, then run "
    "dot -Tsvg tables.dot -o tables.svg (Graphviz)."
)


def _route_folds(result: DatabaseResult) -> Iterator[Block]:
    for route in result.routes[:_MOST]:
        yield Fold(
            f"Statements of {route.name or '(no route)'}", (route_templates_table(route, width=_LINE),)
        )


def _folded(summary: str, table: Table | None) -> Fold | None:
    return None if table is None else Fold(summary, (table,))


def _how(result: DatabaseResult) -> Iterator[Block]:
    yield Paragraph(
        "Each sample represents the time around it, so the parts add up to the whole. A session that is "
        "active and waits for nothing is on a processor or ready for one: the server does not report which. "
        "Watching resets no counters."
    )
    tables = (lacks_table(result), watch_table(result), clocks_table(result))
    yield from (table for table in tables if table is not None)


def activity_chart(result: DatabaseResult) -> StackChart | None:
    """Return busy sessions over time by class; None when the watch was too short."""
    history = result.history
    if not history.layers or len(history.layers[0].sessions) < _LEAST_STEPS:
        return None
    layers = [Layer(class_words(layer.name), layer.sessions) for layer in history.layers[:_LAYERS]]
    rest = history.layers[_LAYERS:]
    if rest:
        sums = tuple(sum(values) for values in zip(*(layer.sessions for layer in rest), strict=True))
        layers.append(Layer("other waits", sums, rest=True))
    totals = [sum(values) for values in zip(*(layer.values for layer in layers), strict=True)]
    most = max(totals)
    at = instant_text(history.start_us + totals.index(most) * history.step_s * 1_000_000)
    return StackChart(
        title="Busy sessions, by what they did or waited for",
        description=f"At most {sessions_text(most)}, at {at} UTC",
        y_title=f"sessions on average, in steps of {step_text(history.step_s)}",
        start_s=history.start_us // 1_000_000,
        step_s=history.step_s,
        layers=tuple(layers),
    )


def _details(result: DatabaseResult) -> Iterator[Block]:
    for activity in parts_of(result):
        text = short_template(activity.text, 120)
        summary = f"{share_text(activity.share)}, {sessions_text(activity.sessions)} sessions: {text}"
        yield Fold(summary, tuple(_detail(activity, result)), id=template_id(activity))


def _detail(template_activity: TemplateActivity, result: DatabaseResult) -> Iterator[Block]:
    yield Code(template_activity.text, "sql", "Template")
    facts = [(class_words(part.name), sessions_text(part.sessions)) for part in template_activity.classes]
    facts += [
        (f"application {part.name}" if part.name else "no application", sessions_text(part.sessions))
        for part in template_activity.applications
    ]
    if facts:
        yield Facts(tuple(facts))
    for plan in result.plans:
        if plan.template != template_activity.number:
            continue
        if plan.text:
            yield Code(plan.text, "text", _TITLES.get(plan.source, "Generic plan"))
            yield Paragraph(_WITH_VALUES.get(plan.source, _GENERIC))
        else:
            yield Paragraph(_no_plan(plan, result))
    figures = template_activity.statements
    if figures is None:
        return
    block = result.block_bytes
    yield Facts(
        (
            ("calls", format_count(figures.calls)),
            ("total", format_duration(figures.execution_ns)),
            ("rows", format_count(figures.rows)),
            ("found in memory", format_bytes(figures.shared_hit * block)),
            ("read from outside", format_bytes(figures.shared_read * block)),
            ("dirtied", format_bytes(figures.shared_dirtied * block)),
            ("temporary files", format_bytes((figures.temp_read + figures.temp_written) * block)),
            ("time spent reading", format_duration(figures.read_ns)),
            ("WAL", f"{format_bytes(figures.wal_bytes)}, {format_count(figures.wal_fpi)} full pages"),
        )
    )


# ---- the plan of a watched statement, in the section of its template ----


_GENERIC: Final = (
    "These are generic plans: the server planned the statements without the values of their parameters, and "
    "did not execute them. With some values it may choose another plan. Costs and rows are estimates, and "
    "whether a sort or a hash needs temporary files is unknown."
)

_WITH_VALUES: Final = {
    "seen": "The server planned the statement with the values of a session, and did not execute it. Costs "
    "and rows are estimates, and whether a sort or a hash needs temporary files is unknown.",
    "drawn": "The server planned the statement with values from the statistics of its columns, and did not "
    "execute it. With other values it may choose another plan. Costs and rows are estimates, and whether a "
    "sort or a hash needs temporary files is unknown.",
}
_TITLES: Final = {"seen": "Plan with the values of a session", "drawn": "Plan with values from statistics"}


def _no_plan(plan: PlanFacts, result: DatabaseResult) -> str:
    if any(
        unplanned.why == "no values" and plan.template in unplanned.templates
        for unplanned in result.unplanned
    ):
        return (
            "There is no plan: the server stores the statement without its values, in a form that cannot be "
            "planned. Run EXPLAIN with the values of a call."
        )
    return f'There is no plan: the server reports "{plan.reason}".'


_TREE: Final = 20
"""Characters of a line of the tree that its numbers take."""
_ROOTS: Final = 3
_WAITERS: Final = 3
"""Root blockers, and sessions that each of them blocks, shown without --full."""
_FIGURES: Final = 90
"""Characters that the numbers of a statement take."""
_KERNEL_FIGURES: Final = 66
"""Characters that the numbers of its processor time take."""
_LEAST_TEXT: Final = 20
_INDENT: Final = 4
_COARSE: Final = 0.02
"""Parts of the tree with a smaller share are grouped in the terminal."""


def render_database_terminal(
    result: DatabaseResult, console: Console, *, top: int = 10, full: bool = False
) -> None:
    """Print the report with the `top` templates and tables; `full` prints all tables."""
    parts = _terminal_parts(result, console.width, top, full=full)
    write_report(console, build_database_document(result), parts, facts=True)


def _terminal_parts(result: DatabaseResult, width: int, top: int, *, full: bool) -> Iterator[TerminalPart]:
    if full and result.findings:
        yield partial(write_findings, result.findings)
    if uneven(result):
        yield partial(_write_shape, result)
    if result.tree.sessions:
        yield tree_table(result, width=width - _TREE, least=0.0 if full else _COARSE)
        yield steps_table(result) if full or any(step.name == "plan" for step in result.steps) else None
    most, waiters = (None, None) if full else (_ROOTS, _WAITERS)
    yield blockers_table(result, width=width, most=most, waiters=waiters)
    yield partial(_write_templates, result, top)
    yield routes_table(result, top)
    if full:
        yield from (route_templates_table(route, width=width - _TREE) for route in result.routes[:top])
        yield statements_table(result, top, width=max(_LEAST_TEXT, width - _FIGURES))
        yield kernel_table(result, top, width=max(_LEAST_TEXT, width - _KERNEL_FIGURES))
        yield from usage_tables(result)
        yield from (background_table(result, width=width - _TREE), tables_table(result, top, brief=True))
    if full:
        yield from (indexes_table(result, top, doubtful=True), indexes_table(result, top))
        yield from (islands_table(result), foreign_keys_table(result), referring_table(result, top))
        yield from (settings_table(result), counters_table(result), watch_table(result), clocks_table(result))


def _write_shape(result: DatabaseResult, console: Console) -> None:
    """Print busy sessions over time as bars, because the average hides a burst."""
    history = result.history
    totals = [sum(values) for values in zip(*(layer.sessions for layer in history.layers), strict=True)]
    write_title(console, f"Busy sessions over time, in steps of {step_text(history.step_s)}")
    many = -(-len(totals) // max(_LEAST_TEXT, console.width - _INDENT))
    bars = [max(totals[place : place + many]) for place in range(0, len(totals), many)]
    write_lines(console, [f"{spark_text(bars)}  at most {sessions_text(max(totals))}"])
    console.print()


def _write_templates(result: DatabaseResult, top: int, console: Console) -> None:
    table = templates_table(result, top, width=entry_width(console, _INDENT))
    if table is None:
        return
    write_lines(console, wrapped(table.caption, console.width), "bold")
    console.print()
    for rank, sessions, share, mostly, *counted, template in table.rows:
        calls = [f"{counted[0].text} × {counted[1].text}"] if counted and counted[0].text else []
        note = f" ({mostly.note})" if mostly.note else ""
        line = f"{rank.text:>2}  {sessions.text:>5}  {share.text:>6}  {mostly.text}{note}"
        write_entry(console, (line, *calls), (template.text,), _INDENT)
    console.print()
