"""The metrics that a gate can use: of a workload, costs an operation, sizes and plans; and their values.

A value comes from one stored trial, by the names of its columns (`model.tables.register.TRIALS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from uncork.model.records import Record

Source = Literal["latency", "rate", "share", "cost", "size", "plan", "own"]
"""The source of a value: a trial's times, its operations a second, its share of operations that succeed or
fail, the costs of an operation, the tables and indexes of a variant, its plans, or a query of the experiment
file."""
OWN_METRIC: Final = "metric "
"""What the name of a metric of the experiment file begins with, in gates and in the columns of a trial."""

Figures = Mapping[str, float | None]
"""Columns of a stored trial, by name; None or absent if unknown."""


class GateMetric(Record):
    """A metric for gates.

    `title` is its name in reports, `unit` the unit of its value, `better` which direction is good. `words`
    are other names that people may write, without the endings that costs may have (*an operation*, *a
    request*). `columns` are summed, and for a cost divided by the operations in column `over`. `grain` is an
    amount of a cost that hardly counts: if some trials need none of it, it is added to all, because a ratio
    with 0 is undefined. `missing` says why a trial may have no value, and how to get one.
    """

    name: str
    title: str
    unit: Literal["ns", "B", "/s", "share", ""]
    better: Literal["lower", "higher"]
    source: Source
    words: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    over: Literal["started", "counted_operations"] = "started"
    grain: float = 0.0
    missing: str = "no operation succeeded"


def _latency(point: str, title: str, *words: str) -> GateMetric:
    named = tuple(f"{a} {b}" for word in (point, *words) for a, b in (("latency", word), (word, "latency")))
    column = "sum_ns" if point == "mean" else f"{point}_ns"
    return GateMetric(f"latency_{point}", title, "ns", "lower", "latency", (point, *words, *named), (column,))


_GRAINS: Final = {"B": 100.0, "": 1.0, "ns": 1000.0}
_NO_BYTES: Final = "this driver does not count bytes"
_NO_STATEMENTS: Final = (
    "the server does not count statements: it requires pg_stat_statements, in shared_preload_libraries and "
    "by CREATE EXTENSION"
)


def _cost(
    name: str,
    what: str,
    unit: Literal["ns", "B", ""],
    words: str,
    *columns: str,
    over: Literal["started", "counted_operations"] = "started",
    missing: str,
) -> GateMetric:
    """Return the metric of a cost an operation; its column has its name if none is given."""
    title, named = f"{what} an operation", tuple(words.split(", "))
    columns, grain = columns or (name,), _GRAINS[unit]
    return GateMetric(name, title, unit, "lower", "cost", named, columns, over, grain, missing)


def _counted(name: str, what: str, unit: Literal["B", ""], words: str, *columns: str) -> GateMetric:
    over: Literal["counted_operations"] = "counted_operations"
    return _cost(name, what, unit, words, *columns, over=over, missing=_NO_STATEMENTS)


def _processor(
    who: Literal["server", "service", "client"],
    words: str,
    missing: str,
    over: Literal["started", "counted_operations"] = "started",
) -> GateMetric:
    columns = f"{who}_user_ns", f"{who}_system_ns"
    return _cost(f"{who}_cpu", f"{who} CPU", "ns", words, *columns, over=over, missing=missing)


GATE_METRICS: Final[Mapping[str, GateMetric]] = {
    metric.name: metric
    for metric in (
        _latency("mean", "mean latency", "average", "avg"),
        _latency("p50", "median latency", "median"),
        _latency("p90", "p90 latency"),
        _latency("p95", "p95 latency"),
        _latency("p99", "p99 latency"),
        _latency("p999", "p99.9 latency", "p99.9"),
        GateMetric(
            *("throughput", "throughput", "/s", "higher", "rate"),
            ("operations a second", "requests a second", "transactions a second", "tps", "rps", "qps"),
        ),
        GateMetric(
            *("success", "share of success", "share", "higher", "share"),
            ("successes", "success rate", "successful requests", "successful operations"),
        ),
        GateMetric(
            *("errors", "share of errors", "share", "lower", "share"),
            ("error", "error rate", "failures", "failure rate", "failed requests", "failed operations"),
        ),
        _counted("queries", "queries", "", "query, statements, sql statements"),
        _counted(
            *("buffers", "buffers", "", "buffer, shared buffers, buffers touched, blocks, pages"),
            *("shared_hit", "shared_read"),
        ),
        _counted("buffers_read", "buffers read", "", "read buffers, blocks read, pages read", "shared_read"),
        _counted(
            *("buffers_dirtied", "buffers changed", ""),
            *("buffers changed, dirtied buffers, blocks dirtied, pages dirtied", "shared_dirtied"),
        ),
        _counted("temp_bytes", "temporary files", "B", "temporary files, temporary bytes, temp, temp files"),
        _counted("wal_bytes", "WAL", "B", "wal, write ahead log"),
        _counted("wal_records", "WAL records", "", "wal records"),
        _processor(
            "server",
            "server cpu time, cpu of the server, server processor time, database cpu",
            "the server's processes are not visible from here",
        ),
        _processor(
            "service",
            "service cpu time, cpu of the service, service processor time",
            "no service ran beside it",
            "counted_operations",
        ),
        _processor(
            "client",
            "client cpu time, cpu of the client, client processor time",
            "the client and the engine share a process",
        ),
        _cost("sent_bytes", "bytes sent", "B", "bytes sent, sent", missing=_NO_BYTES),
        _cost(
            "received_bytes",
            "bytes received",
            "B",
            "bytes received, received, answer bytes",
            missing=_NO_BYTES,
        ),
        GateMetric(
            *("size", "tables and indexes", "B", "lower", "size"),
            ("sizes", "size on disk", "disk", "tables and indexes", "database size"),
        ),
        GateMetric("plan", "plan", "", "lower", "plan", ("plans", "query plan", "query plans")),
    )
}
"""All metrics for gates, by name."""


def own_metric(name: str, better: Literal["lower", "higher"]) -> GateMetric:
    """Return a metric of the experiment file, whose values are the numbers of its query after each trial."""
    missing = "its query returned no number after a complete trial"
    return GateMetric(f"{OWN_METRIC}{name}", name, "", better, "own", missing=missing)


def metric_words() -> dict[str, str]:
    """Map every word for a metric, in lower case with single spaces, to the metric's name."""
    return {
        word: name
        for name, metric in GATE_METRICS.items()
        for word in (name.replace("_", " "), *metric.words)
    }


def trial_value(metric: str, trial: Figures) -> float | None:
    """Return a trial's value of a gate's metric in its base unit; None if the trial has none.

    Costs are divided by the operations that they cover, warm-up included where the counters include it.
    Shares are of the operations started. Sizes and plans belong to variants and not to trials. Raises
    KeyError if there is no such metric.
    """
    if metric.startswith(OWN_METRIC):
        return trial.get(metric)
    facts = GATE_METRICS[metric]
    started = trial.get("started")
    if facts.source == "share":
        part = trial.get("succeeded" if metric == "success" else "failed")
        return None if part is None else _quotient(part, started)
    if facts.source == "rate":
        elapsed, succeeded = trial.get("elapsed_ns"), trial.get("succeeded")
        return _quotient(succeeded, elapsed / 1e9) if succeeded and elapsed else None
    if facts.source == "latency":
        executions = trial.get("executions")
        if not executions:
            return None
        return _quotient(_sum(facts, trial), executions if metric == "latency_mean" else 1.0)
    return _quotient(_sum(facts, trial), trial.get(facts.over)) if facts.source == "cost" else None


def _sum(metric: GateMetric, trial: Figures) -> float | None:
    parts = [trial.get(column) for column in metric.columns]
    known = [part for part in parts if part is not None]
    return float(sum(known)) if len(known) == len(parts) else None


def _quotient(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below
