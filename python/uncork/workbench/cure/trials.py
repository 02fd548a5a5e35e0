"""Measure changes with the ordinary experiment runner, and read the effect on each statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from uncork.analysis.experiment.result import build_result
from uncork.experiment.run.events import Recovered, Refused, Skipped
from uncork.model.database.workload import CapturedStatement
from uncork.model.results.cure import StatementEffect
from uncork.model.results.experiment import Comparison, Cost, RunResult
from uncork.model.verdict import Verdict
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, text_source
from uncork.workbench.event_words import event_line
from uncork.workbench.experiment.session import new_run

__all__ = ["Measured", "measure_arms"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What an experiment found: its run's folder, the effects by variant, and why variants were refused."""

    run: str
    effects: Mapping[str, tuple[StatementEffect, ...]]
    refused: Mapping[str, str]


def measure_arms(
    root: Path,
    text: str,
    server: str,
    statements: Sequence[CapturedStatement],
    clients: int,
    told: Callable[[str], None],
) -> Measured:
    """Run an experiment about captured statements, and return the effect of each variant on each of them.

    `text` is the experiment file, whose workloads are named ``s`` and the statement's template. `server` is
    the connection string of the server with the copy.

    Raises:
        UncorkError: see the errors of `RunSession.events`.
        KeyboardInterrupt: on Ctrl-C; what was measured is stored.
    """
    source = text_source(text, Options(), file="the experiment of a change", folder=Path())
    session = new_run(root, source, ServerChoice(dsn=server))
    with closing(session.events()) as events:
        for event in events:
            if isinstance(event, Refused | Skipped | Recovered) and (line := event_line(event)):
                told(line)
    return _measured(str(session.folder), build_result(session.folder), statements, clients)


def _measured(run: str, result: RunResult, statements: Sequence[CapturedStatement], clients: int) -> Measured:
    by_workload = {f"s{one.template}": one for one in statements}
    costs = {(one.workload, one.variant): one for one in result.costs}
    baseline = next(one.name for one in result.variants if one.baseline)
    effects: dict[str, list[StatementEffect]] = {}
    refused: dict[str, str] = {}
    for one in result.comparisons:
        if one.verdict in (Verdict.REFUSED, Verdict.SKIPPED):
            refused.setdefault(one.variant, f"{one.reason} (statement {one.workload.removeprefix('s')})")
            continue
        wal = _wal(costs.get((one.workload, baseline)), costs.get((one.workload, one.variant)))
        effects.setdefault(one.variant, []).append(_effect(one, by_workload[one.workload], wal, clients))
    return Measured(run, {name: tuple(found) for name, found in effects.items()}, refused)


def _effect(
    one: Comparison, statement: CapturedStatement, wal: float | None, clients: int
) -> StatementEffect:
    return StatementEffect(
        template=statement.template,
        sql=statement.sql,
        changes=statement.changes,
        calls_per_hour=statement.calls_per_hour,
        origin=statement.origin,
        before_ns=one.baseline_value,
        after_ns=one.value,
        ratio=one.ratio,
        low=one.low,
        high=one.high,
        wal_ratio=wal,
        clients=clients,
    )


def _wal(before: Cost | None, after: Cost | None) -> float | None:
    if before is None or after is None or not before.wal_bytes or after.wal_bytes is None:
        return None
    return after.wal_bytes / before.wal_bytes
