"""Engines, services and requests of a stored run, and the overhead of clients."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from uncork.experiment.spec.http_workloads import HttpFacts
from uncork.experiment.spec.schema import Spec, Variant
from uncork.model.engine import POSTGRESQL, engine_kind
from uncork.model.records import build_from
from uncork.model.redaction import is_secret
from uncork.model.results.experiment import AnswerDifference, Comparison, EngineFacts, RequestCounts
from uncork.model.trial import Cell
from uncork.model.units import format_duration
from uncork.stats.proportion import share_interval
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


# ---- services and requests: counts, shares of success, answers that differ ----


def request_counts(reader: RunReader, spec: Spec, cells: Mapping[str, Cell]) -> Iterator[RequestCounts]:
    """Yield how the requests of each variant ended; nothing for workloads that send none."""
    for row in reader.requests() if spec.http_workloads else ():
        if row.workload not in spec.http_workloads:
            continue
        errors = _summed(row.errors)
        low, high = share_interval(row.succeeded, row.started, spec.stop.confidence)
        yield build_from(
            RequestCounts,
            row,
            cell=cells[row.cell].levels,
            timed_out=errors.get("timed out", 0),
            low=low,
            high=high,
            statuses=_summed(row.statuses),
            errors=errors,
        )


def shares_of_success(counts: Iterable[RequestCounts], spec: Spec) -> dict[tuple[str, str, str], float]:
    """Return each variant's share of success, if that is the compared metric."""
    return {
        (Cell(count.cell).name, count.workload, count.variant): count.share
        for count in counts
        if spec.workloads[count.workload].metric == "success"
    }


def answer_differences(reader: RunReader, cells: Mapping[str, Cell]) -> Iterator[AnswerDifference]:
    """Yield where answers differ from the baseline's although the variants are compared."""
    for row in reader.answers():
        yield build_from(AnswerDifference, row, cell=cells[row.cell].levels)


def own_services(variant: Variant) -> tuple[str, ...]:
    """List what a variant changes in services and in how requests are sent; no secrets."""
    lines = []
    if variant.service is not None:
        lines.append(f"requests go to {variant.service}")
    for name, own in variant.services.items():
        words = [] if own.command is None else [" ".join(own.command)]
        words += [f"{key}={'***' if is_secret(key) else text}" for key, text in own.environment.items()]
        words += [f"{file} from {source}" for file, source in own.files.items() if file != source]
        lines.append(f"{name}: {' '.join(words)}")
    if variant.http is not None:
        chosen = {
            "HTTP/{}": variant.http.version,
            "{} streams": variant.http.streams,
            "{} clients": variant.http.clients,
        }
        lines.append(", ".join(form.format(value) for form, value in chosen.items() if value is not None))
    return tuple(line for line in lines if line)


def http_protocol(http: HttpFacts) -> str:
    """Describe how requests are sent: version, streams, rate, deadline."""
    many = f", {http.streams} at once on a connection" if http.streams > 1 else ""
    rate = "" if http.rate is None else f", {http.rate:g} a second whatever the service does"
    return f"HTTP/{http.version}{many}{rate}, each within {format_duration(http.timeout)}"


def _summed(texts: Iterable[str] | None) -> dict[str, int]:
    """Return the sum of counts that are stored as JSON, the most frequent first."""
    whole: Counter[str] = Counter()
    for text in texts or ():
        whole.update(json.loads(text))
    return dict(whole.most_common())
