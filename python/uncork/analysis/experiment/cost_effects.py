"""How the costs of variants differ from the baseline's, with intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uncork.experiment.guard.gate_evidence import cost_evidence
from uncork.model.results.costs import COSTS
from uncork.model.results.experiment import CostEffect
from uncork.model.trial import Cell
from uncork.stats.effect import Effect
from uncork.stats.gates.decision import Exact
from uncork.stats.proportion import ShareEffect
from uncork.stats.sample import UnitKind


def cost_effects(
    trials: Sequence[Mapping[str, Any]],
    cells: Mapping[str, Cell],
    *,
    baseline: str,
    confidence: float,
    kind: UnitKind,
) -> Iterator[CostEffect]:
    """Yield the effect of each variant on each cost, where both sides have it.

    Args:
        trials: the stored trials of a run.
        cells: the run's cells by name.
        baseline: the variant to compare with.
        confidence: of each interval on its own.
        kind: what counts as one independent observation, as for the effects on the metric.
    """
    places = sorted(trials, key=lambda row: (row["cell"], row["workload"]))
    for (cell, workload), group in itertools.groupby(places, key=lambda row: (row["cell"], row["workload"])):
        rows = list(group)
        for variant in dict.fromkeys(row["variant"] for row in rows if row["variant"] != baseline):
            for item in COSTS:
                found = cost_evidence(
                    item, rows, baseline=baseline, candidate=variant, confidence=confidence, kind=kind
                )
                place = (cells[cell].levels, workload, variant, item.name)
                if isinstance(found, Exact) and found.baseline:
                    ratio = found.candidate / found.baseline
                    yield CostEffect(*place, found.rounds, ratio=ratio, low=ratio, high=ratio, exact=True)
                elif isinstance(found, Effect):
                    bounded = math.isfinite(found.high)
                    yield CostEffect(
                        *(*place, found.rounds),
                        ratio=found.ratio,
                        low=found.low if bounded else None,
                        high=found.high if bounded else None,
                    )
                elif isinstance(found, ShareEffect):
                    bounded = math.isfinite(found.half_width)
                    yield CostEffect(
                        *(*place, found.rounds),
                        difference=found.difference,
                        difference_low=found.low if bounded else None,
                        difference_high=found.high if bounded else None,
                    )
