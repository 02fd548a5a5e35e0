"""Read trials, the evidence of variants and own metrics back from a stored run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncork.analysis.stacks.result import of_measure
from uncork.experiment.plan.order import cells
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.spec.schema import Spec
from uncork.model.measurement import Outcome
from uncork.model.results.experiment import OwnMetricFacts
from uncork.model.tables.stacks import STACK_TABLES
from uncork.model.trial import Arm, Cell, Trial
from uncork.store.hosts import hosts_and_waves
from uncork.store.profile_tables import read_evidence
from uncork.store.query import RunReader


def stored_ledger(reader: RunReader, spec: Spec) -> Ledger:
    """Return a ledger with every trial of a stored run; refusals are not included.

    Raises:
        StoreError: if the run's files are damaged.
    """
    hosts, waves = hosts_and_waves(reader.folder)
    ledger = Ledger(spec, "block" if reader.manifest.unit == "block" else "round", hosts, waves)
    known = {cell.name: cell for cell in cells(spec)}
    for row in reader.values():
        arm = Arm(row.variant, row.again)
        trial = Trial(row.round, row.block, row.position, known[row.cell], row.workload, arm)
        ledger.add_value(trial, row.value, row.succeeded, row.started, long_slices=row.long_slices)
    return ledger


def judged_ledger(reader: RunReader, spec: Spec) -> Ledger:
    """Return a ledger with every trial and refusal of a stored run.

    Raises:
        StoreError: if the run's files are damaged.
    """
    ledger = stored_ledger(reader, spec)
    known = {cell.name: cell for cell in cells(spec)}
    for row in reader.refusals():
        ledger.refused[known[row.cell], row.workload, row.variant] = row.reason
    return ledger


# ---- the evidence of variants ----


EVIDENCE_FOLDER: Final = "evidence"
"""The folder of evidence within a run."""


def stored_evidence(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the facts and tables of each variant's evidence, the later ones of a place last.

    Raises:
        StoreError: if files are damaged.
    """
    for path in sorted((folder / EVIDENCE_FOLDER).glob("*/facts.json")):
        yield read_evidence(path.parent, STACK_TABLES)


def processor_stacks(folder: Path) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """Yield the sampled stacks of processor time of each workload and variant that has some.

    Raises:
        StoreError: if files are damaged.
    """
    for facts, tables in stored_evidence(folder):
        found = of_measure(tables["stacks"], "cpu")
        if facts["method"]["tool"] == "perf" and len(found):
            yield (facts["place"]["workload"], facts["place"]["variant"]), found


# ---- the metrics of an experiment file over the trials of each variant ----


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
