"""Four charts of requests: share that succeeds, requests a second, mean time, and longest time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from uncork.model.results.experiment import Levels, RequestCounts
from uncork.model.units import format_count
from uncork.report.blocks import (
    Block,
    DotChart,
    DotMark,
    Fold,
    Gallery,
    Legend,
    Paragraph,
    Section,
    Table,
)
from uncork.report.cells import header, number, table_of
from uncork.report.experiment.requests import succeeded_cell
from uncork.report.experiment.view import View
from uncork.report.quantity_words import duration_text

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
    yield Fold(f"Values{place}", (_table(ranked, place),))


def _table(ranked: list[RequestCounts], place: str) -> Table:
    return table_of(
        f"Requests{place}: the values of the charts",
        ranked,
        header("workload", lambda counts: counts.workload),
        header("variant", lambda counts: counts.variant),
        number("succeeded", succeeded_cell),
        number("requests a second", _rate),
        number("mean time", lambda counts: duration_text(counts.mean_ns)),
        number("longest", lambda counts: duration_text(counts.longest_ns)),
    )


def _rate(counts: RequestCounts) -> str:
    return "" if counts.throughput is None else format_count(round(counts.throughput))
