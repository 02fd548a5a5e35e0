"""The section on several engines in one experiment: what they are, and the overhead of their clients."""

from __future__ import annotations

from collections.abc import Iterable

from uncork.model.results.experiment import EngineFacts
from uncork.model.units import format_duration
from uncork.report.blocks import Column, Paragraph, Section, Table, Value
from uncork.report.experiment.view import View
from uncork.report.words import series_words


def engine_sections(view: View) -> Iterable[Section]:
    """Yield the section on engines; none if all variants ran on PostgreSQL."""
    engines = view.result.engines
    if not engines:
        return
    columns = (
        Column("engine", header=True),
        Column("variants"),
        Column("client"),
        Column("empty statement: p50", number=True),
        Column("p99", number=True),
        Column("client CPU", number=True),
        Column("share of its fastest latency", number=True),
    )
    rows = tuple(_row(view, engine) for engine in engines)
    yield Section(
        "engines",
        "Engines and their clients",
        (
            Paragraph(_words(engines)),
            Table("Engines, and the cost of an empty statement with each", columns, rows),
        ),
    )


def _words(engines: Iterable[EngineFacts]) -> str:
    shared = [engine.title for engine in engines if engine.shares_process]
    text = (
        "Each engine has its own client, so a difference between two engines includes the difference between "
        "their clients. The cost of an empty statement bounds that difference, except for converting rows to "
        "values, which each fetched row adds."
    )
    if shared:
        text += (
            f" {series_words(shared)}: engine and client share a process, which is new in every trial. All "
            "of its processor time is listed under the server, and no data crosses a socket."
        )
    return text


def _row(view: View, engine: EngineFacts) -> tuple[Value, ...]:
    latencies = [
        metric.value
        for metric in view.result.metrics
        if metric.variant in engine.variants and metric.value and view.metric(metric.workload) != "throughput"
    ]
    overhead = engine.overhead_p50_ns
    share = None if not latencies or overhead is None else min(overhead / min(latencies), 1.0)
    return (
        Value(engine.title, note=_short(engine.version)),
        Value(", ".join(engine.variants)),
        Value("same process" if engine.shares_process else "separate"),
        _time(overhead),
        _time(engine.overhead_p99_ns),
        _time(engine.client_cpu_ns),
        _nothing() if share is None else Value(f"{share * 100:.0f} %"),
    )


def _time(nanoseconds: float | None) -> Value:
    return _nothing() if nanoseconds is None else Value(format_duration(nanoseconds))


def _nothing() -> Value:
    return Value("", tone="muted")


def _short(version: str) -> str:
    return version.partition(" on ")[0]
