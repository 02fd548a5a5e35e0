"""The log report of a case: who sent the queries of the spike, what a fix changed, the published numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rich.console import Console

from uncork.model.results.case_logs import CaseLogs, LogFigure
from uncork.model.results.log_comparison import TemplateChange
from uncork.model.template_words import short_template
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.blocks import Bullets, Column, Document, Section, Step, Table, Value
from uncork.report.log.comparison import answer_log_comparison, comparison_tables
from uncork.report.quantity_words import share_text
from uncork.report.words import count_words, effect_text
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.terminal_text import (
    TerminalPart,
    as_text,
    wrapped,
    write_items,
    write_lines,
    write_report,
)

__all__ = [
    "answer_case_logs",
    "render_case_logs_html",
    "render_case_logs_json",
    "render_case_logs_markdown",
    "render_case_logs_terminal",
]

_INDENT: Final = 4


def _compose_case_logs_answer(result: CaseLogs) -> str:
    """Return who sent the queries of the spike, and how the fix changed the batch."""
    found = result.comparison.application(result.updater)
    if found is None:
        return f"Neither log has a query of {result.updater}, so there is nothing to compare."
    before, after = found.before, found.after
    lengths = (result.before.length_us * 1000, result.after.length_us * 1000)
    return (
        f"{result.updater} sent {share_text(before.of_executions)} of the queries in the spike, which "
        f"took {share_text(before.of_time)} of the time. These were {format_count(before.executions)} of "
        f"{format_count(result.comparison.before.executions)}. Sent differently ({result.after.title}), the "
        f"same {count_words(result.rows, 'row')} are {_queries(after.executions)}, and the batch took "
        f"{format_duration(lengths[1])} instead of {format_duration(lengths[0])} "
        f"({effect_text(lengths[1] / lengths[0])})."
    )


def _queries(number: int) -> str:
    return f"{format_count(number)} quer{'y' if number == 1 else 'ies'}"


def _reasons(result: CaseLogs) -> Iterator[str]:
    comparison, rows = result.comparison, result.rows
    updater = comparison.application(result.updater)
    if updater is not None and updater.before.mean_ns and updater.after.mean_ns:
        old, new = (format_duration(sent.length_us * 1000 / rows) for sent in (result.before, result.after))
        yield (
            f"Judge by the time per row, not per query: a row of the batch took {old} before and {new} "
            f"after. A query of {result.updater} took {format_duration(updater.before.mean_ns)} on average "
            f"before and {format_duration(updater.after.mean_ns)} after, because it now handles "
            f"{count_words(round(rows / updater.after.executions), 'row')}."
        )
    background = comparison.application(result.background)
    if background is not None:
        means = (result.idle_mean_ns, background.before.mean_ns, background.after.mean_ns)
        idle, spike, later = ("–" if mean is None else format_duration(mean) for mean in means)
        yield (
            f"{result.background} ran at the same time: its queries took {idle} on average before the batch "
            f"started, {spike} during the spike, {later} with the fix."
        )
    length = format_duration(comparison.before.seconds * 1e9)
    yield f"Both logs cover {length} from the start of the batch: the length of the spike before the fix."
    sizes = (format_bytes(sent.log_bytes) for sent in (result.before, result.after))
    yield f"The server logged every statement ({' before, '.join(sizes)} after); the times include that cost."
    yield (
        "This describes two logs of one batch each, on one machine, one after the other; it does not prove a "
        f"cause. An experiment does: uncork case run {result.case}."
    )
    yield from comparison.warnings


def _templates_table(result: CaseLogs, most: int, width: int) -> Table:
    """Return the costliest templates of either log, with absolute numbers: both periods are equally long."""
    found = sorted(
        result.comparison.templates, key=lambda one: (-max(one.before.sum_ns, one.after.sum_ns), one.text)
    )
    left = len(found) - most
    more = f"; {count_words(left, 'other template')} not shown" if left > 0 else ""
    return Table(
        f"Templates by time, before → after{more}",
        (
            Column("time", number=True),
            Column("count", number=True),
            Column("mean", number=True),
            Column("longest", number=True),
            Column("template", header=True),
        ),
        tuple(
            (
                _pair(change, lambda period: period.sum_ns, format_duration),
                _pair(change, lambda period: period.executions, format_count),
                _pair(change, lambda period: period.mean_ns, format_duration),
                _pair(change, lambda period: period.max_ns, format_duration),
                Value(short_template(change.text, width), code=True),
            )
            for change in found[:most]
        ),
    )


def _pair(one: TemplateChange, read: Any, shown: Any) -> Value:
    periods = (one.before, one.after)
    return Value(" → ".join(shown(read(period)) if period.executions else "–" for period in periods))


def _figures_table(result: CaseLogs) -> Table:
    return Table(
        "Published numbers, and the numbers of these logs",
        (
            Column("", header=True),
            Column("published"),
            Column("measured"),
            Column("change measured", number=True),
        ),
        tuple(
            (
                Value(figure.name),
                Value(" → ".join(filter(None, (figure.before, figure.after)))),
                Value(" → ".join(_measured(figure))),
                Value(_change(figure)),
            )
            for figure in result.figures
        ),
    )


def _differences(result: CaseLogs) -> tuple[str, ...]:
    return tuple(f"{figure.name}: {figure.note}." for figure in result.figures if figure.note)


def _measured(one: LogFigure) -> Iterator[str]:
    shows = {"ns": format_duration, "share": share_text, "count": format_count}
    for value in one.measured:
        yield "–" if value is None else shows[one.unit](value)


def _change(one: LogFigure) -> str:
    before, after = one.measured
    return effect_text(after / before) if before and after and one.unit != "share" else ""


def _question(result: CaseLogs) -> str:
    levels = ", ".join(f"{name} {format_count(int(level))}" for name, level in result.levels)
    return f"{result.question} ({result.case}: {levels}; {result.before.title} → {result.after.title})"


def _document(result: CaseLogs, width: int, most: int) -> Document:
    comparison = result.comparison
    return Document(
        title=f"{comparison.before_id} → {comparison.id}",
        question=_question(result),
        answer=result.answer,
        reasons=tuple(_reasons(result)),
        steps=(
            Step(
                "Prove it: compare all ways to send the batch, interleaved, over several starts of the "
                "server:",
                f"uncork case run {result.case}",
            ),
            Step(
                "Look at your own spike: compare its log with the log of a quiet hour, or of after the "
                "change:",
                "uncork profile logs spike.log --against quiet.log",
            ),
        ),
        tally=(),
        facts=(("before", comparison.before_id), ("after", comparison.id), ("source", result.source)),
        variants=(),
        baseline="",
        sections=(
            Section("totals", "Both logs", tuple(comparison_tables(comparison))),
            Section("templates", "Template by template", (_templates_table(result, most, width),)),
            Section(
                "published", "Published numbers", (_figures_table(result), Bullets(_differences(result)))
            ),
        ),
        version=comparison.uncork_version,
        heading="What to know",
    )


def render_case_logs_terminal(result: CaseLogs, console: Console, *, top: int = 5) -> None:
    """Print who caused the spike, the findings, both logs side by side, and the published numbers."""
    templates = _templates_table(result, top, console.width - _INDENT)
    parts: tuple[TerminalPart, ...] = (
        *comparison_tables(result.comparison),
        partial(_write_templates, templates),
        _figures_table(result),
        partial(write_items, items=_differences(result)),
    )
    write_report(console, _document(result, console.width - _INDENT, top), parts)


def _write_templates(table: Table, console: Console) -> None:
    """Print templates with their numbers, each template on its own line."""
    write_lines(console, wrapped(table.caption, console.width), "bold")
    console.print()
    for time, count, mean, longest, template in table.rows:
        line = f"{time.text}   count {count.text}   mean {mean.text}   longest {longest.text}"
        console.print(as_text(console, line, "bold"), soft_wrap=True)
        console.print(as_text(console, " " * _INDENT + template.text), soft_wrap=True)
    console.print()


def render_case_logs_html(result: CaseLogs) -> str:
    """Return the report as one self-contained page."""
    return html_page(_document(result, 160, 100))


def render_case_logs_markdown(result: CaseLogs) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    return markdown_text(_document(result, 160, 100))


def render_case_logs_json(result: CaseLogs) -> str:
    """Return the result as a JSON object that `case_logs_schema` describes, ending with a newline."""
    return json_text(result)


def answer_case_logs(result: CaseLogs) -> CaseLogs:
    """Return the result with its answer, and with that of the comparison in it."""
    return replace(
        result, comparison=answer_log_comparison(result.comparison), answer=_compose_case_logs_answer(result)
    )
