"""What observing costs, in sentences and as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from uncork.model.results.observer_cost import (
    CostVerdict,
    ObserverCost,
    ObserverCosts,
    Ratio,
    Switched,
    processor_verdict,
)
from uncork.model.trial import Cell
from uncork.model.units import format_bytes
from uncork.report.words import count_words, series_words

__all__ = ["compose_cost_answer", "render_costs"]


def compose_cost_answer(found: ObserverCosts) -> str:
    """Say in one sentence which observers cost less than matters, which more, and what is not known."""
    limit = f"{found.practical * 100:g} %"
    parts = []
    for verdict, words in (
        ("costs less", f"costs less than {limit} of throughput"),
        ("costs more", f"costs more than {limit}"),
        ("costs something", f"costs something, and whether under {limit} is not known"),
        ("not enough evidence", f"is not known to cost less than {limit} or more"),
    ):
        names = list(dict.fromkeys(_name(one, found) for one in found.costs if one.verdict == verdict))
        if names:
            many = words.replace("costs", "cost", 1).replace("is not known to", "are not known to", 1)
            parts.append(f"{series_words(names)} {words if len(names) == 1 else many}")
    taken: tuple[tuple[CostVerdict, str], ...] = (
        ("costs less", "takes less than"),
        ("costs more", "takes more than"),
    )
    for verdict, words in taken:
        names = list(dict.fromkeys(_name(one, found) for one in found.costs if _tells(one, verdict)))
        if names:
            many = words if len(names) == 1 else words.replace("takes", "take", 1)
            parts.append(f"{series_words(names)} {many} {limit} of processor time")
    unsaid = [one for one in found.costs if one.verdict != "costs less"]
    bounded = [_name(one, found) for one in unsaid if _bound_verdict(one.switched, found) == "costs less"]
    if bounded:
        many = "costs" if len(bounded) == 1 else "cost"
        parts.append(
            f"by processor time {series_words(bounded)} {many} less than {limit} of throughput where the "
            "load has all processors"
        )
    return "; ".join(parts) + "." if parts else "Nothing was measured."


def _tells(one: ObserverCost, verdict: CostVerdict) -> bool:
    """Say whether processor time tells what throughput does not."""
    return one.processor_verdict == verdict and one.verdict in ("costs something", "not enough evidence")


def _bound_verdict(one: Switched | None, found: ObserverCosts) -> CostVerdict:
    """Say what processor time tells of the cost where the load has all processors."""
    return processor_verdict(None if one is None else one.bound, found.practical, enough=True)


def _name(one: ObserverCost, found: ObserverCosts) -> str:
    several = len({(other.workload, other.cell) for other in found.costs}) > 1
    return f"{one.name} on {_place(one.workload, one.cell)}" if several else one.name


_NO_CELL: Final = Cell(()).name
"""The name of the one cell of an experiment without factors."""
_ANSWERS: Final = {
    "costs less": "yes",
    "costs more": "no",
    "costs something": "costs; perhaps",
    "not enough evidence": "not known",
}


def render_costs(found: ObserverCosts, console: Console) -> None:
    """Print the answer, the tables under load and idle, and what was skipped."""

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    console.print(found.answer, style="bold", markup=False, highlight=False)
    for workload, cell in dict.fromkeys((one.workload, one.cell) for one in found.costs):
        here = [one for one in found.costs if (one.workload, one.cell) == (workload, cell)]
        say(f"\nUnder load: {_place(workload, cell)}; change from nothing observing")
        console.print(_load_table(here, found))
        rounds = max((one.throughput.rounds for one in here if one.throughput), default=0)
        say(
            f"{found.confidence:.0%} intervals over {rounds} rounds, valid at every look. CPU/op is the "
            f"{_whose(found)}'s processor time an operation{_own_words(found)}. "
            "Verdicts rest on wider intervals that hold together. "
            f"{found.noise[:1].upper()}{found.noise[1:]}."
        )
    switched = [(one.name, one.switched) for one in found.costs if one.switched is not None]
    if switched:
        say("\nSwitched on and off within one load, many times a second; change from off to on")
        console.print(_switched_table(switched))
        for line in _switched_notes(switched, found):
            say(line)
    if found.idle:
        say(f"\nIdle: processor time a second, the {_whose(found)}'s beyond that of nothing observing")
        console.print(_idle_table(found))
    for line in _notes(found):
        say(line)


def _whose(found: ObserverCosts) -> str:
    return "server" if found.pushes is None else "service"


def _own_words(found: ObserverCosts) -> str:
    if found.pushes is not None:
        return ", the agent's part of it"
    return ", own CPU that of the observer's process or thread, as a part of one processor"


def _load_table(costs: Sequence[ObserverCost], found: ObserverCosts) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("observer", overflow="fold", max_width=16)
    for name in ("throughput", "p50", "p99", "CPU/op", "own CPU", f"under {found.practical * 100:g} %?"):
        table.add_column(name, justify="right")
    for one in costs:
        own = "" if one.observer_share is None else f"{one.observer_share * 100:.2f} %"
        taken = one.server_cpu if found.pushes is None else one.service_cpu
        ratios = (one.throughput, one.p50, one.p99, taken)
        table.add_row(one.name, *(_change(ratio) for ratio in ratios), own, _ANSWERS[one.verdict])
    return table


def _switched_table(switched: Sequence[tuple[str, Switched]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("observer", "throughput", "as counted", "CPU/op, all", "quadruples"):
        table.add_column(name, justify="left" if name == "observer" else "right")
    for name, one in switched:
        ratios = (_change(ratio, decimals=2) for ratio in (one.adjusted, one.plain, one.processor))
        table.add_row(name, *ratios, str(one.quadruples))
    return table


def _switched_notes(switched: Sequence[tuple[str, Switched]], found: ObserverCosts) -> Iterator[str]:
    for name, one in switched:
        if one.adjusted is None:
            yield f"{name}: too few quadruples for an estimate. Measure longer (--budget)."
    if all(one.adjusted is None for _, one in switched):
        return
    slice_ms = max(one.slice_ns for _, one in switched) / 1e6
    others = sum(one.others for _, one in switched) / len(switched)
    stolen = sum(one.stolen for _, one in switched) / len(switched)
    yield (
        f"{found.confidence:.0%} intervals over quadruples of {slice_ms:.0f} ms slices, looked at once, "
        "after a time set before. Throughput is freed of the noise of others, who took "
        f"{others:.2f} of a processor (the host {stolen:.2f}); as counted it is not. CPU/op, all is the "
        "processor time of server, load and observer an operation."
    )
    sure = [f"{name} {_bounds(one.sure, 2)}" for name, one in switched if one.sure is not None]
    if sure:
        yield f"Verdicts of switched observers rest on the wider intervals: {'; '.join(sure)}."
    bounds = [
        f"{name} {_bounds(one.bound, 2)} ({_ANSWERS[_bound_verdict(one, found)]})"
        for name, one in switched
        if one.bound is not None
    ]
    if bounds:
        had = sum(one.work for _, one in switched) / len(switched)
        yield (
            f"Load, server and observer had {had:.2f} processors. Under {found.practical * 100:g} % by "
            f"processor time, of a load that has all of them? At most: {'; '.join(bounds)}. An observer that "
            "reads at fixed times takes as much a second there; waiting is not in it."
        )
    unknown = [
        one.switched for one in found.costs if one.verdict in ("costs something", "not enough evidence")
    ]
    times = max((_times_needed(one.sure, found.practical) for one in unknown if one is not None), default=0)
    if times > 1:
        yield (
            f"To tell {found.practical * 100:g} % takes about {times} times the budget where others take so "
            "much, and less where they take less."
        )
    for name, one in switched:
        if one.apart:
            yield (
                f"{name}: what was counted and what is freed of noise differ by more than chance, as they do "
                "where a cost comes seldom and at once. No verdict."
            )


def _times_needed(sure: Ratio | None, practical: float) -> int:
    """Return how many times as many quadruples make an interval reach half of what matters to either side."""
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
            _spread(taken.observer_ns, taken.observer_spread_ns) if found.pushes is None else "within",
            "not here" if server is None else _spread(server, spread),
        )
    return table


def _place(workload: str, cell: str) -> str:
    return workload if cell == _NO_CELL else f"{workload}, {cell}"


def _notes(found: ObserverCosts) -> Iterator[str]:
    told = [
        f"{_name(one, found)} {_bounds(one.processor)} ({_ANSWERS[one.processor_verdict]})"
        for one in found.costs
        if one.processor is not None and one.processor.low is not None
    ]
    if told:
        own = "" if found.pushes is not None else ", the observer's own included"
        limit = f"{found.practical * 100:g} %"
        yield f"Under {limit} of processor time an operation{own}? By the wider intervals: {'; '.join(told)}."
    if found.pushes is not None:
        count, size = found.pushes.count, format_bytes(found.pushes.size_bytes)
        if count:
            yield f"The agent pushed {count_words(count, 'time')} while it was measured, {size} in all."
        else:
            yield "The agent pushed nothing while it was measured: its cost is not whole. Measure longer."
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
