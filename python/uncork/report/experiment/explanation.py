"""Sections that explain the effects: costs per operation, plans, sizes, latency distributions, rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from uncork.model.results.experiment import (
    COSTS,
    Cost,
    CostItem,
    CostUnit,
    GrowthFacts,
    GrowthLine,
    LatencyCurve,
    Levels,
    PlanFacts,
    RunResult,
    SizeFacts,
)
from uncork.model.units import count_words, format_bytes, format_count, format_duration, series_words
from uncork.model.variant_evidence import EvidenceFacts
from uncork.model.verdict import Verdict
from uncork.report.blocks import (
    Block,
    Bullets,
    Code,
    Flame,
    Fold,
    Gallery,
    Legend,
    Line,
    LineChart,
    Paragraph,
    Section,
    Table,
    Value,
    filled_section,
)
from uncork.report.cells import (
    column,
    count_cell,
    duration_cell,
    folded_if_long,
    header,
    number,
    table_if_any,
    table_of,
)
from uncork.report.draw.charts import value_label
from uncork.report.experiment.batches import figures_table
from uncork.report.experiment.view import Place, View
from uncork.report.headline import uncapital
from uncork.report.words import (
    cell_words,
    duration_text,
    effect_text,
    effect_with_interval,
    exact_share_text,
    has_effect,
    metric_title,
    metric_unit,
    number_text,
    points_text,
)

_SHOWN_FIRST: Final = 3
"""Charts that are shown directly; further charts of their kind are folded."""
_MOST_ROWS: Final = 24
"""Rows of all tables of costs from which on these are folded."""
_MOST_CHARTS: Final = 36
"""Maximum number of charts of one kind, by falling effect."""
_PERCENTILES: Final = (0.5, 0.9, 0.99, 0.999, 1.0)
_NOTABLE: Final = 0.1
"""Costs that differ by less than this share are not highlighted."""


_SHOW: Final[Mapping[CostUnit, Callable[[float], str]]] = {
    "ns": format_duration,
    "B": format_bytes,
    "": number_text,
    "share": exact_share_text,
}
_IN_KERNEL: Final = {
    "server CPU in the kernel": "of it in the kernel",
    "service CPU in the kernel": "of that in the kernel",
}
"""What a part is called if its total stands beside it."""
_COSTS: Final = tuple((_IN_KERNEL.get(item.name, item.name), item, _SHOW[item.unit]) for item in COSTS)
_UNTOLD: Final = ("client CPU", *_IN_KERNEL.values())
UNTOLD_COSTS: Final = ("client CPU", *_IN_KERNEL)
"""Costs that are shown but explain nothing on their own; the kernel's share has its own sentence."""


def explanation_sections(view: View) -> Iterable[Section]:
    """Yield the sections that explain the effects, leaving out what was not measured."""
    if view.result.figures and not view.result.batches:
        yield Section("published", "Published results", (figures_table(view, "per operation"),))
    yield from filled_section("costs", "Costs per operation", *_costs(view))
    yield from filled_section("plans", "Plans", *_plans(view))
    yield from filled_section("sizes", "Sizes on disk", *_sizes(view))
    curves = [chart for place in view.by_importance if (chart := _distribution(view, place))]
    if curves:
        yield Section("latency", "Latency distributions", _charts(view, curves, ""))
    rounds = [chart for place in view.by_importance if (chart := _rounds(view, place))]
    if rounds:
        note = f"Dotted: the second trial of {view.baseline} in every block."
        yield Section("rounds", "Round by round", _charts(view, rounds, note))


def _charts(view: View, charts: list[LineChart], note: str) -> tuple[Block, ...]:
    blocks: list[Block] = [Legend(view.variants, note), Gallery(tuple(charts[:_SHOWN_FIRST]))]
    rest = charts[_SHOWN_FIRST:_MOST_CHARTS]
    if rest:
        blocks.append(Fold(f"{len(rest)} more, by falling effect", (Gallery(tuple(rest)),)))
    if len(charts) > _MOST_CHARTS:
        blocks.append(Paragraph(f"{len(charts) - _MOST_CHARTS} more are in the JSON report."))
    return tuple(blocks)


def _distribution(view: View, place: Place) -> LineChart | None:
    curves = [c for c in view.result.latencies if (c.cell, c.workload) == place and c.points]
    curves.sort(
        key=lambda curve: view.variants.index(curve.variant) if curve.variant in view.variants else 99
    )
    if not curves:
        return None
    name = view.place(place)
    return LineChart(
        title=name,
        description=f"Latency by percentile on {name}, one line per variant; high percentiles are stretched.",
        axis="quantile",
        x_title="percentile",
        y_title="latency",
        unit="ns",
        lines=tuple(Line(curve.variant, curve.points) for curve in curves),
        variants=view.variants,
        table=table_of(
            f"{name}: latency by percentile",
            curves,
            header("variant", lambda curve: curve.variant),
            *(
                number(
                    "max" if quantile == 1 else f"p{quantile * 100:g}",
                    [format_duration(_at(curve, quantile)) for curve in curves],
                )
                for quantile in _PERCENTILES
            ),
            number("operations", lambda curve: format_count(curve.executions)),
        ),
    )


def _at(curve: LatencyCurve, quantile: float) -> float:
    return next((ns for q, ns in curve.points if q >= quantile), curve.points[-1][1])


def _rounds(view: View, place: Place) -> LineChart | None:
    arms = [m for m in view.result.metrics if (m.cell, m.workload) == place and len(m.by_round) > 1]
    if not arms:
        return None
    metric = view.metric(place[1])
    name = view.place(place)
    return LineChart(
        title=name,
        description=f"{metric_title(metric).capitalize()} by round on {name}; a common trend is drift.",
        axis="round",
        x_title="round",
        y_title=metric_title(metric),
        unit=metric_unit(metric),
        lines=tuple(
            Line(
                arm.variant,
                tuple((float(n), value) for n, value in arm.by_round),
                "again" if arm.again else "measured",
            )
            for arm in arms
        ),
        variants=view.variants,
    )


def cost_highlights(view: View, limit: int = 3) -> tuple[str, ...]:
    """Return the largest differences in cost behind the greatest clear effects, one sentence each."""
    clear = [
        c for c in view.result.comparisons if c.verdict in (Verdict.FASTER, Verdict.SLOWER) and has_effect(c)
    ]
    by_workload: dict[tuple[str, str], tuple[float, str]] = {}
    for comparison in clear:
        place = (comparison.cell, comparison.workload)
        own, base = _cost(view, place, comparison.variant), _cost(view, place, view.baseline)
        if own is None or base is None:
            continue
        parts = list(_notable(view, own, base))
        if parts:
            size = abs(comparison.ratio - 1) if comparison.ratio else abs(comparison.difference or 0.0)
            text = f"{comparison.variant} on {view.place(place)}: {series_words(parts)}."
            key = (comparison.workload, comparison.verdict.value)
            by_workload[key] = max(by_workload.get(key, (0.0, "")), (size, text))
    return tuple(text for _, text in sorted(by_workload.values(), reverse=True)[:limit])


def _notable(view: View, own: Cost, base: Cost) -> Iterable[str]:
    changes = []
    for title, item, show in _COSTS:
        new, old = item.read(own), item.read(base)
        if new is None or old is None or title in _UNTOLD or max(new, old) == 0:
            continue
        ratio = new / old if old else float("inf")
        if abs(ratio - 1) >= _NOTABLE:
            change = _change(view, own, item, new, old)
            figures = f" ({change})" if change else ""
            changes.append((abs(ratio - 1), f"{title} {show(old)} → {show(new)}{figures}"))
    return (text for _, text in sorted(changes, reverse=True)[:3])


def _costs(view: View) -> tuple[Block, ...]:
    highlights = cost_highlights(view, limit=6)
    blocks: list[Block] = [Bullets(highlights)] if highlights else []
    workloads = dict.fromkeys(place[1] for place in view.by_importance)
    tables = [table for workload in workloads if (table := _cost_table(view, workload))]
    few = sum(len(table.rows) for table in tables) <= _MOST_ROWS
    blocks += [table if few else folded_if_long(table, 0) for table in tables]
    return tuple(blocks)


def _cost_table(view: View, workload: str) -> Table | None:
    own = [c for c in view.result.costs if c.workload == workload]
    used = [entry for entry in _COSTS if any(entry[1].read(cost) for cost in own)]
    if not used:
        return None
    known = {(cost.cell, cost.variant): cost for cost in own}
    ordered = sorted(own, key=lambda cost: view.order(cost.cell, cost.variant))
    return table_of(
        f"{workload}: cost per operation, with the change from {view.baseline} and its interval",
        ordered,
        header("cell", lambda cost: view.cell(cost.cell)),
        header("variant", lambda cost: cost.variant),
        *(
            number(
                title,
                [
                    _cost_value(view, cost, known.get((cost.cell, view.baseline)), item, show)
                    for cost in ordered
                ],
            )
            for title, item, show in used
        ),
    )


def _cost_value(
    view: View, cost: Cost, base: Cost | None, item: CostItem, show: Callable[[float], str]
) -> Value:
    amount, before = item.read(cost), item.read(base) if base else None
    if amount is None:
        return Value("", tone="muted")
    return Value(show(amount), note=_change(view, cost, item, amount, before))


def _change(view: View, cost: Cost, item: CostItem, amount: float, before: float | None) -> str:
    if before is None or amount == before:
        return ""
    place = (cost.cell, cost.workload, cost.variant, item.name)
    effects = (e for e in view.result.cost_effects if (e.cell, e.workload, e.variant, e.cost) == place)
    found = next(effects, None)
    if item.unit == "share":
        text = f"{points_text(amount - before)} points"
        if found is None or found.difference_low is None or found.difference_high is None:
            return text
        return f"{text} [{points_text(found.difference_low)}, {points_text(found.difference_high)}]"
    if found is None or found.ratio is None or found.low is None or found.high is None or found.exact:
        return effect_text(amount / before) if before and amount else ""
    return effect_with_interval(found.ratio, found.low, found.high)


def _cost(view: View, place: Place, variant: str) -> Cost | None:
    cell, workload = place
    found = (c for c in view.result.costs if (c.cell, c.workload, c.variant) == (cell, workload, variant))
    return next(found, None)


def _plans(view: View) -> tuple[Block, ...]:
    plans = view.result.plans
    if not plans:
        return ()
    blocks: list[Block] = []
    different = _grouped(plan for plan in plans if plan.difference)
    if not different:
        blocks.append(Paragraph(f"All plans have the same shape as those of {view.baseline}."))
    for place, group in enumerate(different):
        first = group[0]
        inner = [
            Code(
                first.difference,
                "diff",
                f"Difference between the plans, from {view.baseline} to {first.variant}",
            )
        ]
        before = _counterpart(plans, first, view.baseline)
        inner += [Code(plan.text, "text", plan.variant) for plan in (before, first) if plan]
        where = _cells_words(view, [plan.cell for plan in group])
        summary = f"{first.variant} runs {first.workload} with a different plan than {view.baseline} {where}"
        blocks.append(Fold(summary, tuple(inner), open=place == 0))
    shapes = _grouped(plan for plan in plans if not plan.difference)
    inner_folds = tuple(
        Code(
            group[0].text,
            "text",
            f"{group[0].workload}, {group[0].variant}: {_cells_words(view, [p.cell for p in group])}",
        )
        for group in shapes
    )
    if inner_folds:
        blocks.append(
            Fold(f"Plans with the same shape as {view.baseline}'s ({len(inner_folds)} distinct)", inner_folds)
        )
    return tuple(blocks)


def _grouped(plans: Iterable[PlanFacts]) -> list[list[PlanFacts]]:
    groups: dict[tuple[str, str, str, str, str], list[PlanFacts]] = {}
    for plan in plans:
        key = (plan.workload, plan.statement, plan.variant, plan.shape, plan.difference)
        groups.setdefault(key, []).append(plan)
    return list(groups.values())


def _counterpart(plans: tuple[PlanFacts, ...], plan: PlanFacts, baseline: str) -> PlanFacts | None:
    """Return the baseline's plan of the same statement, matched by position because the texts may differ."""

    def of(variant: str) -> list[PlanFacts]:
        place = (plan.cell, plan.workload, variant)
        return [other for other in plans if (other.cell, other.workload, other.variant) == place]

    number, theirs = of(plan.variant).index(plan), of(baseline)
    return theirs[number] if number < len(theirs) else None


def _cells_words(view: View, cells: list[Levels]) -> str:
    names = [view.cell(cell) for cell in cells]
    if len(names) > 2:
        return f"in {len(names)} cells, such as {names[-1]}"
    return f"at {' and at '.join(names)}" if names != ["all"] else "everywhere"


def _sizes(view: View) -> tuple[Block, ...]:
    cells = sorted({size.cell for size in view.result.sizes}, key=view.cell_order)
    if not cells:
        return ()
    known: dict[tuple[Levels, str, str], dict[str, SizeFacts]] = {}
    for size in view.result.sizes:
        known.setdefault((size.cell, size.kind, size.relation), {})[size.variant] = size
    order = sorted(known, key=lambda key: view.cell_order(key[0]))

    def table(caption: str, keys: list[tuple[Levels, str, str]]) -> Table:
        return table_of(
            caption,
            keys,
            header("cell", lambda key: view.cell(key[0])),
            header("relation", lambda key: Value(key[2], note=key[1], code=True)),
            *(
                number(name, [_size(known[key].get(name), known[key].get(view.baseline)) for key in keys])
                for name in view.variants
            ),
        )

    largest = max(cells, key=lambda cell: sum(s.bytes for s in view.result.sizes if s.cell == cell))
    where = f": {view.cell(largest)}" if len(cells) > 1 else ""
    first = table(f"Tables and indexes{where}", [key for key in order if key[0] == largest])
    if len(cells) == 1:
        return (first,)
    everything = table("Tables and indexes, all cells", order)
    return (first, Fold(f"All cells ({count_words(len(order), 'row')})", (everything,)))


def _size(size: SizeFacts | None, base: SizeFacts | None) -> Value:
    if size is None:
        return Value("", tone="muted")
    notes = [effect_text(size.bytes / base.bytes)] if base and base.bytes and size.bytes != base.bytes else []
    notes += [f"{size.bytes / size.rows:.0f} B per row"] if size.rows else []
    notes += [f"depth {size.depth}"] if size.depth is not None else []
    return Value(format_bytes(size.bytes), note=", ".join(notes))


_HIGH = 1 / 3
"""Kernel share of processor time above which it is marked and reported."""
_NAMED = 0.2
"""Kernel share above which it is reported if stacks show its callers."""


def evidence_words(result: RunResult) -> tuple[str, ...]:
    """Return the variant whose server spends the most processor time in the kernel, if notable, and why."""
    known = [evidence for evidence in result.evidence if evidence.system_share is not None]
    high = [
        evidence
        for evidence in known
        if evidence.findings or (evidence.entered and (evidence.system_share or 0.0) > _NAMED)
    ]
    if not high:
        return ()
    worst = max(high, key=lambda one: one.system_share or 0.0)
    share = f"{(worst.system_share or 0.0) * 100:.0f} %"
    named = f"the kernel takes {share} of the CPU: {'; '.join(worst.entered)}"
    finding = worst.findings[0] if worst.findings else named
    place = f"{worst.variant} on {worst.workload}"
    place += f" at {cell_words(worst.cell, result.factors)}" if worst.cell else ""
    return (f"{place}: {uncapital(finding.rstrip('.'))}.",)


def evidence_sections(result: RunResult, flames: Sequence[Flame] = ()) -> Iterator[Section]:
    """Yield the section on evidence; none if no evidence was gathered."""
    if not result.evidence:
        return
    blocks: list[Block] = [
        Paragraph(
            "After all timed trials, uncork ran each variant once more and sampled its sessions, processes "
            "and stacks. These numbers explain the effects; they are not part of them."
        ),
        _table(result),
    ]
    findings = [
        f"{evidence.variant} on {evidence.workload}: {text}"
        for evidence in result.evidence
        for text in evidence.findings
    ]
    if findings:
        blocks.append(Bullets(tuple(findings)))
    blocks += flames
    calls = table_if_any(
        "System calls per operation, counted in a separate load",
        [(evidence, call) for evidence in result.evidence for call in evidence.calls],
        header("workload", lambda counted: counted[0].workload),
        header("variant", lambda counted: counted[0].variant),
        column("system call", lambda counted: Value(counted[1].name, code=True)),
        number("calls per operation", lambda counted: count_cell(counted[1].operation_calls)),
        number("time per operation", lambda counted: duration_cell(counted[1].operation_ns)),
        sortable=True,
    )
    if calls is not None:
        blocks.append(calls)
    missing = dict.fromkeys(
        f"Not available: {text}." for evidence in result.evidence for text in evidence.missing
    )
    if missing:
        blocks.append(Bullets(tuple(missing)))
    yield Section("evidence", "What the server did", tuple(blocks))


def _table(result: RunResult) -> Table:
    return table_of(
        "Server time per operation",
        result.evidence,
        header("workload", lambda evidence: evidence.workload),
        header("variant", lambda evidence: evidence.variant),
        number("user", lambda evidence: duration_text(evidence.user_ns)),
        number("kernel", lambda evidence: duration_text(evidence.system_ns)),
        number("kernel's share", lambda evidence: _kernel_share(evidence.system_share)),
        number("system calls", _calls),
        column("session time per operation", _waits),
    )


def _kernel_share(share: float | None) -> Value:
    if share is None:
        return Value("")
    return Value(f"{share * 100:.0f} %", tone="slower" if share > _HIGH else "plain")


def _calls(evidence: EvidenceFacts) -> str:
    return format_count(sum(call.operation_calls for call in evidence.calls)) if evidence.calls else ""


def _waits(evidence: EvidenceFacts) -> str:
    return ", ".join(f"{wait.name} {format_duration(wait.operation_ns)}" for wait in evidence.waits[:3])


def growth_sections(view: View) -> Iterable[Section]:
    """Yield the section on growth, if the experiment requests it."""
    growth = view.result.growth
    if growth is None:
        return
    blocks: list[Block] = [Paragraph(growth_words(growth))]
    if growth.lines:
        charts = tuple(_growth_charts(view, growth))
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
        header("workload", lambda line: view.place((line.fixed, line.workload))),
        header("variant", lambda line: line.variant),
        number(f"at {format_count(least)}", lambda line: format_duration(line.times_ns[0])),
        number(f"at {format_count(most)}", lambda line: format_duration(line.times_ns[-1])),
        number("power", _power),
        number(f"at {format_count(growth.to)},\nextrapolated", _expected),
    )


def _power(line: GrowthLine) -> str:
    return f"{line.exponent:.2f} [{line.exponent_low:.2f}, {line.exponent_high:.2f}]".replace("-", "−")


def _expected(line: GrowthLine) -> Value:
    if line.low_ns is None or line.high_ns is None:
        return Value("no shape fits", tone="unsure")
    low, high = (value_label(_two_digits(ns), "ns") for ns in (line.low_ns, line.high_ns))
    return Value(f"{low} to {high}")


def _two_digits(number: float) -> float:
    """Round to two significant digits, the best precision of an extrapolation."""
    return round(number, 1 - math.floor(math.log10(number))) if number > 0 else 0.0


def _growth_charts(view: View, growth: GrowthFacts) -> Iterable[LineChart]:
    places = dict.fromkeys((line.workload, line.fixed) for line in growth.lines)
    for workload, fixed in places:
        title = view.place((fixed, workload))
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
