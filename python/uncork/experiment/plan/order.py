"""Order the trials of an experiment from its spec and seed: interleaved, counterbalanced, random, and pure.

A round visits the cells in random order. In each cell it runs several blocks of each workload; a block holds
one trial of every arm. Blocks come in pairs: the first in a random order of arms, the second in reverse
order, so that steady drift during a pair affects every arm equally.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from uncork.experiment.plan.allotment import reserved_ns
from uncork.experiment.plan.evidence_time import evidence_ns, sampling
from uncork.experiment.plan.forecast import (
    ASSUMED,
    BLOCK_OVERHEAD_NS,
    ROUND_OVERHEAD_NS,
    Limits,
    Seen,
    WorkloadForecast,
    forecast_workload,
    reasons,
)
from uncork.experiment.plan.slicing import CYCLES_TOGETHER, SLICE_NS
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.sqltext import substitute
from uncork.model.engine import POSTGRESQL
from uncork.model.trial import Arm, Cell, Trial

PLAN_VERSION = 1

RESTORE_NS = 270_000_000
"""Rough time to restore and warm the data of a trial; used only for estimates."""


@dataclass(frozen=True, slots=True)
class Visit:
    """The blocks of one cell in a round; each block is a tuple of trials to run in order."""

    cell: Cell
    blocks: tuple[tuple[Trial, ...], ...]


def cells(spec: Spec) -> tuple[Cell, ...]:
    """Return every combination of factor levels, in the order of the file."""
    names = list(spec.factors)
    levels = [list(spec.levels(name)) for name in names]
    return tuple(Cell(tuple(zip(names, chosen, strict=True))) for chosen in itertools.product(*levels))


def arms(spec: Spec, workload: str | None = None) -> tuple[Arm, ...]:
    """Return the baseline, its second run, then the other variants in file order.

    With a workload, return the arms of one of its blocks; without, those of the whole experiment.
    """
    baseline, names = spec.baseline, spec.variants if workload is None else spec.compared(workload)
    others = (Arm(name) for name in names if name != baseline)
    return (Arm(baseline), Arm(baseline, again=True), *others)


def texts_for(spec: Spec, cell: Cell, variant: str) -> dict[str, str]:
    """Return the text that replaces each `:name` in this variant's SQL in this cell.

    A variant's value may itself contain factors (and parameters, if a workload uses it). A level's text may
    contain values.
    """
    texts = {factor: spec.levels(factor)[level] for factor, level in cell.levels}
    values = spec.variants[variant].values
    levels = {factor: substitute(text, values) for factor, text in texts.items()}
    return {**spec.made, **levels, **{name: substitute(text, texts) for name, text in values.items()}}


def plan_round(
    spec: Spec,
    number: int,
    *,
    active: Collection[tuple[Cell, str]],
    refused: Collection[tuple[Cell, str, str]] = (),
    settled: Collection[tuple[Cell, str, str]] = (),
) -> list[Visit]:
    """Plan one round.

    Args:
        spec: the experiment.
        number: the round, from 1.
        active: the (cell, workload) pairs that still need trials.
        refused: (cell, workload, variant) left out because the variant gave a wrong answer.
        settled: (cell, workload, variant) left out because the comparison needs no more trials.

    Returns:
        The visits in the order to make them. For a workload whose trial length uncork chooses, the first
        block represents all: their number depends on the time that they take. The same spec, number and sets
        give the same plan. Leaving out some pairs or arms does not change the order of the others.
    """
    seed = spec.experiment.seed
    order = list(cells(spec))
    random.Random(f"{seed}/cells/{number}").shuffle(order)
    visits = []
    for cell in order:
        if not any((cell, name) in active for name in spec.workloads):
            continue
        blocks = []
        for block in range(1, max(planned_blocks(spec, name) for name in spec.workloads) + 1):
            shuffled = list(spec.workloads)
            random.Random(f"{seed}/workloads/{number}/{block}/{cell.name}").shuffle(shuffled)
            for workload in shuffled:
                if (cell, workload) not in active or block > planned_blocks(spec, workload):
                    continue
                ordered = _order_of_arms(arms(spec, workload), seed, number, block, cell, workload)
                out = {pair for pair in (*refused, *settled) if pair[:2] == (cell, workload)}
                left = [arm for arm in ordered if (cell, workload, arm.variant) not in out]
                blocks.append(
                    tuple(
                        Trial(number, block, position, cell, workload, arm)
                        for position, arm in enumerate(left)
                    )
                )
        visits.append(Visit(cell, tuple(blocks)))
    return visits


def planned_blocks(spec: Spec, workload: str) -> int:
    """Return the number of blocks of a workload per cell in a round's plan."""
    return 1 if spec.workloads[workload].fitted else spec.blocks(workload)


def _order_of_arms(
    everyone: Sequence[Arm], seed: int, number: int, block: int, cell: Cell, workload: str
) -> list[Arm]:
    pair, second = divmod(block - 1, 2)
    ordered = list(everyone)
    random.Random(f"{seed}/arms/{number}/{pair}/{cell.name}/{workload}").shuffle(ordered)
    return ordered[::-1] if second else ordered


def estimate_trial_ns(spec: Spec, workload: str) -> int:
    """Estimate the time of a trial of fixed length, overhead included. Counted operations add to it."""
    facts = spec.workloads[workload]
    restore_ns = RESTORE_NS if facts.state == "reset" else 0
    return (facts.duration or 0) + int(BLOCK_OVERHEAD_NS) + restore_ns


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """One block of the first round: its workload, and its arms in the order of their trials."""

    workload: str
    arms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedVisit:
    """The blocks of one cell in the first round."""

    cell: dict[str, str]
    blocks: tuple[PlannedBlock, ...]


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """The plan as plain data. Times are in nanoseconds; `rounds` holds the minimum and the maximum.

    `forecasts` has an entry for each workload whose variants take turns in slices. `basis` names the source
    of the standard deviations behind it. `reasons` explains the lengths of slices, blocks and rounds.
    `setup_ns` is the time of set-up in that source; None if it is unknown.
    """

    version: int
    experiment: str
    question: str
    seed: int
    baseline: str
    variants: tuple[str, ...]
    arms: tuple[str, ...]
    factors: dict[str, tuple[str, ...]]
    workloads: tuple[str, ...]
    cells: tuple[dict[str, str], ...]
    comparisons: int
    blocks_a_round: int
    trials_a_round: int
    rounds: tuple[int, int]
    round_ns: int
    least_ns: int
    worst_ns: int
    evidence: tuple[str, ...]
    evidence_ns: int
    first_round: tuple[PlannedVisit, ...]
    warnings: tuple[str, ...] = ()
    forecasts: tuple[WorkloadForecast, ...] = ()
    basis: str = ""
    reasons: tuple[str, ...] = ()
    setup_ns: int | None = None


def plan_document(
    spec: Spec,
    seen: Mapping[str, Sequence[Seen]] | None = None,
    basis: str = ASSUMED,
    setup_ns: int | None = None,
) -> PlanDocument:
    """Return the plan as plain data, for `uncork plan --json` and the stored run.

    `least_ns` is the measuring time of one block of every workload in one cell; trials that count operations
    add the time that they take. `worst_ns` is the budget of the whole run. Collecting `evidence` takes about
    `evidence_ns` of it.

    Args:
        spec: the experiment.
        seen: what an earlier run showed, by workload; the others use typical values.
        basis: a sentence that names the source of `seen`.
        setup_ns: the time of set-up there; None if it is unknown, which counts as no time.
    """
    all_cells, all_arms = cells(spec), arms(spec)
    forecasts = plan_forecasts(spec, seen or {}, setup_ns or 0)
    blocks_of = {name: planned_blocks(spec, name) for name in spec.workloads}
    blocks_of |= {forecast.workload: forecast.blocks for forecast in forecasts}
    blocks = len(all_cells) * sum(blocks_of.values())
    if forecasts:
        round_ns = int(max(forecast.round_ns for forecast in forecasts))
    else:
        round_ns = int(ROUND_OVERHEAD_NS) + sum(
            estimate_trial_ns(spec, name) * len(all_cells) * blocks_of[name] * len(arms(spec, name))
            for name in spec.workloads
        )
    everything = {(cell, name) for cell in all_cells for name in spec.workloads}
    first_round = tuple(
        PlannedVisit(
            dict(visit.cell.levels),
            tuple(
                PlannedBlock(block[0].workload, tuple(trial.arm.name for trial in block))
                for block in visit.blocks
            ),
        )
        for visit in plan_round(spec, 1, active=everything)
    )
    return PlanDocument(
        version=PLAN_VERSION,
        experiment=spec.experiment.name,
        question=spec.experiment.question,
        seed=spec.experiment.seed,
        baseline=spec.baseline,
        variants=tuple(spec.variants),
        arms=tuple(arm.name for arm in all_arms),
        factors={name: tuple(spec.levels(name)) for name in spec.factors},
        workloads=tuple(spec.workloads),
        cells=tuple(dict(cell.levels) for cell in all_cells),
        comparisons=len(all_cells) * sum(len(spec.compared(name)) - 1 for name in spec.workloads),
        blocks_a_round=blocks,
        trials_a_round=len(all_cells)
        * sum(blocks_of[name] * len(arms(spec, name)) for name in spec.workloads),
        rounds=(min(spec.stop.verdict_rounds, spec.stop.maximum_rounds), spec.stop.maximum_rounds),
        round_ns=round_ns,
        least_ns=least_ns(spec),
        worst_ns=spec.stop.budget,
        evidence=tuple(spec.experiment.evidence),
        evidence_ns=_evidence_ns(spec),
        first_round=first_round,
        warnings=plan_warnings(spec),
        forecasts=forecasts,
        basis=basis if forecasts else "",
        reasons=reasons(forecasts),
        setup_ns=setup_ns,
    )


def plan_forecasts(
    spec: Spec, seen: Mapping[str, Sequence[Seen]], setup_ns: int = 0
) -> tuple[WorkloadForecast, ...]:
    """Forecast the workloads whose arms take turns; success rates have no forecast."""
    all_cells, stop = cells(spec), spec.stop
    limits = Limits(
        pairs=len(all_cells) * len(spec.workloads),
        minimum_rounds=stop.minimum_rounds,
        maximum_rounds=stop.maximum_rounds,
        confidence=stop.confidence,
    )
    after_ns = reserved_ns(stop.budget, _evidence_ns(spec))
    return tuple(
        forecast_workload(
            name,
            seen.get(name, ()),
            arms=len(arms(spec, name)),
            clients=max(spec.clients(name, dict(cell.levels)) for cell in all_cells),
            rate=None if facts.http is None else facts.http.rate,
            budget_ns=stop.budget,
            before_ns=setup_ns,
            after_ns=after_ns,
            precision=spec.precision(name),
            limits=limits,
        )
        for name, facts in spec.workloads.items()
        if facts.fitted and not spec.observes and facts.metric != "success"
        if not spec.opens_connections(name)
    )


def _evidence_ns(spec: Spec) -> int:
    """Return how long evidence takes if every variant is sampled. Only PostgreSQL can be."""
    kinds = set(spec.experiment.evidence) - {"plans"}
    places = sum(
        spec.engine(variant) == POSTGRESQL for name in spec.workloads for variant in spec.compared(name)
    )
    return places * evidence_ns(sampling(kinds, places, spec.stop.budget)) if kinds else 0


def plan_warnings(spec: Spec) -> tuple[str, ...]:
    """Return warnings about parts of an experiment that cannot end as expected, one per line.

    Each names the remedy. A comparison ends when its interval is as narrow as `precision`. An interval wider
    than `practical` cannot lie inside it, so "no practical difference" is never found.
    """
    few = _few_rounds(spec)
    wide = [name for name in spec.workloads if spec.precision(name) > spec.practical(name)]
    if not wide:
        return few
    where = f" on {', '.join(wide)}" if len(wide) < len(spec.workloads) else ""
    precision, practical = spec.precision(wide[0]), spec.practical(wide[0])
    points = " points" if spec.workloads[wide[0]].metric == "success" else " %"
    half = f"{practical * 50:.3g}%"
    option = "" if spec.workloads[wide[0]].precision else f" (--precision {half})"
    return (
        *few,
        f"precision ({precision * 100:.3g}{points}) is wider than practical ({practical * 100:.3g}{points})"
        f'{where}: variants that do not differ are likely to end as "not enough evidence"; '
        f'set precision = "{half}"{option}, or raise practical',
    )


def _few_rounds(spec: Spec) -> tuple[str, ...]:
    """Warn of a stopping rule with fewer rounds than every verdict needs."""
    stop = spec.stop
    if stop.maximum_rounds < stop.verdict_rounds:
        return (
            f"maximum_rounds ({stop.maximum_rounds}) allows no verdict, because a verdict needs "
            f"{stop.verdict_rounds} starts of the server (only on an existing server, --dsn, blocks count "
            f"instead); set maximum_rounds to {stop.verdict_rounds} or more",
        )
    if stop.minimum_rounds < stop.verdict_rounds:
        return (
            f"minimum_rounds ({stop.minimum_rounds}) counts as {stop.verdict_rounds}, which every verdict "
            f"needs; set minimum_rounds to {stop.verdict_rounds} or more",
        )
    return ()


def least_ns(spec: Spec) -> int:
    """Return the measuring time of one block of every workload in one cell.

    A smaller budget measures nothing.
    """
    return sum(
        (CYCLES_TOGETHER * SLICE_NS if facts.fitted else facts.duration or 0) * len(arms(spec, name))
        for name, facts in spec.workloads.items()
    )
