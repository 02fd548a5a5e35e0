"""How times grow along a factor, from the trials of a stored run."""

from __future__ import annotations

from collections import defaultdict

from uncork.experiment.plan.order import cells
from uncork.experiment.spec.schema import Spec
from uncork.model.evidence import Levels
from uncork.model.results.growth import GrowthFacts, GrowthLine
from uncork.stats.growth import fit_growth
from uncork.store.query import RunReader

Series = dict[int, dict[float, float]]
"""For each round, the mean time in nanoseconds by size."""


def growth_facts(spec: Spec, reader: RunReader) -> GrowthFacts | None:
    """Fit the mean times of operations along the factor that the experiment names, if it names one."""
    asked = spec.growth
    if asked is None:
        return None
    places = {cell.name: cell for cell in cells(spec)}
    series: dict[tuple[str, Levels, str], Series] = defaultdict(lambda: defaultdict(dict))
    for row in reader.times():
        cell = places[row["cell"]]
        fixed = tuple(pair for pair in cell.levels if pair[0] != asked.factor)
        size = float(dict(cell.levels)[asked.factor])
        series[row["workload"], fixed, row["variant"]][row["round"]][size] = row["mean_ns"]
    workloads, variants = list(spec.workloads), list(spec.variants)
    ordered = sorted(
        series.items(), key=lambda item: (workloads.index(item[0][0]), variants.index(item[0][2]))
    )
    lines = (_line(*place, found, float(asked.to), spec.stop.confidence) for place, found in ordered)
    return GrowthFacts(
        asked.factor, float(asked.to), spec.stop.confidence, tuple(line for line in lines if line is not None)
    )


def _line(
    workload: str, fixed: Levels, variant: str, series: Series, to: float, confidence: float
) -> GrowthLine | None:
    growth = fit_growth(list(series.values()), to, confidence)
    if growth is None:
        return None
    predicted = growth.predicted
    return GrowthLine(
        fixed=fixed,
        workload=workload,
        variant=variant,
        sizes=growth.sizes,
        times_ns=growth.times,
        rounds=growth.rounds,
        exponent=growth.exponent,
        exponent_low=growth.exponent_low,
        exponent_high=growth.exponent_high,
        shapes=growth.shapes,
        expected_ns=None if predicted is None else predicted.value,
        low_ns=None if predicted is None else predicted.low,
        high_ns=None if predicted is None else predicted.high,
    )
