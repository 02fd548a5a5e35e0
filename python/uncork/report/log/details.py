"""The section of each template: everything that the log shows about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from uncork.model.results.log import DURATION_PARTS, Contribution, Example, LogResult, TemplateFacts
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Beside, Block, Code, Facts, Fold, Paragraph, Spark, Table
from uncork.report.cells import count_cell, header, number, share_cell, table_of
from uncork.report.log.tables import template_id
from uncork.report.quantity_words import instant_text, share_text, step_text
from uncork.report.words import count_words, series_words

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
    yield from _examples(template.examples, whole=whole)


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
    """Return the histogram of durations, from the shortest execution to the longest."""
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


def _examples(examples: Sequence[Example], *, whole: bool) -> Iterator[Code]:
    """Yield the examples; an execution of several kinds (slowest and newest) appears once."""
    kinds: dict[tuple[bool, str, int], list[Example]] = {}
    for one in examples:
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


def _cut(text: str) -> str:
    left = len(text) - _CUT
    return text if left <= 0 else f"{text[:_CUT]}… ({format_count(left)} characters more)"
