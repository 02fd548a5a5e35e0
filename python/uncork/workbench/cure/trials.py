"""Measure changes with the ordinary experiment runner, and read the effect on each statement."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from uncork.analysis.experiment.result import build_result
from uncork.errors import BudgetTooShort
from uncork.experiment.cure.text import BASELINE, workload_name
from uncork.experiment.run.events import Recovered, Refused, Skipped
from uncork.experiment.run.ledger import Compared, Ledger
from uncork.model.database.workload import CapturedStatement
from uncork.model.records import build_from
from uncork.model.results.cure import StatementEffect
from uncork.model.results.experiment import Cost, RunResult
from uncork.model.template_words import inline_statement
from uncork.model.units import format_duration
from uncork.model.verdict import Verdict
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source, text_source
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.effect import Effect
from uncork.workbench.event_words import event_line
from uncork.workbench.experiment.session import RunSession, new_run, resume_run

Enough = Callable[[Mapping[str, Sequence[StatementEffect]]], set[tuple[str, int]]]
"""Returns the changes and templates that need no more trials, given the effects by change."""

_CONTINUED: Final = 3
"""How often a run is continued if set-up left too little time for a verdict."""
_LONGER: Final = 2
"""How often a run is continued if its effects are bounded and decide nothing, because the machine is busy."""
_SHORT_NS: Final = 180_000_000_000
"""Longest budget that set-up can have used up: what takes longer is slow for other reasons."""


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
    needless: Enough = lambda _: set(),
    deciding: str = "",
    unclear: Callable[[Mapping[str, Sequence[StatementEffect]]], bool] = lambda _: False,
    until_s: float = math.inf,
) -> Measured:
    """Run an experiment about captured statements, and return the effect of each variant on each of them.

    `text` is the experiment file, whose workloads are named ``s`` and the statement's template.
    `server` is the connection string of the server with the copy. `needless` returns what needs no
    more trials, given the effects so far.

    On a busy machine, a budget of up to three minutes can be too short to bound the effect of `deciding` on
    the costliest statement (of any variant, if `deciding` is empty). Then the run is continued until all
    effects are bounded, for as much time again at most, at most three times. If the effects are bounded, but
    `unclear`, it is continued too, twice at most: the intervals are valid at every look. What was measured
    is returned as it is if continuing would probably end after `until_s`, by the monotonic clock.

    Raises:
        UncorkError: see the errors of `RunSession.events`.
        KeyboardInterrupt: on Ctrl-C; what was measured is stored.
    """
    choice = ServerChoice(dsn=server)
    source = _source(text, Options())
    session = new_run(root, source, choice, needless=partial(_settled_early, statements, needless))
    bounded = partial(_settled_early, statements, _bounded)
    short = source.spec.stop.budget <= _SHORT_NS
    attempts, longer = (_CONTINUED, _LONGER) if short else (0, 0)
    while True:
        begun_ns, measured = time.monotonic_ns(), None
        try:
            _run(session, told)
            measured = _measured(str(session.folder), build_result(session.folder), statements, clients)
        except BudgetTooShort:
            if not attempts:
                raise
        rule = bounded
        if measured is not None and (not attempts or _has_interval(measured, deciding)):
            if not longer or not unclear(measured.effects):
                return measured
            longer, rule = longer - 1, partial(_settled_early, statements, needless)
        else:
            attempts -= 1
        spent_ns = time.monotonic_ns() - begun_ns
        if measured is not None and time.monotonic() + spent_ns / 1e9 > until_s:
            return measured
        # Most of what was spent went into set-up.
        budget_ns = source.spec.stop.budget + spent_ns
        told(f"too few trials for a verdict; it is measured for another {format_duration(budget_ns)}")
        source = _source(text, Options(budget_ns=budget_ns))
        if measured is None:  # a run without a trial leaves no folder behind
            session = new_run(root, source, choice, needless=rule)
        else:
            session = resume_run(session.folder, source, choice, needless=rule)


def _has_interval(measured: Measured, deciding: str) -> bool:
    """Return whether the effect of the deciding change, or of any, is bounded on its costliest statement."""
    known = {name: max(effects, key=_cost).low is not None for name, effects in measured.effects.items()}
    return known.get(deciding, True) if deciding else not known or any(known.values())


def _cost(effect: StatementEffect) -> float:
    return effect.calls_per_hour * (effect.before_ns or 0.0)


def _bounded(effects: Mapping[str, Sequence[StatementEffect]]) -> set[tuple[str, int]]:
    return {
        (name, effect.template)
        for name, found in effects.items()
        for effect in found
        if effect.low is not None
    }


def _settled_early(
    statements: Sequence[CapturedStatement], needless: Enough, ledger: Ledger
) -> list[Compared]:
    by_workload = {workload_name(statement.template): statement for statement in statements}
    effects: dict[str, list[StatementEffect]] = defaultdict(list)
    for cell, workload, variant in ledger.compared():
        found = ledger.effect(cell, workload, variant)
        bounded = isinstance(found, Effect) and found.rounds >= MINIMUM_ROUNDS and found.is_bounded
        known = found if bounded and isinstance(found, Effect) else None
        effects[variant].append(
            build_from(
                StatementEffect,
                by_workload[workload],
                before_ns=ledger.mean(cell, workload, BASELINE),
                after_ns=None,
                ratio=None if known is None else known.ratio,
                low=None if known is None else known.low,
                high=None if known is None else known.high,
            )
        )
    done = needless(effects)
    return [
        (cell, workload, variant)
        for cell, workload, variant in ledger.compared()
        if (variant, by_workload[workload].template) in done
    ]


def _source(text: str, options: Options) -> Source:
    return text_source(text, options, file="the experiment of a change", folder=Path())


def _run(session: RunSession, told: Callable[[str], None]) -> None:
    with closing(session.events()) as events:
        for event in events:
            if isinstance(event, Refused | Skipped | Recovered) and (line := event_line(event)):
                told(line)


def _measured(run: str, result: RunResult, statements: Sequence[CapturedStatement], clients: int) -> Measured:
    by_workload = {workload_name(statement.template): statement for statement in statements}
    costs = {(cost.workload, cost.variant): cost for cost in result.costs}
    baseline = next(variant.name for variant in result.variants if variant.baseline)
    effects: dict[str, list[StatementEffect]] = {}
    refused: dict[str, str] = {}
    for comparison in result.comparisons:
        if comparison.verdict in (Verdict.REFUSED, Verdict.SKIPPED):
            text = inline_statement(by_workload[comparison.workload].sql)
            refused.setdefault(comparison.variant, f"{comparison.reason} ({text})")
            continue
        before, after = (costs.get((comparison.workload, name)) for name in (baseline, comparison.variant))
        effects.setdefault(comparison.variant, []).append(
            build_from(
                StatementEffect,
                by_workload[comparison.workload],
                before_ns=comparison.baseline_value,
                after_ns=comparison.value,
                ratio=comparison.ratio,
                low=comparison.low,
                high=comparison.high,
                clients=clients,
                wal_ratio=_wal(before, after),
                before_rows=None if before is None else before.rows,
                before_cpu_ns=_cpu_ns(before),
                after_cpu_ns=_cpu_ns(after),
            )
        )
    return Measured(run, {name: tuple(found) for name, found in effects.items()}, refused)


def _cpu_ns(cost: Cost | None) -> float | None:
    if cost is None or cost.server_user_ns is None or cost.server_system_ns is None:
        return None
    return cost.server_user_ns + cost.server_system_ns


def _wal(before: Cost | None, after: Cost | None) -> float | None:
    if before is None or after is None or not before.wal_bytes or after.wal_bytes is None:
        return None
    return after.wal_bytes / before.wal_bytes
