"""Judge what observers cost, from the stored trials of the experiment with observers as variants."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from uncork.experiment.plan.order import cells
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.spec.schema import Spec
from uncork.model.results.observer_cost import (
    ObserverCost,
    ObserverCosts,
    Ratio,
    Slice,
    Switched,
    cost_verdict,
    processor_verdict,
)
from uncork.model.trial import Arm, Cell, Trial
from uncork.report.experiment.observer_cost import compose_cost_answer
from uncork.requests.source import run_source
from uncork.stats.compare import AnyEffect
from uncork.stats.effect import Effect
from uncork.store.layout import write_atomically
from uncork.store.query import RunReader
from uncork.workbench.overhead.agent_cost import pushes_of
from uncork.workbench.overhead.session import TITLES, Prepared
from uncork.workbench.overhead.switched import Switching, judge_switched, write_slices

COST_FILE: Final = "observer_cost.json"
_NOT_SWITCHED: Final = Switching(())

Row = Mapping[str, Any]

_FIGURES: Final[Mapping[str, tuple[Callable[[Row], float | None], str]]] = {
    "throughput": (lambda row: row["value"], "throughput"),
    "p50": (lambda row: row["p50_ns"], "latency_p50"),
    "p99": (lambda row: row["p99_ns"], "latency_p99"),
    "server_cpu": (lambda row: row["server_cpu_ns"], "latency_mean"),
    "service_cpu": (lambda row: row["service_cpu_ns"], "latency_mean"),
}
"""The compared metrics: how each is read, and the metric with the same better direction."""


def observer_costs(folder: Path, prepared: Prepared, switching: Switching = _NOT_SWITCHED) -> ObserverCosts:
    """Judge a finished run, and slices with observers switched on and off; store the result in the run.

    Raises StoreError if the run is damaged, or the result cannot be written.
    """
    slices = switching.slices
    with closing(RunReader(folder)) as reader:
        spec = run_source(reader).spec
        rows = reader.figures()
        unit = "block" if reader.manifest.unit == "block" else "round"
        ledgers = {name: _ledger(spec, rows, read, unit, metric) for name, (read, metric) in _FIGURES.items()}
        found = ObserverCosts(
            run=reader.manifest.id,
            answer="",
            practical=spec.stop.practical,
            confidence=spec.stop.confidence,
            noise=_noise(ledgers["throughput"]),
            costs=tuple(_costs(spec, rows, ledgers, unit, slices)),
            idle=prepared.idle,
            skipped=prepared.skipped,
            pushes=pushes_of(folder),
            catalogue=switching.catalogue or prepared.catalogue,
        )
    found = replace(found, answer=compose_cost_answer(found))
    if slices:
        write_slices(folder, slices)
    write_atomically(folder / COST_FILE, json.dumps(asdict(found), indent=1, ensure_ascii=False) + "\n")
    return found


def _ledger(
    spec: Spec, rows: Sequence[Row], read: Callable[[Row], float | None], unit: Any, metric: str
) -> Ledger:
    workloads = {
        name: workload.model_copy(update={"metric": metric}) for name, workload in spec.workloads.items()
    }
    ledger = Ledger(spec.model_copy(update={"workloads": workloads}), unit)
    known = {cell.name: cell for cell in cells(spec)}
    for row in rows:
        place = (row["round"], row["block"], row["position"])
        value = None if row["value"] is None else read(row)
        arm = Arm(row["variant"], row["again"])
        ledger.add_value(Trial(*place, known[row["cell"]], row["workload"], arm), value)
    return ledger


def _noise(ledger: Ledger) -> str:
    floor, _ = ledger.noise()
    return "" if floor is None else floor.sentence


def _costs(
    spec: Spec, rows: Sequence[Row], ledgers: Mapping[str, Ledger], unit: Any, slices: Sequence[Slice]
) -> Iterator[ObserverCost]:
    names = [name for name, variant in spec.variants.items() if not variant.baseline]
    # An observer that is only switched is no variant.
    more = sorted({name for piece in slices for name in piece.on} - set(names))
    count = (len(names) + len(more)) * len(spec.workloads) * len(cells(spec))
    processors = len(os.sched_getaffinity(0))
    # There are 2 * count verdicts, on throughput and processor time. Together they err no more often than a
    # single interval does.
    confidence = 1 - (1 - spec.stop.confidence) / max(1, 2 * count)
    stop = spec.stop.model_copy(update={"confidence": confidence})
    wider = spec.model_copy(update={"stop": stop})
    taken = "service_cpu" if spec.services else "server_cpu"
    sure, processor = (
        _ledger(wider, rows, _FIGURES[name][0], unit, _FIGURES[name][1]) for name in ("throughput", taken)
    )
    for cell in cells(spec):
        for workload in spec.workloads:
            for name in names:
                cost = _cost(spec, cell, workload, name, rows, ledgers, sure, processor)
                switched = judge_switched(slices, name, spec.stop.confidence, confidence, processors)
                yield cost if switched is None else _by_switching(cost, switched, spec.stop.practical)
            for name in more:
                switched = judge_switched(slices, name, spec.stop.confidence, confidence, processors)
                if switched is not None:
                    yield _by_switching(_unmeasured(cell, workload, name), switched, spec.stop.practical)


def _unmeasured(cell: Cell, workload: str, name: str) -> ObserverCost:
    return ObserverCost(
        name=name,
        title=TITLES[name],
        workload=workload,
        cell=cell.name,
        throughput=None,
        sure=None,
        verdict="not enough evidence",
        p50=None,
        p99=None,
        server_cpu=None,
        observer_share=None,
    )


def _cost(
    spec: Spec,
    cell: Cell,
    workload: str,
    name: str,
    rows: Sequence[Row],
    ledgers: Mapping[str, Ledger],
    sure: Ledger,
    processor: Ledger,
) -> ObserverCost:
    found = {figure: _ratio(ledger.effect(cell, workload, name)) for figure, ledger in ledgers.items()}
    bound = _ratio(sure.effect(cell, workload, name))
    watched = [
        row
        for row in rows
        if (row["cell"], row["workload"], row["variant"]) == (cell.name, workload, name)
        and row["observer_ns"] is not None
    ]
    elapsed = sum(row["elapsed_ns"] for row in watched)
    enough = bound is not None and bound.rounds >= spec.stop.verdict_rounds
    total = _with_own(_ratio(processor.effect(cell, workload, name)), watched)
    return ObserverCost(
        name=name,
        title=spec.variants[name].title or name,
        workload=workload,
        cell=cell.name,
        throughput=found["throughput"],
        sure=bound,
        verdict=cost_verdict(bound, spec.stop.practical, enough=enough),
        p50=found["p50"],
        p99=found["p99"],
        server_cpu=found["server_cpu"],
        service_cpu=found["service_cpu"],
        processor=total,
        processor_verdict=processor_verdict(
            total, spec.stop.practical, enough=total is not None and total.rounds >= spec.stop.verdict_rounds
        ),
        observer_share=sum(row["observer_ns"] for row in watched) / elapsed if elapsed else None,
    )


def _by_switching(cost: ObserverCost, found: Switched, practical: float) -> ObserverCost:
    """Base the verdicts only on what switching found."""
    return replace(
        cost,
        switched=found,
        verdict=cost_verdict(found.sure, practical, enough=not found.apart),
        processor=found.processor_sure,
        processor_verdict=processor_verdict(found.processor_sure, practical, enough=True),
    )


def _with_own(ratio: Ratio | None, watched: Sequence[Row]) -> Ratio | None:
    """Add the observer's own processor time, which is counted exactly, to the ratio of an operation."""
    known = [row for row in watched if row["server_cpu_ns"] is not None]
    server = sum(row["server_cpu_ns"] * row["started"] for row in known)
    if ratio is None or not server:
        return ratio
    # With the observer, the server takes the ratio times what it takes alone.
    own = sum(row["observer_ns"] for row in known) / server
    low, high = (None if bound is None else bound * (1 + own) for bound in (ratio.low, ratio.high))
    return Ratio(ratio.ratio * (1 + own), low, high, ratio.rounds)


def _ratio(effect: AnyEffect | None) -> Ratio | None:
    if not isinstance(effect, Effect):
        return None
    finite = effect.low > 0 and effect.high < float("inf")
    return Ratio(effect.ratio, effect.low if finite else None, effect.high if finite else None, effect.rounds)
