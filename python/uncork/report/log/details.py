"""The section of each template: everything that the log shows about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from uncork.model.results.log import DURATION_PARTS, Contribution, Example, LogResult, TemplateFacts
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Beside, Block, Code, Column, Facts, Fold, Paragraph, Spark, Table, Value
from uncork.report.cells import count_cell, share_cell
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


def _detail(one: TemplateFacts, result: LogResult, *, whole: bool) -> Iterator[Block]:
    yield Code(one.text, "sql", "Template")
    yield Facts(tuple(_figures(one)))
    words = " ".join(_words(one))
    if words:
        yield Paragraph(words)
    tables = [_histogram(one)]
    for name, found in (
        ("application", one.applications),
        ("user", one.users),
        ("database", one.databases),
        ("host", one.hosts),
        ("server", one.servers),
    ):
        if len(found) > 1:
            tables.append(_contributions(name, found))
    sparks = [] if len(one.timeline) < _LEAST_STEPS else [_timeline(one, result)]
    yield Beside((*tables, *sparks))
    yield from _examples(one.examples, whole=whole)


def _figures(one: TemplateFacts) -> Iterator[tuple[str, str]]:
    yield "total", format_duration(one.sum_ns)
    yield "share", share_text(one.share)
    yield "count", format_count(one.executions)
    yield "mean", format_duration(one.mean_ns)
    for name, value in (("p50", one.p50_ns), ("p95", one.p95_ns), ("p99", one.p99_ns)):
        if value is not None:
            yield name, format_duration(value)
    yield "longest", format_duration(one.max_ns)
    if one.query_ids:
        more = f" and {len(one.query_ids) - 3} more" if len(one.query_ids) > 3 else ""
        yield "query id", ", ".join(query_id.id for query_id in one.query_ids[:3]) + more
    if one.rows is not None:
        yield "rows, from plans", f"{format_count(round(one.rows))} on average"
    if one.failed:
        yield "failed", format_count(one.failed)
    if one.lists is not None and one.lists.max > 1:
        yield (
            "lists",
            f"{format_count(round(one.lists.mean))} values on average, at most {format_count(one.lists.max)}",
        )
    if one.first_us is not None:
        yield "first", f"{instant_text(one.first_us)} UTC"
        yield "last", f"{instant_text(one.last_us)} UTC"


def _words(one: TemplateFacts) -> Iterator[str]:
    row = one.repetition
    if row is not None:
        way = "In a pipeline" if row.pipelined else "One by one"
        between = "without waiting" if row.pipelined else f"with {format_duration(row.waiting_ns)} of waiting"
        yield (
            f"{way}: single sessions sent {format_count(row.executions)} executions in "
            f"{count_words(row.rows, 'sequence')} of up to {format_count(row.longest)}, {between} in between."
        )
    if one.parse.count or one.bind.count:
        yield (
            f"Parsing took {format_duration(one.parse.sum_ns)} in total, binding "
            f"{format_duration(one.bind.sum_ns)}."
        )
    if one.cut:
        yield f"The log truncates {count_words(one.cut, 'execution')} of it."


def _histogram(one: TemplateFacts) -> Table:
    """Return the histogram of durations, from the shortest execution to the longest."""
    places = [place for place, count in enumerate(one.histogram) if count]
    rows = [(DURATION_PARTS[place], one.histogram[place]) for place in range(places[0], places[-1] + 1)]
    return Table(
        "Executions by duration",
        (Column("duration", header=True), Column("count", number=True), Column("share", number=True)),
        tuple((Value(name), count_cell(count), share_cell(count / one.executions)) for name, count in rows),
    )


def _contributions(name: str, found: Sequence[Contribution]) -> Table:
    return Table(
        f"By {name}",
        (Column(name, header=True), Column("count", number=True), Column("time", number=True)),
        tuple(
            (Value(of.name or "(unknown)"), count_cell(of.executions), share_cell(of.share)) for of in found
        ),
    )


def _timeline(one: TemplateFacts, result: LogResult) -> Spark:
    begin, step_s = result.timeline_us or 0, result.template_bucket_s
    last = begin + (len(one.timeline) - 1) * step_s * 1_000_000
    return Spark(
        f"Executions over time, at most {format_count(max(one.timeline))} in {step_text(step_s)}",
        tuple(map(float, one.timeline)),
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
