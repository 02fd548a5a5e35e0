"""Forecast how narrow intervals will be for a budget, and which budget reaches a precision. Pure.

The forecast shares out time by the rules that the runner follows (`allotment`, `slicing`), and turns the
result into a half-width by `stats.power`. It needs to know by how much log ratios scatter. Before the first
run nobody does: then `TYPICAL` stands in, and the forecast says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from uncork.experiment.plan.allotment import round_share
from uncork.experiment.plan.slicing import (
    CYCLES_TOGETHER,
    SLICE_NS,
    Pilot,
    block_count,
    cycle_ns,
    slice_sizes,
)
from uncork.model.units import format_duration
from uncork.stats.power import Costs, Design, Scatter, expected_half_width

__all__ = [
    "ASSUMED",
    "BLOCK_OVERHEAD_NS",
    "OPERATION_NS",
    "ROUND_OVERHEAD_NS",
    "TYPICAL",
    "Limits",
    "Seen",
    "WorkloadForecast",
    "budget_needed",
    "expected_design",
    "forecast_workload",
    "reasons",
]

TYPICAL = Scatter(cycle=0.10, block=0.01, round=0.015)
"""Scatter of log ratios of equal arms on a small shared machine; docs/concepts/statistics.md says how it was
measured (`uncork doctor` shows the values of the machine at hand)."""

OPERATION_NS = 1_000_000.0
"""What an operation is taken to last before anything is known."""

ROUND_OVERHEAD_NS = 1_500_000_000.0
"""What restarting an embedded server and warming its data take in each round, roughly."""

BLOCK_OVERHEAD_NS = 30_000_000.0
"""What connecting and reading the server's counters take around a block, roughly."""

ASSUMED = (
    f"typical values, because no earlier run of this experiment is stored here: log ratios scatter by "
    f"{TYPICAL.cycle:.0%} between cycles, {TYPICAL.block:.0%} between blocks and {TYPICAL.round:.1%} between "
    f"rounds, and an operation takes {format_duration(OPERATION_NS)}"
)
"""What a forecast rests on before anything is known."""

_LONGEST_NS = 24 * 3600 * 10**9
"""No longer budget is looked for."""

_SEARCH_STEP = 1.02
"""Budgets are tried in steps of 2 %: finer than any forecast is worth."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a run: how many comparisons share a round, and its stopping rule.

    `pairs` counts cells times workloads; each measures blocks of its own in every round.
    """

    pairs: int
    minimum_rounds: int
    maximum_rounds: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What an earlier run showed of a workload in a cell.

    `operation_ns` is the mean time of an operation for each arm of a block. `scatter` is that of the
    comparison that scattered most.
    """

    operation_ns: tuple[float, ...]
    scatter: Scatter


@dataclass(frozen=True, slots=True)
class WorkloadForecast:
    """How a workload will probably be measured in each cell, and how narrow its widest interval becomes.

    `half_width` is a ratio (0.03 is ±3 %), None if the budget holds too few rounds for any interval.
    `needed_ns` is the budget that reaches `precision`; None if no budget up to a day does.
    """

    workload: str
    rounds: int
    round_ns: float
    blocks: int
    cycles: int
    slice_ns: float
    half_width: float | None
    precision: float
    needed_ns: float | None


def expected_design(
    costs: Costs, scatter: Scatter, budget_ns: float, limits: Limits, *, step: int = CYCLES_TOGETHER
) -> Design:
    """Return how the runner will spend a budget on comparisons that all cost the same.

    `costs` are those of one pair; the overhead of a round is shared by all pairs. A budget that is too small
    for `minimum_rounds` gives as many rounds as fit, perhaps none. `step` is by how many cycles blocks grow.
    """
    least_ns = costs.round_ns + limits.pairs * (costs.block_ns + step * costs.cycle_ns)
    share_ns = round_share(
        int(budget_ns),
        done=0,
        minimum=limits.minimum_rounds,
        maximum=limits.maximum_rounds,
        overhead_ns=costs.round_ns,
        least_ns=least_ns,
    )
    each_ns = max(float(share_ns), least_ns)
    rounds = min(int(budget_ns / each_ns + 1e-6), limits.maximum_rounds)
    time_ns = (each_ns - costs.round_ns) / limits.pairs
    blocks = block_count(time_ns, costs.cycle_ns, costs.block_ns)
    cycles = max(int((time_ns / blocks - costs.block_ns) / (step * costs.cycle_ns)) * step, step)
    half = expected_half_width(
        scatter, rounds=rounds, blocks=blocks, cycles=cycles, confidence=limits.confidence
    )
    return Design(rounds, blocks, cycles, half, rounds * each_ns)


def budget_needed(precision: float, costs: Costs, scatter: Scatter, limits: Limits) -> float | None:
    """Return the smallest budget whose expected half-width is at most `precision`; None beyond a day."""
    budget_ns = limits.minimum_rounds * (
        costs.round_ns + limits.pairs * (costs.block_ns + CYCLES_TOGETHER * costs.cycle_ns)
    )
    while budget_ns <= _LONGEST_NS:
        if expected_design(costs, scatter, budget_ns, limits).half_width <= precision:
            return budget_ns
        budget_ns *= _SEARCH_STEP
    return None


def forecast_workload(
    workload: str,
    seen: Sequence[Seen],
    *,
    arms: int,
    clients: int,
    rate: float | None,
    budget_ns: float,
    precision: float,
    limits: Limits,
) -> WorkloadForecast:
    """Forecast a workload whose arms take turns, by the cell of `seen` with the widest interval.

    Args:
        workload: its name.
        seen: what an earlier run showed, a cell each; `TYPICAL` values count if it is empty.
        arms: arms of a block, the baseline's second run included.
        clients: connections of its load.
        rate: arrivals a second, in an open loop.
        budget_ns: of the whole run.
        precision: the half-width that is asked for, as a ratio.
        limits: see `Limits`.
    """
    found = []
    for one in seen or [Seen((OPERATION_NS,) * arms, TYPICAL)]:
        pilot = Pilot(one.operation_ns)
        sizes = slice_sizes(pilot, clients=clients, rate=rate)
        costs = Costs(cycle_ns(pilot, sizes, clients), BLOCK_OVERHEAD_NS, ROUND_OVERHEAD_NS)
        design = expected_design(costs, one.scatter, budget_ns, limits)
        needed_ns = budget_needed(precision, costs, one.scatter, limits)
        found.append((design.half_width, needed_ns or math.inf, design, costs.cycle_ns / len(sizes)))
    half_width, needed, design, slice_ns = max(found, key=lambda one: one[:2])
    return WorkloadForecast(
        workload=workload,
        rounds=design.rounds,
        round_ns=design.total_ns / design.rounds if design.rounds else 0.0,
        blocks=design.blocks,
        cycles=design.cycles,
        slice_ns=slice_ns,
        half_width=half_width if math.isfinite(half_width) else None,
        precision=precision,
        needed_ns=needed if math.isfinite(needed) else None,
    )


def reasons(forecasts: Sequence[WorkloadForecast]) -> tuple[str, ...]:
    """Say why rounds, blocks and slices are as long as they are, a sentence each."""
    if not forecasts:
        return ()
    slices = sorted({one.slice_ns for one in forecasts})
    length = format_duration(slices[0])
    if slices[-1] > 1.05 * slices[0]:
        length = f"{length} to {format_duration(slices[-1])}"
    found = [
        f"slices of about {length}: at least {format_duration(SLICE_NS)}, so that switching between variants "
        "costs little; longer where an operation takes longer, or several clients or an arrival rate need it",
        "blocks: up to 4 a round, because their median resists one that other programs disturbed",
        f"rounds of about {format_duration(forecasts[0].round_ns)}: as short as the restart in each allows, "
        "which takes at most a fifth of a round, unless maximum_rounds bounds their number",
    ]
    return tuple(found)
