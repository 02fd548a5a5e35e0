"""The report on loads that started together: their answers, a table side by side, and one time axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from rich.console import Console

from uncork.model.load import LoadOutcome
from uncork.model.results.load import LoadOfTogether, LoadResult, TogetherResult
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Block, Code, Document, Legend, Line, LineChart, Section, Table
from uncork.report.cells import header, number, table_of
from uncork.report.headline import capital, fitting, uncapital
from uncork.report.load.answer import answer_load
from uncork.report.load.charts import p99_points, throughput_points
from uncork.report.load.document import build_load_document
from uncork.report.load.tables import counts_table, errors_table, latency_table
from uncork.report.load.words import operation_word
from uncork.report.words import capitalised, duration_text, part_text, rate_text
from uncork.report.write.terminal_text import write_report

_APART_NS: Final = 50_000_000
"""Loads that started further apart than this did not start together."""
_PARTLY: Final = 0.95
"""If the shortest load lasted less than this fraction of the longest, they overlapped only partly."""
_LEFT_OUT: Final = frozenset({"environment", "reproduce"})
"""Sections of the loads' reports that repeat what the run's report has."""


def answer_together(result: TogetherResult) -> TogetherResult:
    """Return the result with its answer and warnings, and those of its loads."""
    loads = tuple(replace(load, load=answer_load(load.load)) for load in result.loads)
    answered = replace(result, loads=loads)
    return replace(answered, answer=_answer(answered), warnings=tuple(_warnings(answered)))


def _answer(result: TogetherResult) -> str:
    rates = [
        f"{rate_text(load.load.operations_per_second)} {operation_word(load.load)}s a second ({load.name})"
        for load in result.loads
    ]
    failed = [load.name for load in result.loads if load.load.counts.failed or not load.load.counts.succeeded]
    late = [load.name for load in result.loads if load.load.counts.unsent or load.load.counts.skipped]
    end = f", with failures in {' and '.join(failed)}" if failed else ", without failures"
    end += f", and arrivals not sent in {' and '.join(late)}" if late else ""
    interrupted = any(load.load.run.outcome is LoadOutcome.INTERRUPTED for load in result.loads)
    opening = "interrupted: " if interrupted else ""
    count = len(result.loads)
    return fitting(
        (
            (capital(f"{opening}together, the loads handled {' and '.join(rates)}{end}"), _answers(result)),
            (capital(f"{opening}{count} loads ran together{end}"), f"{'; '.join(rates)}. {_answers(result)}"),
        )
    )


def _answers(result: TogetherResult) -> str:
    return " ".join(f"{load.name}: {load.load.answer}" for load in result.loads).rstrip(".")


def _warnings(result: TogetherResult) -> Iterator[str]:
    if result.apart_ns > _APART_NS:
        apart = format_duration(result.apart_ns)
        yield f"The loads started {apart} apart: one was not ready at their start, or the machine was busy."
    lasted = {load.name: load.load.run.elapsed_ns for load in result.loads}
    longest, shortest = max(lasted, key=lasted.__getitem__), min(lasted, key=lasted.__getitem__)
    if lasted[shortest] < _PARTLY * lasted[longest]:
        rest = format_duration(lasted[longest] - lasted[shortest])
        yield (
            f"Load {shortest} ended {rest} before {longest}: for that time, {longest} was alone; give "
            "both the same duration to compare them."
        )
    of: dict[str, list[str]] = {}
    for load in result.loads:
        for text in load.load.warnings:
            of.setdefault(text, []).append(load.name)
    yield from (f"{' and '.join(names)}: {text}" for text, names in of.items())


def build_together_document(result: TogetherResult) -> Document:
    """Return the report on loads that started together, without empty sections."""
    names = tuple(load.name for load in result.loads)
    said = [(load.name, load.load.generator.sentence) for load in result.loads]
    variants = dict.fromkeys((*names, *(name for load in result.loads for name in _document(load).variants)))
    return Document(
        title=result.run.id,
        question=f"{' and '.join(names)}, at the same time",
        answer=result.answer,
        reasons=(*(f"{name}: {text}" for name, text in said if text), *result.warnings),
        steps=(),
        facts=tuple(_facts(result)),
        variants=tuple(variants),
        sections=(
            Section("together", "Side by side", (_side_by_side(result),)),
            *_over_time(result),
            *(section for load in result.loads for section in _sections(load)),
            Section("reproduce", "How to repeat these loads", (Code(result.run.reproduce, "sh"),)),
        ),
        version=result.run.uncork_version,
    )


def render_together_terminal(result: TogetherResult, console: Console) -> None:
    """Print the report: the loads side by side, then the latency and the counts of each."""
    write_report(console, build_together_document(result), _tables(result))


def _tables(result: TogetherResult) -> Iterator[Table | None]:
    yield _side_by_side(result)
    for load in result.loads:
        for table in (
            latency_table(load.load) if load.load.operation.count else None,
            errors_table(load.load),
            counts_table(load.load),
        ):
            yield None if table is None else replace(table, caption=f"{load.name}: {table.caption}")


def _document(together: LoadOfTogether) -> Document:
    return build_load_document(together.load)


def _facts(result: TogetherResult) -> Iterator[tuple[str, str]]:
    yield "run", result.run.id
    yield "started", result.run.started_at[:16].replace("T", " ")
    yield "loads", format_count(len(result.loads))
    yield "started apart", format_duration(result.apart_ns)
    for load in result.loads:
        yield f"{load.name}: server", load.load.run.server
        yield f"{load.name}: outcome", str(load.load.run.outcome)


def _sections(together: LoadOfTogether) -> Iterator[Section]:
    for section in _document(together).sections:
        if section.id not in _LEFT_OUT:
            title = f"{together.name}: {uncapital(section.title)}"
            yield replace(section, id=f"{together.name}-{section.id}", title=title)


def _side_by_side(result: TogetherResult) -> Table:
    loads = [together.load for together in result.loads]
    rows: list[tuple[str, Callable[[LoadResult], str]]] = [
        ("operations", operation_word),
        ("measured", lambda load: format_duration(load.run.elapsed_ns)),
        ("succeeded a second", lambda load: rate_text(load.operations_per_second)),
        ("p50", lambda load: duration_text(load.operation.p50_ns)),
        ("p99", lambda load: duration_text(load.operation.p99_ns)),
        ("p99.9", lambda load: duration_text(load.operation.p999_ns)),
        ("longest", lambda load: duration_text(load.operation.max_ns)),
        ("arrivals", lambda load: "" if load.counts.arrivals is None else format_count(load.counts.arrivals)),
        ("… skipped", lambda load: _open(load, load.counts.skipped)),
        ("… never sent", lambda load: _open(load, load.counts.unsent)),
        ("started", lambda load: format_count(load.counts.started)),
        ("… succeeded", lambda load: format_count(load.counts.succeeded)),
        ("… failed", _failed),
    ]
    shown = [(name, texts) for name, text in rows if any(texts := [text(load) for load in loads])]
    return table_of(
        "The loads side by side; latency counts from the intended start in an open loop",
        shown,
        header("", lambda row: row[0]),
        *(
            number(together.name, [texts[place] for _, texts in shown])
            for place, together in enumerate(result.loads)
        ),
    )


def _open(load: LoadResult, count: int) -> str:
    return "" if load.counts.arrivals is None else format_count(count)


def _failed(load: LoadResult) -> str:
    counts = load.counts
    share = f" ({part_text(counts.failed, counts.started)})" if counts.failed else ""
    return f"{format_count(counts.failed)}{share}"


def _over_time(result: TogetherResult) -> Iterator[Section]:
    names = tuple(load.name for load in result.loads)
    charts: list[Block] = []
    for title, unit, y_title, points in (
        ("Throughput of all loads over time", "number", "operations a second", throughput_points),
        ("p99 latency of all loads over time", "ns", "p99 latency of each second", p99_points),
    ):
        lines = [Line(load.name, found) for load in result.loads if (found := points(load.load)) is not None]
        if lines:
            charts.append(
                LineChart(
                    title=title,
                    description=f"{capitalised(y_title)}: {', '.join(names)}.",
                    axis="time",
                    x_title="seconds from the common start",
                    y_title=y_title,
                    unit="ns" if unit == "ns" else "number",
                    lines=tuple(lines),
                    variants=names,
                    wide=True,
                    from_zero=unit == "number",
                )
            )
    if charts:
        yield Section("together-series", "Over time", (Legend(names), *charts))
