"""Check before the first round whether the budget fits the rounds that a verdict needs. Pure.

The estimate is optimistic (one block of each pair per round, a quick restart), so a warning is always
justified.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from uncork.experiment.plan.forecast import BLOCK_OVERHEAD_NS
from uncork.experiment.plan.order import arms, cells
from uncork.experiment.plan.slicing import CYCLES_TOGETHER, Pilot, cycle_ns, slice_sizes, warmup_operations
from uncork.experiment.spec.schema import Spec
from uncork.model.trial import Cell
from uncork.model.units import count_words, format_duration, series_words
from uncork.stats.power import Feasibility, feasible

_RESTART_NS = 300_000_000.0
"""Minimum time of a round besides its blocks. Restarts on two virtual processors took 0.2 to 0.3 s."""

_MARGIN = 1.1
"""The proposed budget is the optimistic estimate times this factor."""

LARGE_SETUP = 1 / 3
"""Part of the budget from which on set-up is announced as large."""

_NOTICED = 0.15
"""It is announced during the run once it has used this part, and will use the larger one at its pace."""

Compared = tuple[Cell, str, str]
"""A cell, a workload and a variant."""


def budget_shortage(
    spec: Spec,
    operation_ns: Mapping[Compared, float],
    refused: Collection[Compared] = (),
    *,
    setup_ns: int = 0,
    evidence_ns: int = 0,
) -> str:
    """Return a sentence if the budget cannot fit the rounds that a verdict needs; empty if it can.

    Args:
        spec: the experiment.
        operation_ns: mean time of an operation, from the answer check. Unknown operations count as instant.
        refused: comparisons that will not be measured.
        setup_ns: how long set-up took.
        evidence_ns: the time of the budget that is reserved for what follows the rounds.
    """
    all_cells = cells(spec)
    pairs = [(cell, workload) for cell in all_cells for workload in spec.workloads]
    times = [_pair_ns(spec, pair, operation_ns, refused) for pair in pairs]
    variants = len(spec.variants) - 1
    found = feasible(
        budget_ns=spec.stop.budget,
        setup_ns=float(setup_ns + evidence_ns),
        round_ns=_RESTART_NS,
        block_ns=BLOCK_OVERHEAD_NS,
        slice_ns=math.fsum(times) / len(pairs) / (variants + 2),
        variants=variants,
        pairs=len(pairs),
        blocks=1,
        minimum_rounds=spec.stop.verdict_rounds,
    )
    found = replace(found, least_ns=math.ceil(_MARGIN * found.least_ns / 1e9) * 1e9)
    taken = [f"set-up took {format_duration(setup_ns)}"] if setup_ns > LARGE_SETUP * spec.stop.budget else []
    if evidence_ns > LARGE_SETUP / 2 * spec.stop.budget:
        taken.append(
            f'the kinds in the line "evidence" of the file will take about {format_duration(evidence_ns)}'
        )
    return feasibility_words(
        found,
        taken,
        minimum_rounds=spec.stop.verdict_rounds,
        pairs=len(pairs),
        variants=variants,
        options=smaller_question(spec, found.pairs),
    )


def setup_notice(budget_ns: int, used_ns: int, *, done: int, steps: int) -> str:
    """Return a sentence if set-up is about to take a large part of the budget; empty otherwise.

    `used_ns` is its time so far, in which `done` of `steps` similar steps were completed. Without steps, it
    is taken as the whole.
    """
    whole_ns = used_ns * steps / done if 0 < done < steps else used_ns
    if used_ns < _NOTICED * budget_ns or whole_ns <= LARGE_SETUP * budget_ns:
        return ""
    more = f" ({done} of {steps} steps), and takes about {format_duration(whole_ns)} at this pace"
    return (
        f"set-up has taken {format_duration(used_ns)} of the budget of {format_duration(budget_ns)} so far"
        f"{more if whole_ns > used_ns else ''}: raise the budget with --budget, or measure fewer levels with "
        "--set"
    )


def _pair_ns(
    spec: Spec,
    pair: tuple[Cell, str],
    operation_ns: Mapping[Compared, float],
    refused: Collection[Compared],
) -> float:
    """Return the minimum time of one block of a workload in a cell."""
    cell, workload = pair
    facts = spec.workloads[workload]
    times = [
        operation_ns.get((*pair, arm.variant), 0.0)
        for arm in arms(spec, workload)
        if (*pair, arm.variant) not in refused
    ]
    clients = spec.clients(workload, dict(cell.levels))
    warming = math.fsum(warmup_operations(facts.warmup_operations, time) * time for time in times)
    if facts.fitted:
        pilot = Pilot(tuple(times))
        rate = None if facts.http is None else facts.http.rate
        measuring = CYCLES_TOGETHER * cycle_ns(pilot, slice_sizes(pilot, clients=clients, rate=rate), clients)
    elif facts.duration is not None:
        measuring = math.fsum(max(float(facts.duration), time) for time in times)
    else:
        measuring = math.fsum((facts.operations or 1) * time / clients for time in times)
    return warming + measuring


def smaller_question(spec: Spec, pairs: int) -> str:
    """Return options that keep as much of an experiment as fits `pairs` (cells times workloads).

    Levels and workloads are kept in the order of the file. The result is empty if no pair fits.
    """
    if pairs < 1:
        return ""
    levels = {name: [str(level) for level in spec.levels(name)] for name in spec.factors}
    parts = [list(spec.workloads), *levels.values()]
    counts = max(
        (
            one
            for one in itertools.product(*(range(1, len(part) + 1) for part in parts))
            if math.prod(one) <= pairs
        ),
        key=math.prod,
    )
    words = []
    if counts[0] < len(parts[0]):
        words += [f"--workload {shlex.quote(name)}" for name in parts[0][: counts[0]]]
    for (factor, found), count in zip(levels.items(), counts[1:], strict=True):
        if count < len(found):
            words.append(f"--set {shlex.quote(factor + '=' + ','.join(found[:count]))}")
    return " ".join(words)


def feasibility_words(
    found: Feasibility,
    taken: Sequence[str] = (),
    *,
    minimum_rounds: int,
    pairs: int,
    variants: int,
    options: str = "",
) -> str:
    """Return a sentence about a budget that is too small, with remedies; empty if it is large enough.

    `taken` are clauses about what else takes a large part of the budget.
    `pairs` (cells times workloads) and `variants` (besides the baseline) are those of the whole experiment.
    `options` select no more than the pairs that fit.
    """
    if found.fits:
        return ""
    rounds = count_words(found.rounds, "round")
    known = f" ({series_words(taken)})" if taken else ""
    text = (
        f"the budget of {format_duration(found.budget_ns)} is enough for {rounds}{known}, "
        f"but a verdict needs {minimum_rounds}: raise it to {format_duration(found.least_ns)} with --budget"
    )
    smaller = []
    if 0 < found.pairs < pairs:
        one = "pair" if found.pairs == 1 else "pairs"
        how = f" ({options})" if options else ""
        smaller.append(f"{found.pairs} {one} of cell and workload instead of {pairs}{how}")
    if 0 < found.variants < variants:
        smaller.append(f"{count_words(found.variants, 'variant')} instead of {variants}")
    if not smaller:
        return f"{text}; no smaller part of the experiment fits"
    return f"{text}, or measure less: {' or '.join(smaller)}"
