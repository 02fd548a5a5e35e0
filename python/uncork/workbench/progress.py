"""A run while it is measured: what it has stored so far."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncork.model.stored_run import StoredRun
from uncork.model.units import format_count, format_duration
from uncork.store.query import RunReader

__all__ = ["RunProgress", "run_progress"]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is, in a sentence and in a table; `idle_s` is how long nothing was stored."""

    sentence: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    idle_s: float


def run_progress(run: StoredRun) -> RunProgress:
    """Return what a run has stored so far.

    Raises:
        StoreError: if its files are damaged.
    """
    idle_s = max(0.0, time.time() - _last_change_s(run.folder))
    with closing(RunReader(run.folder)) as reader:
        if run.kind == "experiment":
            return _experiment(reader, idle_s)
        if run.kind == "sweep":
            return _sweep(reader, idle_s)
    sentence = f"A run of kind {run.kind} stores its figures when it ends."
    return RunProgress(sentence, "", (), (), idle_s)


def _experiment(reader: RunReader, idle_s: float) -> RunProgress:
    totals, rounds = reader.totals(), reader.last_round()
    failed = f", {format_count(totals['failed'])} of them failed" if totals["failed"] else ""
    trials = _many(totals["trials"], "trial")
    sentence = (
        f"{trials} stored{failed}, in {_many(rounds, 'round')}." if rounds else "No trial is stored yet."
    )
    rows = reader.ask(_TRIALS)[1]
    columns = ("workload", "cell", "variant", "trials", "failed", "median latency", "operations a second")
    return RunProgress(
        sentence,
        "What is measured so far, without a verdict: the report gives that, with its interval",
        columns,
        tuple(_experiment_row(row) for row in rows),
        idle_s,
    )


def _experiment_row(row: Sequence[Any]) -> tuple[str, ...]:
    workload, cell, variant, again, trials, failed, p50_ns, rate = row
    return (
        *(workload, cell, f"{variant} (again)" if again else variant),
        *(format_count(trials), format_count(failed)),
        "" if p50_ns is None else format_duration(p50_ns),
        "" if rate is None else format_count(round(rate)),
    )


def _sweep(reader: RunReader, idle_s: float) -> RunProgress:
    rows = reader.ask(_VISITS)[1]
    sentence = f"{_many(len(rows), 'load')} stored." if rows else "No load is stored yet."
    columns = ("load", "level", "operations a second", "median latency", "99th percentile", "failed")
    shown = tuple(
        (
            *(str(number), f"{level:g}", format_count(round(rate or 0))),
            *("" if ns is None else format_duration(ns) for ns in (p50_ns, p99_ns)),
            format_count(failed),
        )
        for number, level, rate, p50_ns, p99_ns, failed in rows
    )
    return RunProgress(sentence, "Loads so far, the last one first", columns, shown, idle_s)


def _many(number: int, noun: str) -> str:
    return f"{format_count(number)} {noun}{'' if number == 1 else 's'}"


def _last_change_s(folder: Path) -> float:
    return max(
        place.stat().st_mtime for place in (folder, *(path for path in folder.iterdir() if path.is_dir()))
    )


_TRIALS = """
SELECT workload, cell, variant, again, count(*), count(*) FILTER (outcome <> 'complete'),
       exp(avg(ln(p50_ns)) FILTER (outcome = 'complete' AND p50_ns > 0)),
       1e9 * sum(succeeded) FILTER (outcome = 'complete')
         / nullif(sum(elapsed_ns) FILTER (outcome = 'complete'), 0)
  FROM trials GROUP BY ALL ORDER BY workload, cell, variant, again
"""
_VISITS = """
SELECT number, level, succeeded / nullif(elapsed_ns / 1e9, 0), p50_ns, p99_ns, failed
  FROM sweep_visits ORDER BY number DESC
"""
