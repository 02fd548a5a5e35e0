"""Measure how small a difference this machine can resolve, with equal arms in turns over several restarts."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from uncork.engines.postgres import PostgresServer
from uncork.errors import RunError
from uncork.experiment.plan.forecast import TYPICAL, Limits, expected_design
from uncork.experiment.plan.order import arms
from uncork.experiment.plan.slicing import (
    CYCLES_TOGETHER,
    Pilot,
    cycle_ns,
    cycle_order,
    slice_sizes,
    warmup_operations,
)
from uncork.experiment.run.request import trial_request
from uncork.experiment.spec.schema import Spec, parse_spec
from uncork.load.trials import run_block
from uncork.model.block import BlockMeasurement, BlockRequest, SliceSize
from uncork.model.measurement import Outcome, Slice
from uncork.model.trial import Arm, Cell, Trial
from uncork.model.units import count_words, format_duration
from uncork.requests.server import ServerChoice
from uncork.requests.source import starter
from uncork.stats.power import Costs, cautious_scatter, estimate_scatter

DEFAULT_BUDGET_NS = 20 * 10**9
LEAST_BUDGET_NS = 5 * 10**9
MINUTES = (1, 5, 30)
"""Budgets for which the half-width is forecast."""

_ROUNDS = 8
_LEAST_ROUNDS = 3
_BLOCKS = 2
_LEAST_BLOCK_NS = 100_000_000
_TYPICAL_RESTART_NS = 500_000_000
_PILOT_NS = 50_000_000
_HOME = Arm("baseline")

_BUSY = 0.5
"""The load average per processor above which the report blames other programs."""

Ratios = list[list[list[float]]]
"""Log ratios by round, block and cycle, as in `stats.power`."""


@dataclass(frozen=True, slots=True)
class StatementResolution:
    """How small a difference can be resolved on one statement.

    `cycle`, `block` and `round` are the standard deviations of a log ratio between the cycles of a block,
    the blocks of a round, and the rounds. `half_widths` are ratios (0.03 is ±3 %), one for each of
    `MINUTES`; None if that time holds too few rounds for an interval.
    """

    name: str
    title: str
    operation_ns: float
    cycle: float
    block: float
    round: float
    half_widths: tuple[float | None, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """How small a difference this machine can resolve, by statement and minutes of measuring.

    `load` is the machine's load average before the measurement. `restarts` is False on an existing server,
    where the result leaves out variation between restarts.
    """

    server: str
    processors: int
    load: float
    elapsed_ns: int
    rounds: int
    restarts: bool
    confidence: float
    minutes: tuple[int, ...]
    statements: tuple[StatementResolution, ...]
    sentence: str


@dataclass(slots=True)
class _Measured:
    """The measurement of one statement."""

    sizes: tuple[SliceSize, ...]
    cycle_ns: float
    operation_ns: float
    ratios: Ratios = field(default_factory=list)
    around_ns: list[float] = field(default_factory=list)


def measure_resolution(
    choice: ServerChoice, budget_ns: int = DEFAULT_BUDGET_NS, note: Callable[[str], None] = lambda _: None
) -> Resolution:
    """Start a server (or use an existing one), and measure for about `budget_ns`.

    An existing server is not restarted, so variation between restarts is not measured.

    Raises:
        RunError: if the server cannot be used, or goes away.
    """
    spec = parse_spec(starter("resolution"), file="resolution.toml", read=str, overrides={})
    server = choice.server({} if choice.dsn is not None else spec.server.settings)
    load = os.getloadavg()[0]
    try:
        note("starting the server")
        server.start()
        server.build(Cell(()), "baseline", spec.setup_sql("baseline"), {}, spec.setup.timeout)
        server.restore(Cell(()), _HOME)
        note(f"measuring for {format_duration(budget_ns)}")
        return _Session(spec, server, budget_ns).resolution(load)
    finally:
        server.stop()


class _Session:
    """The rounds of one measurement."""

    def __init__(self, spec: Spec, server: PostgresServer, budget_ns: int) -> None:
        self._spec = spec
        self._server = server
        self._budget_ns = budget_ns
        self._measured: dict[str, _Measured] = {}
        self._restarts_ns: list[int] = []

    def resolution(self, load: float) -> Resolution:
        """Measure rounds until the budget is used, and return what they resolve."""
        spec, begun = self._spec, time.monotonic_ns()
        self._server.warm(Cell(()), _HOME)
        for workload in spec.workloads:
            self._measured[workload] = self._first(workload)
        number, longest_ns = 0, 0
        while number < _LEAST_ROUNDS or time.monotonic_ns() - begun + longest_ns <= self._budget_ns:
            started = time.monotonic_ns()
            self._round(number)
            longest_ns = max(longest_ns, time.monotonic_ns() - started)
            number += 1
        stop = spec.stop
        limits = Limits(1, stop.minimum_rounds, stop.maximum_rounds, stop.confidence)
        restart_ns = fmean(self._restarts_ns) if self._server.restartable else 0.0
        statements = tuple(
            resolve_statement(
                workload,
                spec.workloads[workload].title or workload,
                found.operation_ns,
                found.ratios,
                Costs(found.cycle_ns, fmean(found.around_ns), restart_ns),
                limits,
            )
            for workload, found in self._measured.items()
        )
        processors = len(os.sched_getaffinity(0))
        return Resolution(
            server=self._server.facts()["server"].get("version", ""),
            processors=processors,
            load=load,
            elapsed_ns=time.monotonic_ns() - begun,
            rounds=number,
            restarts=self._server.restartable,
            confidence=stop.confidence,
            minutes=MINUTES,
            statements=statements,
            sentence=resolution_sentence(statements, load=load, processors=processors),
        )

    def _round(self, number: int) -> None:
        started = time.monotonic_ns()
        if number:
            self._server.restart()
            self._server.warm(Cell(()), _HOME)
            self._restarts_ns.append(time.monotonic_ns() - started)
        restart_ns = fmean(self._restarts_ns) if self._restarts_ns else _TYPICAL_RESTART_NS
        blocks = _BLOCKS * len(self._measured)
        limit_ns = int(max((self._budget_ns / _ROUNDS - restart_ns) / blocks, _LEAST_BLOCK_NS))
        for found in self._measured.values():
            found.ratios.append([])
        for block in range(_BLOCKS):
            for workload, found in self._measured.items():
                before = time.monotonic_ns()
                measured = self._block(Trial(number, block, 0, Cell(()), workload, _HOME), found, limit_ns)
                took_ns = time.monotonic_ns() - before
                found.around_ns.append(max(took_ns - sum(piece.elapsed_ns for piece in measured.slices), 0.0))
                found.ratios[-1].append(cycle_ratios(measured.slices))

    def _first(self, workload: str) -> _Measured:
        sizes = (SliceSize(duration_ns=_PILOT_NS),) * len(arms(self._spec, workload))
        pilot = _Measured(sizes, float(len(sizes) * _PILOT_NS), float(_PILOT_NS))
        measured = self._block(Trial(0, 0, 0, Cell(()), workload, _HOME), pilot, 1)
        operation_ns = sum(piece.sum_ns for piece in measured.slices) / max(
            sum(piece.succeeded for piece in measured.slices), 1
        )
        seen = Pilot((operation_ns,) * len(sizes))
        fitted = slice_sizes(seen)
        return _Measured(fitted, cycle_ns(seen, fitted), operation_ns)

    def _block(self, first: Trial, found: _Measured, limit_ns: int) -> BlockMeasurement:
        """Carry out one block. Raises RunError if a statement fails."""
        spec, target = self._spec, self._server.target(first.cell, _HOME)
        asked = spec.workloads[first.workload].warmup_operations
        warmup = warmup_operations(asked, found.operation_ns)
        cycles = int(2 * limit_ns / found.cycle_ns) + CYCLES_TOGETHER
        stream = f"resolution/{first.workload}/{first.round}/{first.block}"
        requests = [
            trial_request(spec, replace(first, arm=arm), target, {}) for arm in arms(spec, first.workload)
        ]
        measured = run_block(
            BlockRequest(
                arms=tuple(replace(request, warmup_operations=warmup) for request in requests),
                sizes=found.sizes,
                cycles=cycle_order(len(requests), cycles, stream),
                together=CYCLES_TOGETHER,
                limit_ns=limit_ns,
            ),
            sample=False,
        )
        for measurement in measured.arms:
            if measurement.outcome != Outcome.COMPLETE:
                raise RunError(
                    f"doctor, statement {first.workload}: {measurement.message or measurement.outcome}"
                )
        return measured


def cycle_ratios(slices: Sequence[Slice]) -> list[float]:
    """Return the log ratio of each cycle of a block: the third arm against the mean of the first two."""
    means: dict[int, dict[int, float]] = {}
    for piece in slices:
        if piece.succeeded and piece.sum_ns:
            means.setdefault(piece.cycle, {})[piece.arm] = math.log(piece.sum_ns / piece.succeeded)
    return [
        found[2] - (found[0] + found[1]) / 2.0
        for _, found in sorted(means.items())
        if found.keys() >= {0, 1, 2}
    ]


def resolve_statement(
    name: str, title: str, operation_ns: float, ratios: Ratios, costs: Costs, limits: Limits
) -> StatementResolution:
    """Forecast the half-widths of one statement from measured log ratios.

    Raises:
        RunError: if a block was too short for a single cycle.
    """
    if any(not cycles for blocks in ratios for cycles in blocks):
        raise RunError(f"doctor, statement {name}: a block ended before its first cycle; increase --budget")
    std_dev, seen = cautious_scatter(ratios, TYPICAL), estimate_scatter(ratios)
    designs = [expected_design(costs, std_dev, minutes * 60e9, limits) for minutes in MINUTES]
    return StatementResolution(
        name=name,
        title=title,
        operation_ns=operation_ns,
        cycle=seen.cycle,
        block=seen.block,
        round=seen.round,
        half_widths=tuple(
            design.half_width if math.isfinite(design.half_width) else None for design in designs
        ),
        reason=seen.sentence(designs[0].blocks, designs[0].cycles),
    )


def resolution_sentence(statements: Sequence[StatementResolution], *, load: float, processors: int) -> str:
    """Explain the result to someone who is about to measure on this machine."""
    found = []
    for place in (0, -1):
        widths = [statement.half_widths[place] for statement in statements]
        known = [width for width in widths if width is not None]
        if len(known) == len(widths):
            found.append(f"below {max(known):.1%} in {count_words(MINUTES[place], 'minute')}")
    text = "This machine restarts the server too slowly for an interval in 30 minutes."
    if found:
        seen = ", or ".join(found)
        text = f"One comparison cannot detect differences {seen} here. More comparisons share the time."
    if load > _BUSY * processors:
        text += (
            f" Other programs were busy when this began (load {load:.1f} on {processors} processors): "
            "a quieter machine resolves smaller differences."
        )
    return text
