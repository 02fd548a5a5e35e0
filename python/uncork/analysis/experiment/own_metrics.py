"""The metrics of an experiment file over the trials of each variant."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Final

from uncork.experiment.spec.schema import Spec
from uncork.model.measurement import Outcome
from uncork.model.results.experiment import OwnMetricFacts
from uncork.model.trial import Cell
from uncork.store.query import RunReader

Key = tuple[str, str, str, str]
_NOTHING: Final = "{}"


def own_metric_facts(reader: RunReader, spec: Spec, known: Mapping[str, Cell]) -> list[OwnMetricFacts]:
    """Return each metric of the file, by workload, cell and variant; an empty list if the file has none.

    Only complete trials count, those of the baseline's second arm too.

    Raises:
        StoreError: if the run's files are damaged.
    """
    if not spec.metrics:
        return []
    values: dict[Key, list[float]] = {}
    for row in reader.trials():
        if row["outcome"] != Outcome.COMPLETE:
            continue
        for name, value in json.loads(row["own"] or _NOTHING).items():
            if value is not None:
                values.setdefault((name, row["workload"], row["cell"], row["variant"]), []).append(value)
    order = list(spec.variants)
    ordered = sorted(values.items(), key=lambda item: (*item[0][:3], order.index(item[0][3])))
    return [
        OwnMetricFacts(
            name=name,
            workload=workload,
            cell=known[cell].levels,
            variant=variant,
            better=spec.metrics[name].better,
            mean=math.fsum(found) / len(found),
            least=min(found),
            most=max(found),
            trials=len(found),
        )
        for (name, workload, cell, variant), found in ordered
    ]
