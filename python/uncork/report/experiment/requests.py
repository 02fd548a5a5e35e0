"""Sections on what variants answered: how requests ended, answers that differ, and data checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from uncork.model.results.experiment import DataCheckFacts, Levels, RequestCounts, RunResult
from uncork.model.units import format_count, series_words
from uncork.report.blocks import (
    Block,
    Bullets,
    DotChart,
    DotMark,
    Fold,
    Gallery,
    Legend,
    Paragraph,
    Section,
    Table,
    Value,
)
from uncork.report.cells import column, header, number, table_of
from uncork.report.experiment.view import View
from uncork.report.words import cell_words, duration_text, exact_share_text

_MOST_KINDS: Final = 4
"""Kinds of failure listed for a variant; the JSON report has all of them."""
_MOST_ANSWERS: Final = 3


def answer_words(result: RunResult) -> tuple[str, ...]:
    """Return a sentence for each variant that is compared although its answer differs from the baseline's."""
    baseline = next((variant.name for variant in result.variants if variant.baseline), "the baseline")
    first: dict[tuple[str, str], str] = {}
    for answer in result.answers:
        first.setdefault((answer.workload, answer.variant), answer.difference)
    sentences = [_answered(*place, difference, baseline) for place, difference in first.items()]
    more = len(sentences) - _MOST_ANSWERS
    return (
        *sentences[:_MOST_ANSWERS],
        *(
            [f"{more} more {'changes' if more == 1 else 'change'} an answer: see Requests."]
            if more > 0
            else []
        ),
    )


def _answered(workload: str, variant: str, difference: str, baseline: str) -> str:
    return (
        f"{variant} changes the answer on {workload}: {difference}. It is still compared with {baseline}, "
        'because the workload sets answer = "may differ".'
    )


def request_sections(view: View) -> Iterable[Section]:
    """Yield the section on requests; none for an experiment without requests."""
    counts = view.result.requests
    if not counts:
        return
    blocks: list[Block] = [
        _table(view, workload, [count for count in counts if count.workload == workload])
        for workload in dict.fromkeys(count.workload for count in counts)
    ]
    differ = [
        f"{answer.variant} on {view.place((answer.cell, answer.workload))}: {answer.difference}"
        for answer in view.result.answers
    ]
    if differ:
        blocks.append(Bullets(tuple(f"Different answer: {text}." for text in differ)))
    yield Section("requests", "Requests", tuple(blocks))


def _table(view: View, workload: str, counts: list[RequestCounts]) -> Table:
    ranked = sorted(counts, key=lambda count: view.order(count.cell, count.variant))
    late = any(count.timed_out for count in counts)
    others = any(_failures(count) for count in counts)
    confidence = view.result.confidence * 100
    return table_of(
        f"{workload}: outcome of requests; the {confidence:g} % interval of the share that succeeds assumes "
        "independent failures",
        ranked,
        header("cell", lambda count: view.cell(count.cell), when=view.factors),
        header("variant", lambda count: count.variant),
        number("requests", lambda count: format_count(count.started)),
        number("succeeded", _succeeded_cell),
        number("failed", lambda count: format_count(count.failed)),
        number("timed out", lambda count: format_count(count.timed_out), when=late),
        column("statuses", _statuses),
        column("other failures", _failures, when=others),
    )


def _succeeded_cell(counts: RequestCounts) -> Value:
    return Value(exact_share_text(counts.share), note=f"[{counts.low * 100:.4g}, {counts.high * 100:.4g}]")


def _statuses(counts: RequestCounts) -> str:
    """Format answers by status, with all 2xx as one class: ``2xx 1 200, 503 14``."""
    found = sorted((int(status), count) for status, count in counts.statuses.items() if count)
    plain = sum(count for status, count in found if 200 <= status < 300)
    parts = [f"2xx {format_count(plain)}"] if plain else []
    parts += [f"{status} {format_count(count)}" for status, count in found if not 200 <= status < 300]
    return ", ".join(parts)


def _failures(counts: RequestCounts) -> str:
    kinds = [
        (kind, count)
        for kind, count in counts.errors.items()
        if count and kind != "timed out" and not kind.startswith("status ")
    ]
    parts = [f"{kind} {format_count(count)}" for kind, count in kinds[:_MOST_KINDS]]
    return ", ".join(parts) + (", …" if len(kinds) > _MOST_KINDS else "")


_Read = Callable[[RequestCounts], float | None]


def request_chart_sections(view: View) -> Iterable[Section]:
    """Yield the charts of every cell, the last cell unfolded; none for an experiment without requests."""
    counts = view.result.requests
    cells = sorted(dict.fromkeys(count.cell for count in counts), key=view.cell_order)
    if not cells:
        return
    present = tuple(name for name in view.variants if any(count.variant == name for count in counts))
    note = "Lines are intervals of the share that succeeds; the other values cover the whole run."
    blocks: list[Block] = [Legend(present, note)]
    for cell in reversed(cells):
        charts: list[Block] = list(
            _of_cell(view, present, [count for count in counts if count.cell == cell], cell)
        )
        if len(cells) == 1:
            blocks += charts
        else:
            blocks.append(Fold(view.cell(cell), tuple(charts), open=cell == cells[-1]))
    blocks.append(
        Paragraph("Times cover all answers, including late ones; requests that timed out have no time.")
    )
    yield Section("request-charts", "Requests at a glance", tuple(blocks))


def _of_cell(
    view: View, present: tuple[str, ...], counts: list[RequestCounts], cell: Levels
) -> Iterable[Block]:
    order = [workload.name for workload in view.result.workloads]
    ranked = sorted(counts, key=lambda count: (order.index(count.workload), present.index(count.variant)))
    place = f" at {view.cell(cell)}" if cell else ""
    metrics: tuple[tuple[str, str, _Read], ...] = (
        ("succeeded", "share", lambda counts: counts.share),
        ("requests a second", "number", lambda counts: counts.throughput),
        ("mean time of a request", "ns", lambda counts: counts.mean_ns),
        ("longest time of a request", "ns", lambda counts: counts.longest_ns),
    )
    charts = tuple(
        DotChart(
            title=title.capitalize(),
            description=f"{title.capitalize()}{place}: one row per workload, one mark per variant.",
            unit="share" if unit == "share" else "ns" if unit == "ns" else "number",
            marks=tuple(
                DotMark(
                    one.workload,
                    one.variant,
                    value,
                    one.low if unit == "share" else None,
                    one.high if unit == "share" else None,
                )
                for one in ranked
                if (value := read(one)) is not None
            ),
            variants=present,
        )
        for title, unit, read in metrics
    )
    for pair in (charts[:2], charts[2:]):
        yield Gallery(tuple(chart for chart in pair if chart.marks))
    yield Fold(f"Values{place}", (_chart_table(ranked, place),))


def _chart_table(ranked: list[RequestCounts], place: str) -> Table:
    return table_of(
        f"Requests{place}: the values of the charts",
        ranked,
        header("workload", lambda counts: counts.workload),
        header("variant", lambda counts: counts.variant),
        number("succeeded", _succeeded_cell),
        number("requests a second", _rate),
        number("mean time", lambda counts: duration_text(counts.mean_ns)),
        number("longest", lambda counts: duration_text(counts.longest_ns)),
    )


def _rate(counts: RequestCounts) -> str:
    return "" if counts.throughput is None else format_count(round(counts.throughput))


def data_check_sections(view: View) -> Iterable[Section]:
    """Yield the section on data checks; none if the experiment has none."""
    if view.result.data_checks:
        yield Section("data-checks", "Data checks", (_data_check_table(view),))


def _data_check_table(view: View) -> Table:
    found = {
        (data_check.title, data_check.cell, data_check.variant): data_check.value
        for data_check in view.result.data_checks
    }
    checks = list(dict.fromkeys((title, cell) for title, cell, _ in found))

    def result_of(title: str, cell: Levels, name: str) -> Value:
        if (title, cell, name) not in found:
            return Value("", tone="muted")
        value = found[title, cell, name]
        return Value(
            _text(value), tone="plain" if value == found.get((title, cell, view.baseline)) else "unsure"
        )

    return table_of(
        "Run once on the data of each variant",
        checks,
        header("check", lambda check: check[0]),
        header("cell", lambda check: cell_words(check[1], view.factors)),
        *(number(name, [result_of(*check, name) for check in checks]) for name in view.variants),
    )


def data_check_words(checks: Sequence[DataCheckFacts], baseline: str) -> tuple[str, ...]:
    """Return a sentence for each check whose result differs from the baseline's, for the last such cell."""
    sentences = []
    for title in dict.fromkeys(check.title for check in checks):
        sentence = ""
        for cell in dict.fromkeys(check.cell for check in checks if check.title == title):
            here = {
                check.variant: check.value for check in checks if (check.title, check.cell) == (title, cell)
            }
            others = {name: value for name, value in here.items() if value != here.get(baseline)}
            if baseline in here and others:
                parts = series_words(f"{_text(value)} with {name}" for name, value in others.items())
                place = f" at {', '.join(f'{factor} {level}' for factor, level in cell)}" if cell else ""
                sentence = f"{title}{place}: {_text(here[baseline])} with {baseline}, but {parts}"
        sentences.append(sentence)
    return tuple(filter(None, sentences))


def _text(value: str | None) -> str:
    if value is None:
        return "nothing"
    return format_count(int(value)) if value.isdecimal() else value
