"""The metrics of an experiment: metrics, effects, costs and sizes of its variants, and their plans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from uncork.analysis.experiment.stored import own_metric_facts, stored_ledger
from uncork.experiment.plan.order import cells
from uncork.experiment.spec.schema import METRICS, Spec
from uncork.model.results.figure import Figure, FigureUnit, PlanShape
from uncork.model.trial import Cell
from uncork.requests.source import run_source
from uncork.stats.effect import Effect
from uncork.store.query import RunReader


def experiment_figures(reader: RunReader) -> tuple[tuple[Figure, ...], tuple[PlanShape, ...]]:
    """Return the metrics and the plans of a stored experiment.

    Raises:
        StoreError: if its files are damaged.
    """
    spec = run_source(reader).spec
    known = {cell.name: cell for cell in cells(spec)}
    figures = (
        *_metric_figures(reader, spec, known),
        *_effect_figures(reader, spec),
        *_failure_figures(reader, spec, known),
        *_cost_figures(reader, known),
        *_size_figures(reader, known),
        *_own_figures(reader, spec, known),
    )
    plans = (PlanShape(_subject(row, known), row["statement"], row["shape"]) for row in reader.plans())
    return figures, tuple(plans)


def _metric_figures(reader: RunReader, spec: Spec, known: Mapping[str, Cell]) -> Iterator[Figure]:
    arms: dict[str, tuple[str, list[float]]] = {}
    for row in reader.metrics():
        if row.value and spec.workloads[row.workload].metric != "success":
            subject = f"{row.variant} on {row.workload}{known[row.cell].at}"
            arms.setdefault(subject, (row.workload, []))[1].append(math.log(row.value))
    for subject, (workload, logs) in arms.items():
        metric = spec.workloads[workload].metric
        unit: FigureUnit = "/s" if metric == "throughput" else "ns"
        value = math.exp(math.fsum(logs) / len(logs))
        yield Figure(subject, metric.removeprefix("latency_"), value, unit, METRICS[metric])


def _effect_figures(reader: RunReader, spec: Spec) -> Iterator[Figure]:
    ledger = stored_ledger(reader, spec)
    refused = {(row.cell, row.workload, row.variant) for row in reader.refusals()}
    for judged in ledger.judgements():
        effect = judged.effect
        if not isinstance(effect, Effect) or (judged.cell.name, judged.workload, judged.variant) in refused:
            continue
        metric = spec.workloads[judged.workload].metric
        std_dev = effect.std_dev * effect.inflation if math.isfinite(effect.std_dev) else 0.0
        yield Figure(
            f"{judged.variant} on {judged.workload}{judged.cell.at}",
            f"against {spec.baseline}",
            effect.ratio,
            "ratio",
            METRICS[metric],
            "effect",
            rounds=effect.rounds,
            std_dev=std_dev,
        )


def _failure_figures(reader: RunReader, spec: Spec, known: Mapping[str, Cell]) -> Iterator[Figure]:
    """Yield the shares of requests that failed, also if the compared metric is their complement."""
    for row in reader.requests() if spec.http_workloads else ():
        if row.workload in spec.http_workloads:
            subject = f"{row.variant} on {row.workload}{known[row.cell].at}"
            failed, of = row.failed, row.started
            yield Figure(subject, "failed", failed / of, "share", "lower", "share", count=failed, of=of)


_COSTS: Final[tuple[tuple[str, tuple[str, ...], FigureUnit], ...]] = (
    ("server processor time each", ("server_user_ns", "server_system_ns"), "ns"),
    ("service processor time each", ("service_user_ns", "service_system_ns"), "ns"),
    ("client processor time each", ("client_user_ns", "client_system_ns"), "ns"),
    ("buffers each", ("shared_hit", "shared_read"), ""),
    ("temporary files each", ("temp_bytes",), "B"),
    ("WAL each", ("wal_bytes",), "B"),
    ("queries each", ("queries",), ""),
    ("sent each", ("sent_bytes",), "B"),
    ("received each", ("received_bytes",), "B"),
)


def _cost_figures(reader: RunReader, known: Mapping[str, Cell]) -> Iterator[Figure]:
    for row in reader.costs():
        for name, columns, unit in _COSTS:
            parts = [row[column] for column in columns if row[column] is not None]
            if parts and sum(parts) > 0:
                yield Figure(_subject(row, known), name, float(sum(parts)), unit, "lower")


def _size_figures(reader: RunReader, known: Mapping[str, Cell]) -> Iterator[Figure]:
    for row in reader.relations():
        subject = f"{row['variant']}{known[row['cell']].at}"
        name = f"size of {row['kind']} {row['relation']}"
        yield Figure(subject, name, row["bytes"], "B", "lower", "exact")


def _own_figures(reader: RunReader, spec: Spec, known: Mapping[str, Cell]) -> Iterator[Figure]:
    by_levels = {cell.levels: cell for cell in known.values()}
    for metric_fact in own_metric_facts(reader, spec, known):
        subject = f"{metric_fact.variant} on {metric_fact.workload}{by_levels[metric_fact.cell].at}"
        yield Figure(subject, metric_fact.name, metric_fact.mean, "", metric_fact.better)


def _subject(row: Mapping[str, Any], known: Mapping[str, Cell]) -> str:
    return f"{row['variant']} on {row['workload']}{known[row['cell']].at}"
