"""The engines of a run, and the overhead of their clients."""

from __future__ import annotations

from collections.abc import Sequence

from uncork.experiment.spec.schema import Spec
from uncork.model.engine import POSTGRESQL, engine_kind
from uncork.model.results.experiment import Comparison, EngineFacts
from uncork.model.trial import Cell
from uncork.model.units import format_duration
from uncork.store.query import RunReader

_CLIENTS_DIFFER = "the clients differ"


def engine_facts(spec: Spec, reader: RunReader) -> tuple[EngineFacts, ...]:
    """Return the engines of a stored run; empty if all variants ran on PostgreSQL."""
    if spec.engines == (POSTGRESQL,):
        return ()
    overheads = {overhead.engine: overhead for overhead in reader.overheads()}
    environment = reader.environment()
    versions = environment.get("engines", {})
    found = []
    for name in spec.engines:
        one = overheads.get(name)
        version = versions.get(name) or environment.get("server", {}).get("version", "")
        found.append(
            EngineFacts(
                name=name,
                title="PostgreSQL" if name == POSTGRESQL else engine_kind(name).title,
                version=version,
                variants=tuple(variant for variant in spec.variants if spec.engine(variant) == name),
                shares_process=one is not None and one.shares_process,
                overhead_p50_ns=None if one is None else one.p50_ns,
                overhead_p99_ns=None if one is None else one.p99_ns,
                client_cpu_ns=None if one is None else one.client_cpu_ns,
            )
        )
    return tuple(found)


def client_warnings(
    engines: tuple[EngineFacts, ...],
    variants: tuple[str, str],
    values: tuple[float | None, float | None],
    metric: str,
) -> tuple[str, ...]:
    """Return warnings where the clients alone could explain a difference between two engines.

    `values` are the metric of the two variants. Throughput is not checked: it has no bound of this kind.
    """
    own, base = (next((engine for engine in engines if name in engine.variants), None) for name in variants)
    if own is None or base is None or own is base or metric == "throughput" or None in values:
        return ()
    if own.overhead_p50_ns is None or base.overhead_p50_ns is None:
        return (f"the overhead of the clients of {own.title} and {base.title} is unknown",)
    gap = abs((values[0] or 0.0) - (values[1] or 0.0))
    most = max(own.overhead_p50_ns, base.overhead_p50_ns)
    if gap > most:
        return ()
    times = (format_duration(number) for number in (own.overhead_p50_ns, base.overhead_p50_ns))
    mine, theirs = (f"{time} with {engine.title}" for time, engine in zip(times, (own, base), strict=True))
    return (
        f"{_CLIENTS_DIFFER}: a statement that does nothing takes {mine} and {theirs}, which could "
        f"explain the whole difference of {format_duration(gap)}",
    )


def clients_in_doubt(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Name the comparisons that have a warning of `client_doubts`, in one sentence; empty if none has."""
    found = [
        f"{comparison.variant} on {comparison.workload}{Cell(comparison.cell).at}"
        for comparison in comparisons
        if any(warning.startswith(_CLIENTS_DIFFER) for warning in comparison.warnings)
    ]
    if not found:
        return ()
    return (f"the clients of the engines alone could explain the whole difference: {'; '.join(found)}",)
