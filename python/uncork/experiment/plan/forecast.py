"""Forecast how narrow intervals will be for a budget, and which budget reaches a precision. Pure.

The forecast divides time by the same rules as the runner (`allotment`, `slicing`), and converts the result to
a half-width with `stats.power`. It needs the standard deviations of log ratios. Before the first run they are
unknown, so it uses `TYPICAL` and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from uncork.experiment.plan.allotment import end_of_rounds, round_share
from uncork.experiment.plan.slicing import (
    CYCLES_TOGETHER,
    SLICE_NS,
    Pilot,
    block_count,
    cycle_ns,
    slice_sizes,
)
from uncork.model.units import format_duration
from uncork.stats.power import Costs, Design, StdDevs, expected_half_width

TYPICAL = StdDevs(cycle=0.10, block=0.01, round=0.015)
"""Standard deviations of log ratios of equal arms on a small shared machine. docs/concepts/methods.md says
how they were measured (`uncork doctor` shows the values of your machine)."""

OPERATION_NS = 1_000_000.0
"""Assumed time of an operation before anything is known."""

ROUND_OVERHEAD_NS = 1_500_000_000.0
"""Approximate time per round for restarting an embedded server and warming its data."""

BLOCK_OVERHEAD_NS = 30_000_000.0
"""Approximate time per block for connecting and reading the server's counters."""

ASSUMED = (
    f"typical values, because no earlier run of this experiment is stored here: log ratios have a standard "
    f"deviation of {TYPICAL.cycle:.0%} between cycles, {TYPICAL.block:.0%} between blocks and "
    f"{TYPICAL.round:.1%} between rounds, and an operation takes {format_duration(OPERATION_NS)}"
)
"""The basis of a forecast before anything is known."""

_LONGEST_NS = 24 * 3600 * 10**9
"""The search stops at this budget."""

_SEARCH_STEP = 1.02
"""Budgets are tried in steps of 2 %, finer than the accuracy of any forecast."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run: how many comparisons share a round, and its stopping rule.

    `pairs` counts cells times workloads; each pair has its own blocks in every round.
    """

    pairs: int
    minimum_rounds: int
    maximum_rounds: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What an earlier run showed about a workload in a cell.

    `operation_ns` is the mean time of an operation for each arm of a block. `std_dev` holds the standard
    deviations of the comparison that varied most.
    """

    operation_ns: tuple[float, ...]
    std_dev: StdDevs


@dataclass(frozen=True, slots=True)
class WorkloadForecast:
    """How a workload will probably be measured in each cell, and the expected width of its widest interval.

    `half_width` is a ratio (0.03 is ±3 %), or None if the budget fits too few rounds for any interval.
    `needed_ns` is the budget that reaches `precision`, or None if no budget up to a day does.
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
    costs: Costs, std_dev: StdDevs, budget_ns: float, limits: Limits, *, step: int = CYCLES_TOGETHER
) -> Design:
    """Return how the runner will spend a budget on comparisons that all cost the same.

    `costs` are those of one pair; all pairs share the overhead of a round. If the budget is too small for
    `minimum_rounds`, the result has as many rounds as fit, possibly none. `step` is the increment of cycles
    per block.
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
        std_dev, rounds=rounds, blocks=blocks, cycles=cycles, confidence=limits.confidence
    )
    return Design(rounds, blocks, cycles, half, rounds * each_ns)


def budget_needed(precision: float, costs: Costs, std_dev: StdDevs, limits: Limits) -> float | None:
    """Return the smallest budget whose expected half-width is at most `precision`; None above a day."""
    budget_ns = limits.minimum_rounds * (
        costs.round_ns + limits.pairs * (costs.block_ns + CYCLES_TOGETHER * costs.cycle_ns)
    )
    while budget_ns <= _LONGEST_NS:
        if expected_design(costs, std_dev, budget_ns, limits).half_width <= precision:
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
    before_ns: float = 0.0,
    after_ns: float,
    precision: float,
    limits: Limits,
) -> WorkloadForecast:
    """Forecast a workload whose arms take turns, using the cell of `seen` with the widest interval.

    Args:
        workload: its name.
        seen: what an earlier run showed, one entry per cell; if empty, `TYPICAL` values are used.
        arms: number of arms in a block, including the baseline's second run.
        clients: connections of its load.
        rate: arrivals per second, in an open loop.
        budget_ns: budget of the whole run.
        before_ns: the time of set-up; 0 if it is unknown.
        after_ns: the part of the budget that is reserved for evidence and the report.
        precision: the requested half-width, as a ratio.
        limits: see `Limits`.
    """
    found = []
    for one in seen or [Seen((OPERATION_NS,) * arms, TYPICAL)]:
        pilot = Pilot(one.operation_ns)
        sizes = slice_sizes(pilot, clients=clients, rate=rate)
        costs = Costs(cycle_ns(pilot, sizes, clients), BLOCK_OVERHEAD_NS, ROUND_OVERHEAD_NS)
        rounds_ns = end_of_rounds(int(budget_ns), before_ns=int(before_ns), after_ns=int(after_ns))
        design = expected_design(costs, one.std_dev, rounds_ns - before_ns, limits)
        needed_ns = budget_needed(precision, costs, one.std_dev, limits)
        whole_ns = math.inf if needed_ns is None else before_ns + needed_ns + after_ns
        found.append((design.half_width, whole_ns, design, costs.cycle_ns / len(sizes)))
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
    """Return sentences that explain the lengths of rounds, blocks and slices."""
    if not forecasts:
        return ()
    slices = sorted({forecast.slice_ns for forecast in forecasts})
    length = format_duration(slices[0])
    if slices[-1] > 1.05 * slices[0]:
        length = f"{length} to {format_duration(slices[-1])}"
    found = [
        f"slices of about {length}: at least {format_duration(SLICE_NS)}, so that switching between variants "
        "costs little; longer where an operation takes longer, or several clients or an arrival rate need it",
        "blocks: up to 4 per round, because their median tolerates one that other programs disturbed",
        f"rounds of about {format_duration(forecasts[0].round_ns)}: as short as possible while the restart "
        "takes at most a fifth of a round, unless maximum_rounds limits their number",
    ]
    return tuple(found)
