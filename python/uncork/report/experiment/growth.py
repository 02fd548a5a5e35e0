"""The section on growth: how times grow along a factor, extrapolated to a much larger size."""

from __future__ import annotations

import math
from collections.abc import Iterable

from uncork.model.results.experiment import Levels
from uncork.model.results.growth import GrowthFacts, GrowthLine
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import (
    Block,
    Gallery,
    Legend,
    Line,
    LineChart,
    Paragraph,
    Section,
    Table,
    Value,
)
from uncork.report.cells import header, number, table_of
from uncork.report.draw.chart_parts import value_label
from uncork.report.experiment.view import View
from uncork.report.words import cell_words


def growth_sections(view: View) -> Iterable[Section]:
    """Yield the section on growth, if the experiment requests it."""
    growth = view.result.growth
    if growth is None:
        return
    blocks: list[Block] = [Paragraph(growth_words(growth))]
    if growth.lines:
        charts = tuple(_charts(view, growth))
        present = tuple(name for name in view.variants if any(line.variant == name for line in growth.lines))
        blocks += [growth_table(view, growth), Legend(present), Gallery(charts)]
    yield Section("growth", f"How time grows with {growth.factor}", tuple(blocks))


def growth_words(growth: GrowthFacts) -> str:
    """Return what the numbers are, how far they are extrapolated, and what they cannot cover."""
    if not growth.lines:
        return (
            f"Growth with {growth.factor} needs at least three sizes and three rounds; this run has too few."
        )
    least, most = min(line.sizes[0] for line in growth.lines), max(line.sizes[-1] for line in growth.lines)
    return (
        f"Measured from {format_count(least)} to {format_count(most)} {growth.factor}. The values at "
        f"{format_count(growth.to)} are extrapolated to {format_count(_rounded(growth.to / most))} times "
        f"the largest measured size: a {growth.confidence * 100:g} % interval for the mean time per "
        "operation, if time keeps growing in one of the shapes that the measured sizes allow. It cannot "
        "foresee data that outgrows memory, plans that change, or a timeout that cuts operations short."
    )


def growth_table(view: View, growth: GrowthFacts) -> Table:
    """Return a row per workload and variant: times at both ends, the exponent, the extrapolated time."""
    least, most = min(line.sizes[0] for line in growth.lines), max(line.sizes[-1] for line in growth.lines)
    return table_of(
        f"Mean time per operation along {growth.factor} (power 0: no growth, power 1: proportional growth)",
        growth.lines,
        header("workload", lambda line: _line_title(view, line.workload, line.fixed)),
        header("variant", lambda line: line.variant),
        number(f"at {format_count(least)}", lambda line: format_duration(line.times_ns[0])),
        number(f"at {format_count(most)}", lambda line: format_duration(line.times_ns[-1])),
        number("power", _power),
        number(f"at {format_count(growth.to)},\nextrapolated", _expected),
    )


def _power(line: GrowthLine) -> str:
    return f"{line.exponent:.2f} [{line.exponent_low:.2f}, {line.exponent_high:.2f}]".replace("-", "−")


def _line_title(view: View, workload: str, fixed: Levels) -> str:
    return f"{workload}, {cell_words(fixed, view.factors)}" if fixed else workload


def _expected(line: GrowthLine) -> Value:
    if line.low_ns is None or line.high_ns is None:
        return Value("no shape fits", tone="unsure")
    low, high = (value_label(_two_digits(ns), "ns") for ns in (line.low_ns, line.high_ns))
    return Value(f"{low} to {high}")


def _two_digits(number: float) -> float:
    """Round to two significant digits, the best precision of an extrapolation."""
    return round(number, 1 - math.floor(math.log10(number))) if number > 0 else 0.0


def _charts(view: View, growth: GrowthFacts) -> Iterable[LineChart]:
    places = dict.fromkeys((line.workload, line.fixed) for line in growth.lines)
    for workload, fixed in places:
        title = _line_title(view, workload, fixed)
        here = [line for line in growth.lines if (line.workload, line.fixed) == (workload, fixed)]
        yield LineChart(
            title=title,
            description=f"Mean time per operation along {growth.factor} for {title}, one line per variant.",
            axis="factor",
            x_title=growth.factor,
            y_title="mean time per operation",
            unit="ns",
            lines=tuple(
                Line(line.variant, tuple(zip(line.sizes, line.times_ns, strict=True))) for line in here
            ),
            variants=view.variants,
        )


def _rounded(number: float) -> float:
    """Round a ratio for a sentence: to an integer from ten on."""
    return round(number) if number >= 10 else round(number, 1)
