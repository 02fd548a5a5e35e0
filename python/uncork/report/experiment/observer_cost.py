"""The cost of observers, in sentences and as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from uncork.model.results.observer_cost import (
    CatalogueCost,
    CostVerdict,
    ObserverCost,
    ObserverCosts,
    Ratio,
    Switched,
    processor_verdict,
)
from uncork.model.trial import Cell
from uncork.model.units import count_words, format_bytes, series_words
from uncork.report.headline import join_sentences
from uncork.report.words import capitalised


def compose_cost_answer(found: ObserverCosts) -> str:
    """Return in one sentence which observers cost less than matters, which cost more, and what is unknown."""
    limit = f"{found.practical * 100:g} %"
    parts = []
    for verdict, words in (
        ("costs less", f"costs less than {limit} of throughput"),
        ("costs more", f"costs more than {limit}"),
        ("costs something", f"costs something, but it is unknown whether more than {limit}"),
        ("not enough evidence", f"has an unknown cost, which may be above or below {limit}"),
    ):
        names = list(dict.fromkeys(_name(cost, found) for cost in found.costs if cost.verdict == verdict))
        if names:
            many = words.replace("costs", "cost", 1).replace("has an unknown", "have an unknown", 1)
            parts.append(f"{series_words(names)} {words if len(names) == 1 else many}")
    taken: tuple[tuple[CostVerdict, str], ...] = (
        ("costs less", "takes less than"),
        ("costs more", "takes more than"),
    )
    for verdict, words in taken:
        names = list(dict.fromkeys(_name(cost, found) for cost in found.costs if _tells(cost, verdict)))
        if names:
            many = words if len(names) == 1 else words.replace("takes", "take", 1)
            parts.append(f"{series_words(names)} {many} {limit} of processor time")
    open_costs = [cost for cost in found.costs if cost.verdict != "costs less"]
    bounded = [
        _name(open_cost, found)
        for open_cost in open_costs
        if _bound_verdict(open_cost.switched, found) == "costs less"
    ]
    if bounded:
        many = "costs" if len(bounded) == 1 else "cost"
        parts.append(
            f"Judged by processor time, {series_words(bounded)} {many} less than {limit} of throughput if "
            "the load has all processors"
        )
    cost = found.catalogue
    if cost is not None:
        whose = "of a processor" if cost.server_ns is not None else "of a processor in uncork"
        took = f"{cost.share * 100:.2g} % {whose}"
        parts.append(f"Reading the catalogue once takes {took} over a watch of {_watch(cost)}")
    return join_sentences(parts or ["Nothing was measured"])


def _watch(cost: CatalogueCost) -> str:
    return f"{cost.watch_ns / 1e9:g} s"


def _tells(cost: ObserverCost, verdict: CostVerdict) -> bool:
    return cost.processor_verdict == verdict and cost.verdict in ("costs something", "not enough evidence")


def _bound_verdict(switched: Switched | None, found: ObserverCosts) -> CostVerdict:
    """Return the verdict by processor time for a load that has all processors."""
    return processor_verdict(None if switched is None else switched.bound, found.practical, enough=True)


def _name(cost: ObserverCost, found: ObserverCosts) -> str:
    several = len({(other.workload, other.cell) for other in found.costs}) > 1
    return f"{cost.name} on {_place(cost.workload, cost.cell)}" if several else cost.name


_NO_CELL: Final = Cell(()).name
"""The name of the one cell of an experiment without factors."""
_ANSWERS: Final = {
    "costs less": "yes",
    "costs more": "no",
    "costs something": "costs; maybe",
    "not enough evidence": "unknown",
}


def render_costs(found: ObserverCosts, console: Console) -> None:
    """Print the answer, the tables under load and idle, and the skipped observers."""

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    console.print(found.answer, style="bold", markup=False, highlight=False)
    for workload, cell in dict.fromkeys((cost.workload, cost.cell) for cost in found.costs):
        here = [cost for cost in found.costs if (cost.workload, cost.cell) == (workload, cell)]
        say(f"\nUnder load: {_place(workload, cell)}; change compared with no observer")
        console.print(_load_table(here, found))
        own = "; own CPU is that of the observer's process or thread, as a share of one processor"
        own = ", which includes the agent" if found.pushes is not None else own
        rounds = max((cost.throughput.rounds for cost in here if cost.throughput), default=0)
        say(
            f"{found.confidence:.0%} intervals over {rounds} rounds, valid at every look. CPU/op is the "
            f"{_whose(found)}'s processor time per operation{own}. "
            "Verdicts use wider intervals that hold for all observers together. "
            f"{capitalised(found.noise)}."
        )
    switched = [(cost.name, cost.switched) for cost in found.costs if cost.switched is not None]
    if switched:
        say("\nSwitched on and off many times a second within one load; change from off to on")
        console.print(_switched_table(switched))
        for line in _switched_notes(switched, found):
            say(line)
    if found.idle:
        say(f"\nIdle: processor time a second; for the {_whose(found)}, the increase over no observer")
        console.print(_idle_table(found))
    if found.catalogue is not None:
        say(f"\nReading the catalogue and plans once, as a watch of {_watch(found.catalogue)} does")
        console.print(_catalogue_table(found.catalogue))
        say(_lock_words(found.catalogue))
    for line in _notes(found):
        say(line)


def _catalogue_table(cost: CatalogueCost) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("readings", "tables", "time", "uncork's CPU", "the server's CPU", "longest lock on a table"):
        table.add_column(name, justify="right")
    server = "unavailable" if cost.server_ns is None else f"{cost.server_ns / 1e6:.0f} ms"
    lock = "none seen" if not cost.lock_ns else f"{cost.lock_ns / 1e6:.1f} ms"
    times = (f"{ns / 1e6:.0f} ms" for ns in (cost.elapsed_ns, cost.observer_ns))
    table.add_row(str(cost.readings), str(cost.tables), *times, server, lock)
    return table


def _lock_words(cost: CatalogueCost) -> str:
    between = cost.elapsed_ns * cost.readings / max(1, cost.lock_looks) / 1e6
    return (
        f"uncork looked for its own locks every {between:.1f} ms, and counts each from the look before it to "
        "the look after it. CPU and time are averages, without the report."
    )


def _whose(found: ObserverCosts) -> str:
    return "server" if found.pushes is None else "service"


def _load_table(costs: Sequence[ObserverCost], found: ObserverCosts) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("observer", overflow="fold", max_width=16)
    for name in ("throughput", "p50", "p99", "CPU/op", "own CPU", f"under {found.practical * 100:g} %?"):
        table.add_column(name, justify="right")
    for cost in costs:
        own = "" if cost.observer_share is None else f"{cost.observer_share * 100:.2f} %"
        taken = cost.server_cpu if found.pushes is None else cost.service_cpu
        ratios = (cost.throughput, cost.p50, cost.p99, taken)
        table.add_row(cost.name, *(_change(ratio) for ratio in ratios), own, _ANSWERS[cost.verdict])
    return table


def _switched_table(switched: Sequence[tuple[str, Switched]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("observer", "throughput", "as counted", "CPU/op, all", "quadruples"):
        table.add_column(name, justify="left" if name == "observer" else "right")
    for name, switch in switched:
        ratios = (_change(ratio, decimals=2) for ratio in (switch.adjusted, switch.plain, switch.processor))
        table.add_row(name, *ratios, str(switch.quadruples))
    return table


def _switched_notes(switched: Sequence[tuple[str, Switched]], found: ObserverCosts) -> Iterator[str]:
    for name, switch in switched:
        if switch.adjusted is None:
            yield f"{name}: too few quadruples for an estimate. Measure longer with --budget."
    if all(switch.adjusted is None for _, switch in switched):
        return
    slice_ms = max(switch.slice_ns for _, switch in switched) / 1e6
    others = sum(switch.others for _, switch in switched) / len(switched)
    stolen = sum(switch.stolen for _, switch in switched) / len(switched)
    yield (
        f"{found.confidence:.0%} intervals over quadruples of {slice_ms:.0f} ms slices, evaluated once, "
        "after a time fixed in advance. Throughput is adjusted for the noise of other programs, which took "
        f'{others:.2f} of a processor (the host {stolen:.2f}); "as counted" is not. "CPU/op, all" is '
        "the processor time of server, load and observer per operation."
    )
    sure = [f"{name} {_bounds(switch.sure, 2)}" for name, switch in switched if switch.sure is not None]
    if sure:
        yield f"Verdicts on switched observers use wider intervals: {'; '.join(sure)}."
    bounds = [
        f"{name} {_bounds(switch.bound, 2)} ({_ANSWERS[_bound_verdict(switch, found)]})"
        for name, switch in switched
        if switch.bound is not None
    ]
    if bounds:
        had = sum(switch.work for _, switch in switched) / len(switched)
        yield (
            f"Load, server and observer had {had:.2f} processors. If the load has all of them, is the cost "
            f"in processor time under {found.practical * 100:g} %? At most: {'; '.join(bounds)}. An observer "
            "that reads at fixed times takes as much per second there; waiting is not included."
        )
    unknown = [
        cost.switched for cost in found.costs if cost.verdict in ("costs something", "not enough evidence")
    ]
    times = max(
        (_times_needed(switch.sure, found.practical) for switch in unknown if switch is not None), default=0
    )
    if times > 1:
        yield (
            f"To decide {found.practical * 100:g} %, use about {times} times the budget (--budget), or less "
            "if other programs take less of the processors."
        )
    for name, switch in switched:
        if switch.apart:
            yield (
                f"{name}: no verdict. Counted and adjusted throughput differ by more than chance, which "
                "happens if a cost occurs rarely and all at once."
            )


def _times_needed(sure: Ratio | None, practical: float) -> int:
    """Return the factor of quadruples that narrows an interval to half of what matters on either side."""
    if sure is None or sure.low is None or sure.high is None or practical <= 0:
        return 0
    return math.ceil(((sure.high - sure.low) / 2 / (practical / 2)) ** 2)


def _idle_table(found: ObserverCosts) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("observer", "its own", f"the {_whose(found)}'s"):
        table.add_column(name, justify="left" if name == "observer" else "right")
    for name, taken in found.idle.items():
        server, spread = taken.server_ns, taken.server_spread_ns
        table.add_row(
            name,
            _spread(taken.observer_ns, taken.observer_spread_ns) if found.pushes is None else "included",
            "unavailable" if server is None else _spread(server, spread),
        )
    return table


def _place(workload: str, cell: str) -> str:
    return workload if cell == _NO_CELL else f"{workload}, {cell}"


def _notes(found: ObserverCosts) -> Iterator[str]:
    bounds = [
        f"{_name(cost, found)} {_bounds(cost.processor)} ({_ANSWERS[cost.processor_verdict]})"
        for cost in found.costs
        if cost.processor is not None and cost.processor.low is not None
    ]
    if bounds:
        own = "" if found.pushes is not None else ", including the observer's own"
        limit = f"{found.practical * 100:g} %"
        yield f"Under {limit} of processor time per operation{own}? Wider intervals: {'; '.join(bounds)}."
    if found.pushes is not None:
        count, size = found.pushes.count, format_bytes(found.pushes.size_bytes)
        if count:
            yield f"The agent pushed {count_words(count, 'time')} during the measurement, {size} in total."
        else:
            yield "The agent pushed nothing during the measurement, so its cost is partial. Measure longer."
    for name, reason in found.skipped.items():
        yield f"skipped: {name}: {reason}"


def _change(ratio: Ratio | None, decimals: int = 1) -> str:
    if ratio is None:
        return ""
    text = f"{(ratio.ratio - 1) * 100:+.{decimals}f} %"
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text}\n{_percent(ratio.low, decimals)} to {_percent(ratio.high, decimals)}"


def _bounds(ratio: Ratio, decimals: int = 1) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{(ratio.ratio - 1) * 100:+.{decimals}f} %"
    return f"{_percent(ratio.low, decimals)} to {_percent(ratio.high, decimals)} %"


def _percent(ratio: float, decimals: int) -> str:
    percent = (ratio - 1) * 100
    return f"{percent:+.0f}" if abs(percent) >= 10 else f"{percent:+.{decimals}f}"


def _spread(mean: float, spread: float | None) -> str:
    reach = "" if spread is None else f" ± {spread / 1e6:.2f}"
    return f"{mean / 1e6:.2f}{reach} ms ({mean / 1e7:.2f} %)"
