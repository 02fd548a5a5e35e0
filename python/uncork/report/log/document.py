"""The report on a log, as a document and in a terminal: where the time went, then the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from rich.console import Console

from uncork.model.results.log import DURATION_PARTS, Contribution, Example, LogResult, TemplateFacts
from uncork.model.template_words import short_template
from uncork.model.units import (
    count_words,
    format_bytes,
    format_count,
    format_duration,
    series_words,
    share_text,
)
from uncork.report.advice.document import write_findings
from uncork.report.blocks import (
    Beside,
    Block,
    Code,
    Document,
    Facts,
    Fold,
    Paragraph,
    Section,
    Spark,
    Step,
    Table,
    filled_section,
)
from uncork.report.cells import count_cell, header, number, share_cell, table_of
from uncork.report.findings import careful_last, finding_sections, finding_steps, missing_words
from uncork.report.log.charts import EXECUTIONS, busy_charts, executions_chart, rate_charts
from uncork.report.log.pool import pool_tables
from uncork.report.log.tables import (
    activity_tables,
    contributions_tables,
    files_table,
    histogram_table,
    hours_table,
    lines_words,
    messages_table,
    one_line,
    overall_facts,
    protocol_table,
    rejected_table,
    route_folds,
    route_tables,
    routes_table,
    server_hours_table,
    servers_table,
    session_tables,
    slowest_table,
    template_id,
    templates_table,
    transactions_table,
)
from uncork.report.words import instant_text, span_text, step_text
from uncork.report.write.terminal_text import (
    TerminalPart,
    as_text,
    entry_width,
    wrapped,
    write_answer,
    write_entry,
    write_items,
    write_lines,
    write_paragraph,
    write_report,
    write_title,
)

_LINE: Final = 100
_ERRORS: Final = "Errors and warnings by kind"
_SLOWEST: Final = 50


MOST_TEMPLATES: Final = 1_000
"""Most templates that a report shows. Each takes 0.2 ms to write; the result, and its JSON, has more."""
PARTS_OF_MARKDOWN: Final = 200
"""Most templates with their own section in Markdown, which people read from top to bottom."""


def build_log_document(result: LogResult, *, parts: int | None = None, has_sections: bool = True) -> Document:
    """Return the report on a log, without empty sections, or without any.

    It shows the `MOST_TEMPLATES` with the most time. The first `parts` of them (by default all) have a
    section of their own; a table lists the others too.
    """
    shown, left_out = result.templates[:MOST_TEMPLATES], result.templates[MOST_TEMPLATES:]
    result = replace(result, templates=shown, templates_more=result.templates_more + len(left_out))
    parts = len(result.templates) if parts is None else parts
    span = span_text(result.first_us, result.last_us)
    files = ", ".join(file.name for file in result.files[:3])
    more = f" and {len(result.files) - 3} more" if len(result.files) > 3 else ""
    return Document(
        title=result.run.id,
        question=f"Where did the time go? {files}{more}{f', {span}' if span else ''}",
        answer=result.answer,
        reasons=(*result.reasons, *result.warnings, *missing_words(result.missing)),
        steps=careful_last(_steps(result)),
        facts=tuple(_facts(result)),
        variants=(EXECUTIONS,),
        sections=tuple(_sections(result, parts)) if has_sections else (),
        version=result.run.uncork_version,
    )


def _steps(result: LogResult) -> Iterator[Step]:
    if not result.executions.count and result.pool is None:
        yield Step("Make the server log durations for a while, then profile the log again:", _LOG_ALL)
        return
    yield from finding_steps(result.findings)
    if result.events is not None:
        yield Step(
            "Query every entry with SQL, here or with any tool that reads Parquet:",
            f'uncork sql {result.run.id} "{_COUNT_KINDS}"',
        )
    if result.findings:
        database = next((database.name for database in result.databases if database.name), "")
        if result.servers:
            yield Step(
                "A server shows indexes, plans and waits. Read its log with --only-server, then judge both:",
                f"uncork advise last postgresql:///{database}",
            )
        else:
            yield Step(
                "Judge the log together with its server, which shows indexes, plans and waits:",
                f"uncork advise {result.run.id} postgresql:///{database}",
            )
        yield Step("After a change, look at the same templates in a new log:", result.run.reproduce)


_COUNT_KINDS: Final = "SELECT kind, count(*) FROM log_events GROUP BY kind"
_LOG_ALL: Final = 'psql -c "ALTER SYSTEM SET log_min_duration_statement = 0" -c "SELECT pg_reload_conf()"'


def _facts(result: LogResult) -> Iterator[tuple[str, str]]:
    run = result.run
    yield "run", run.id
    yield "read", f"{format_bytes(run.bytes)} in {format_duration(run.elapsed_ns)}"
    yield "entries", format_count(result.entries)
    lines = lines_words(result)
    if lines:
        yield "lines", lines
    yield "not understood", count_words(result.rejected, "line")
    if result.own:
        yield "not counted", f"{format_count(result.own)} entries of uncork's own watching"
    yield "executions", format_count(result.executions.count)
    yield "statement time", format_duration(result.executions.sum_ns)
    yield from overall_facts(result)
    yield "templates", format_count(len(result.templates) + result.templates_more)
    if result.anonymous:
        yield "anonymised", "no literals, parameters or details; pseudonyms for users and hosts"


def _sections(result: LogResult, parts: int) -> Iterator[Section]:
    yield from finding_sections(result.findings)
    yield from filled_section("servers", "Servers", servers_table(result, len(result.servers)))
    if result.executions.count:
        yield Section(
            "templates",
            "Where the time went",
            (templates_table(result, len(result.templates), width=_LINE), *_protocol(result)),
        )
        slowest = slowest_table(result, _SLOWEST)
        if slowest is not None:
            longest = format_duration(result.slowest[0].duration_ns)
            fold = Fold(f"The slowest {len(slowest.rows)}, up to {longest}", (slowest,))
            yield Section("slowest", "Slowest single statements", (fold,))
        routes = (routes_table(result, len(result.routes)), *route_folds(result))
        yield from filled_section("routes", "Who sent which statements", *routes)
        yield Section("time", "Over time, and by duration", tuple(_over_time(result)))
        yield Section("origins", "Who used the time", (Beside(tuple(contributions_tables(result))),))
    yield from filled_section("transactions", "Transactions", transactions_table(result))
    if result.pool is not None:
        yield Section("pool", "PgBouncer", tuple(pool_tables(result.pool, 200)))
    if result.sessions is not None:
        whole, *named = session_tables(result.sessions)
        yield from filled_section("sessions", "Sessions", whole, Beside(tuple(named)) if named else None)
    yield from filled_section(
        "errors", "Errors", messages_table(_ERRORS, result.errors, 200), *_error_folds(result)
    )
    yield from filled_section("server", "Locks, files, checkpoints, autovacuum", *activity_tables(result))
    yield from filled_section(
        "notices", "Other messages", messages_table("Other messages", result.notices, 100)
    )
    yield from filled_section("files", "Files read", files_table(result), rejected_table(result))
    yield Section("reproduce", "How to repeat this profile", (Code(result.run.reproduce, "sh"),))
    yield from filled_section("details", "Template by template", *template_folds(result, parts))


def _protocol(result: LogResult) -> Iterator[Block]:
    table = protocol_table(result, len(result.templates), width=_LINE)
    if table is not None:
        before_ns = result.parse.sum_ns + result.bind.sum_ns
        yield Fold(f"Parse, bind and execute: {format_duration(before_ns)} before executing", (table,))


def _over_time(result: LogResult) -> Iterator[Block]:
    yield from busy_charts(result)
    executions, histogram = executions_chart(result), histogram_table(result)
    if executions is not None:
        yield executions
    rates = tuple(rate_charts(result))
    if rates:
        *names, last = (chart.title.rpartition(", ")[2] for chart in rates)
        listed = f"{', '.join(names)} and {last}" if names else last
        yield Fold(f"Executions a second {listed}", rates)
    hours = hours_table(result.hours, result.hour_s)
    if hours is not None:
        yield Fold("Statements, durations and errors by the hour", (hours,))
    by_server = server_hours_table(result)
    if by_server is not None:
        yield Fold("Statements and their p95 by the hour, server by server", (by_server,))
    if histogram is not None:
        yield histogram


def _error_folds(result: LogResult) -> Iterator[Block]:
    for error in result.errors[:20]:
        parts = (
            ("", error.example),
            ("DETAIL", error.detail),
            ("HINT", error.hint),
            ("CONTEXT", error.context),
            ("STATEMENT", error.statement),
        )
        text = "\n".join(f"{name}:  {part}" if name else part for name, part in parts if part)
        yield Fold(f"{format_count(error.count)} × {short_template(error.message, 120)}", (Code(text),))


_INDENT: Final = 4
_PROTOCOL_FIGURES: Final = 42
"""Characters that the times of a template's steps take."""
_LEAST_TEXT: Final = 20


def render_log_terminal(
    result: LogResult, console: Console, *, top: int = 10, rejected: bool = False, full: bool = False
) -> None:
    """Print the report with its `top` templates, `rejected` lines, and with `full` all tables."""
    parts = _terminal_parts(result, console.width, top, rejected=rejected, full=full)
    write_report(console, build_log_document(result, has_sections=False), parts)


def render_log_live(result: LogResult, console: Console, state: str, *, top: int) -> None:
    """Replace the screen with what the log shows so far, as much as fits."""
    with console.capture() as captured:
        write_paragraph(console, state, "italic")
        write_answer(console, result.answer)
        write_items(console, (*result.warnings, *result.reasons))
        if result.executions.count:
            _write_templates(result, console, top)
    lines = captured.get().splitlines()[: max(1, console.height - 1)]
    console.file.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
    console.file.flush()


def _write_templates(result: LogResult, console: Console, top: int) -> None:
    table = templates_table(result, top, width=entry_width(console, _INDENT))
    write_lines(console, wrapped(table.caption, console.width), "bold")
    console.print()
    figures = [row[1:-1] for row in table.rows]
    widths = [max(len(value.text) for value in column) for column in zip(*figures, strict=True)]
    for row in table.rows:
        rank, *values, template = row
        time, share, count, mean, *quantiles = (
            value.text.rjust(width) for value, width in zip(values, widths, strict=True)
        )
        names = ("p50", "p95", "p99", "longest")
        shown = "  ".join(f"{name} {value}" for name, value in zip(names, quantiles, strict=True))
        numbers = f"{rank.text:>2}  {time}  {share}  {count} × {mean}"
        write_entry(console, (numbers, shown), filter(None, (template.text, template.note)), _INDENT)
    console.print()


def _write_slowest(result: LogResult, console: Console, top: int) -> None:
    shown = result.slowest[:top]
    if not shown:
        return
    write_title(console, "Slowest single statements")
    durations = [format_duration(statement.duration_ns) for statement in shown]
    width = max(map(len, durations))
    for statement, duration in zip(shown, durations, strict=True):
        names = (
            ("server", statement.server if result.servers else ""),
            ("database", statement.database),
            ("user", statement.user),
            ("", statement.application),
            ("from", statement.host),
        )
        whose = ", ".join(f"{name} {value}".strip() for name, value in names if value)
        line = f"{duration:>{width}}  {instant_text(statement.time_us)}  {whose}".rstrip()
        console.print(as_text(console, line, "bold"), soft_wrap=True)
        for text in filter(None, (statement.text, statement.parameters)):
            shortened = one_line(text, console.width - _INDENT)
            console.print(as_text(console, " " * _INDENT + shortened), soft_wrap=True)
    console.print()


def _write_rejected(result: LogResult, console: Console) -> None:
    write_title(console, f"Lines that belong to no entry: the first of {format_count(result.rejected)}")
    for line in result.rejected_lines:
        number = "" if line.line is None else f":{line.line}"
        console.print(as_text(console, f"{line.file}{number}: {line.text}"), soft_wrap=True)
    console.print()


def _terminal_parts(
    result: LogResult, width: int, top: int, *, rejected: bool, full: bool
) -> Iterator[TerminalPart]:
    lines = lines_words(result)
    if lines and (full or result.rejected):
        yield partial(write_paragraph, text=f"Lines: {lines}.", style="italic")
    if result.findings:
        yield partial(write_findings, result.findings)
    servers = servers_table(result, len(result.servers) if full else top)
    if servers is not None:
        yield servers
    if result.executions.count:
        overall = ", ".join(f"{name} {value}" for name, value in overall_facts(result))
        if overall:
            text = f"All {count_words(result.executions.count, 'statement')}: {overall}."
            yield partial(write_paragraph, text=text)
        yield partial(_write_templates, result, top=top)
        yield from route_tables(result, top, full=full)
        origins = [table for table in contributions_tables(result) if len(table.rows) > 1]
        yield from origins if full else origins[:1]
        yield histogram_table(result)
        if full:
            yield protocol_table(result, top, width=max(_LEAST_TEXT, width - _PROTOCOL_FIGURES))
            yield partial(_write_slowest, result, top=top)
            yield hours_table(result.hours, result.hour_s)
    if result.pool is not None:
        yield from pool_tables(result.pool, top)
    yield messages_table(_ERRORS, result.errors, top)
    if full:
        if result.sessions is not None:
            yield from session_tables(result.sessions)
        yield from activity_tables(result)
    if full or any(file.trouble or file.dialect is None or file.rejected for file in result.files):
        yield files_table(result)
    if rejected and result.rejected_lines:
        yield partial(_write_rejected, result)


# ---- the section of each template: everything that the log shows about it ----

_WHOLE: Final = 200
"""Templates whose examples are shown in full. The others show the slowest example and a plan, shortened.

Two thousand templates with three examples of 16 kB each would make a page of 100 MB.
"""
_AT_ONCE: Final = 50
"""Templates whose sections a browser draws with the page. It draws the others when they are opened."""
_CUT: Final = 1_000
_LEAST_STEPS: Final = 3


def template_folds(result: LogResult, most: int) -> Iterator[Fold]:
    """Yield a fold for each of the first `most` templates that were executed."""
    for rank, one in enumerate((template for template in result.templates[:most] if template.executions), 1):
        summary = (
            f"{rank}. {share_text(one.share)}, {format_count(one.executions)} × "
            f"{format_duration(one.mean_ns)}: {short_template(one.text, 120)}"
        )
        yield Fold(
            summary,
            tuple(_detail(one, result, whole=rank <= _WHOLE)),
            id=template_id(one),
            later=rank > _AT_ONCE,
        )


def _detail(template: TemplateFacts, result: LogResult, *, whole: bool) -> Iterator[Block]:
    yield Code(template.text, "sql", "Template")
    yield Facts(tuple(_figures(template)))
    words = " ".join(_words(template))
    if words:
        yield Paragraph(words)
    tables = [_histogram(template)]
    for name, found in (
        ("application", template.applications),
        ("user", template.users),
        ("database", template.databases),
        ("host", template.hosts),
        ("server", template.servers),
    ):
        if len(found) > 1:
            tables.append(_contributions(name, found))
    sparks = [] if len(template.timeline) < _LEAST_STEPS else [_timeline(template, result)]
    yield Beside((*tables, *sparks))
    kinds: dict[tuple[bool, str, int], list[Example]] = {}
    for one in template.examples:
        if whole or one.kind in ("slowest", "plan"):
            kinds.setdefault((one.kind == "plan", one.file, one.offset), []).append(one)
    for (is_plan, file, offset), same in kinds.items():
        one = same[0]
        text = one.text if whole else _cut(one.text)
        if one.parameters:
            text += f"\n-- {one.parameters if whole else _cut(one.parameters)}"
        yield Code(
            text,
            "text" if is_plan else "sql",
            f"{series_words(example.kind for example in same)}: {format_duration(one.duration_ns)}, "
            f"{instant_text(one.time_us)}, {file} at byte {offset}",
        )


def _figures(template: TemplateFacts) -> Iterator[tuple[str, str]]:
    yield "total", format_duration(template.sum_ns)
    yield "share", share_text(template.share)
    yield "count", format_count(template.executions)
    yield "mean", format_duration(template.mean_ns)
    for name, value in (("p50", template.p50_ns), ("p95", template.p95_ns), ("p99", template.p99_ns)):
        if value is not None:
            yield name, format_duration(value)
    yield "longest", format_duration(template.max_ns)
    if template.query_ids:
        more = f" and {len(template.query_ids) - 3} more" if len(template.query_ids) > 3 else ""
        yield "query id", ", ".join(query_id.id for query_id in template.query_ids[:3]) + more
    if template.rows is not None:
        yield "rows, from plans", f"{format_count(round(template.rows))} on average"
    if template.failed:
        yield "failed", format_count(template.failed)
    if template.lists is not None and template.lists.max > 1:
        yield (
            "lists",
            f"{format_count(round(template.lists.mean))} values on average, at most "
            f"{format_count(template.lists.max)}",
        )
    if template.first_us is not None:
        yield "first", f"{instant_text(template.first_us)} UTC"
        yield "last", f"{instant_text(template.last_us)} UTC"


def _words(template: TemplateFacts) -> Iterator[str]:
    row = template.repetition
    if row is not None:
        way = "In a pipeline" if row.pipelined else "One by one"
        between = "without waiting" if row.pipelined else f"with {format_duration(row.waiting_ns)} of waiting"
        yield (
            f"{way}: single sessions sent {format_count(row.executions)} executions in "
            f"{count_words(row.rows, 'sequence')} of up to {format_count(row.longest)}, {between} in between."
        )
    if template.parse.count or template.bind.count:
        yield (
            f"Parsing took {format_duration(template.parse.sum_ns)} in total, binding "
            f"{format_duration(template.bind.sum_ns)}."
        )
    if template.cut:
        yield f"The log truncates {count_words(template.cut, 'execution')} of it."


def _histogram(template: TemplateFacts) -> Table:
    places = [place for place, count in enumerate(template.histogram) if count]
    occupied = slice(places[0], places[-1] + 1)
    return table_of(
        "Executions by duration",
        template.histogram[occupied],
        header("duration", DURATION_PARTS[occupied]),
        number("count", [count_cell(count) for count in template.histogram[occupied]]),
        number("share", lambda count: share_cell(count / template.executions)),
    )


def _contributions(name: str, found: Sequence[Contribution]) -> Table:
    return table_of(
        f"By {name}",
        found,
        header(name, lambda part: part.name or "(unknown)"),
        number("count", lambda part: count_cell(part.executions)),
        number("time", lambda part: share_cell(part.share)),
    )


def _timeline(template: TemplateFacts, result: LogResult) -> Spark:
    begin, step_s = result.timeline_us or 0, result.template_bucket_s
    last = begin + (len(template.timeline) - 1) * step_s * 1_000_000
    return Spark(
        f"Executions over time, at most {format_count(max(template.timeline))} in {step_text(step_s)}",
        tuple(map(float, template.timeline)),
        (instant_text(begin), instant_text(last)),
    )


def _cut(text: str) -> str:
    left = len(text) - _CUT
    return text if left <= 0 else f"{text[:_CUT]}… ({format_count(left)} characters more)"
