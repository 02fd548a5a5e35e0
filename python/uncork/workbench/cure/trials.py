"""Measure changes with the ordinary experiment runner, and read the effect on each statement."""

from __future__ import annotations

import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from uncork.analysis.experiment.result import build_result
from uncork.engines.copying.scratch import Executed, ScratchDatabase
from uncork.errors import BudgetTooShort, SetupError
from uncork.experiment.cure.text import BASELINE, workload_name
from uncork.experiment.run.events import Recovered, Refused, Skipped
from uncork.experiment.run.ledger import Compared, Ledger
from uncork.model.database.missing import Missing
from uncork.model.database.workload import CapturedStatement, CapturedWorkload, NotCaptured
from uncork.model.records import build_from
from uncork.model.results.cure import StatementEffect
from uncork.model.results.experiment import Cost, RunResult
from uncork.model.template_words import inline_statement
from uncork.model.units import format_duration
from uncork.model.verdict import Verdict
from uncork.profile.parameter_values import with_values
from uncork.profile.workload.literals import array_text
from uncork.profile.workload.sets import SETS, matching_rows
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
class Allowance:
    """The time for measuring: `usual_s` seconds, and on a busy machine more, but not after `until_s`.

    `until_s` is a time of the monotonic clock, in seconds.
    """

    usual_s: float
    until_s: float

    @property
    def left_s(self) -> float:
        """The seconds until it must end, 0 or more."""
        return max(0.0, self.until_s - time.monotonic())

    @property
    def budget_s(self) -> float:
        """The seconds for a measurement that begins now."""
        return min(self.usual_s, self.left_s)

    def first(self) -> Allowance:
        """Return the allowance of a measurement that leaves as much time for a second one."""
        half_s = self.left_s / 2
        return Allowance(min(self.usual_s, half_s), self.until_s - half_s)


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
    `unclear`, it is continued too, twice at most: the intervals are valid at every look. It is continued
    until `until_s` at the latest, by the monotonic clock; what was measured by then is returned.

    Raises:
        BudgetTooShort: if set-up did not end in time.
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
        begun_ns, measured, longer_ns = time.monotonic_ns(), None, 0
        try:
            _run(session, told)
            measured = _measured(str(session.folder), build_result(session.folder), statements, clients)
        except BudgetTooShort:
            if not attempts or time.monotonic() >= until_s:
                raise
            longer_ns = time.monotonic_ns() - begun_ns
        rule = bounded
        if measured is not None and (not attempts or _has_interval(measured, deciding)):
            if not longer or not unclear(measured.effects):
                return measured
            longer, rule = longer - 1, partial(_settled_early, statements, needless)
        else:
            attempts -= 1
        spent_ns = time.monotonic_ns() - begun_ns
        left_s = until_s - time.monotonic()
        if measured is not None and left_s < spent_ns / 2e9:
            return measured
        # Most of what was spent went into set-up.
        budget_ns = source.spec.stop.budget + spent_ns + longer_ns
        if left_s < budget_ns / 1e9:
            budget_ns = max(round(left_s * 1e9), 1)
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


# ---- captured values that the copy refuses ----


_LONGEST_S: Final = 30.0
"""Time after which no further statement is executed."""
_STATEMENT_S: Final = 5.0

_FINDS: Final = re.compile(r"\s*(?:UPDATE|DELETE)\b", re.IGNORECASE)

Values = tuple[str | None, ...]


def without_violations(
    conninfo: str, workload: CapturedWorkload
) -> tuple[CapturedWorkload, tuple[Missing, ...]]:
    """Return a workload without the sets of values that violate a constraint, and what was left out.

    All statements that change rows are executed on a copy of the database at `conninfo`, of which
    nothing remains. If the server refuses to copy it, the workload stays as it is. A statement
    whose sets all violate a constraint is not captured. If an UPDATE or DELETE changes fewer rows
    than on the server, because others changed these rows meanwhile, its values come from rows of
    the copy; if none fit, it is not captured. Raises ConnectError if the server cannot be reached.
    """
    changing = [statement for statement in workload.statements if statement.changes]
    found: dict[int, Mapping[Values, str]] = {}
    chosen: dict[int, CapturedStatement | None] = {}
    if changing:
        begun = time.monotonic()
        with suppress(SetupError), ScratchDatabase(conninfo) as scratch:
            scratch.limit(_STATEMENT_S)
            for statement in changing:
                if time.monotonic() - begun >= _LONGEST_S:
                    break
                executed = _executed(scratch, statement, statement.sets)
                found[statement.template] = {
                    values: each.violation for values, each in executed.items() if each.violation
                }
                rows = {values: each.rows for values, each in executed.items() if each.rows is not None}
                if finds_too_few(statement, rows):
                    chosen[statement.template] = with_matching(statement, rows, _matching(scratch, statement))
    workload, replaced = _replaced(workload, chosen)
    workload, counted = leave_out(workload, found)
    return workload, (*replaced, *counted)


def _executed(
    scratch: ScratchDatabase, statement: CapturedStatement, sets: Iterable[Values]
) -> Mapping[Values, Executed]:
    distinct = list(dict.fromkeys(sets))
    try:
        texts = [
            with_values(statement.sql, dict(enumerate(each, start=1)), scratch.literal) for each in distinct
        ]
    except ValueError:  # the grammar of another version of PostgreSQL
        return {}
    return dict(zip(distinct, scratch.executed(texts), strict=True))


def finds_too_few(statement: CapturedStatement, rows: Mapping[Values, int]) -> bool:
    """Return whether an UPDATE or DELETE changes less than half of the rows of the server's calls. Pure.

    `rows` are the rows that it changed on the copy, by its sets of values.
    """
    if not statement.rows or not rows or _FINDS.match(statement.sql) is None:
        return False
    return sum(rows.values()) / len(rows) < statement.rows / 2


def with_matching(
    statement: CapturedStatement, rows: Mapping[Values, int], others: Sequence[Values]
) -> CapturedStatement | None:
    """Return a statement with values that find rows; None if there are none. Pure.

    `others` are values of rows of the copy. If the server's calls changed less than one row each on
    average, some sets find none, too.
    """
    finding = [*(values for values, many in rows.items() if many), *others]
    if not finding:
        return None
    share = min(1.0, statement.rows or 1.0)
    empty = [values for values, many in rows.items() if not many]
    empty = empty[: round(len(finding) * (1 - share) / share)]
    return replace(statement, sets=(*finding, *empty), origin="rows" if others else statement.origin)


def _matching(scratch: ScratchDatabase, statement: CapturedStatement) -> list[Values]:
    """Return sets of values of rows of the copy's table, with which the statement changes rows."""
    query = matching_rows(statement.sql)
    if query is None:
        return []
    each = max(1, round(statement.rows or 1.0)) if query.arrays else 1
    found = scratch.some_rows(query.sql, SETS * each)
    sets = []
    for place, first in enumerate(range(0, len(found), each)):
        values = list(statement.sets[place % len(statement.sets)])
        for column, number in enumerate(query.numbers):
            own = [row[column] for row in found[first : first + each]]
            values[number - 1] = array_text(own) if number in query.arrays else own[0]
        sets.append(tuple(values))
    return [values for values, done in _executed(scratch, statement, sets).items() if done.rows]


def _replaced(
    workload: CapturedWorkload, chosen: Mapping[int, CapturedStatement | None]
) -> tuple[CapturedWorkload, tuple[Missing, ...]]:
    """Return a workload with chosen values, without the statements that find no row, and what to say."""
    kept: list[CapturedStatement] = []
    missing = list(workload.missing)
    said: list[Missing] = []
    for statement in workload.statements:
        if statement.template not in chosen:
            kept.append(statement)
            continue
        other, rows = chosen[statement.template], f"{statement.rows or 0:.2g}"
        if other is None:
            reason = f"on the copy it changes no row, but a call on the server changes {rows} rows"
            missing.append(NotCaptured(statement.template, statement.sql, reason, statement.share))
            continue
        kept.append(other)
        said.append(
            Missing(
                f"the captured values of {inline_statement(statement.sql)}",
                f"on the copy they find fewer rows than the {rows} of a call on the server, so values of the "
                "copy's rows are measured",
                "",
            )
        )
    return replace(workload, statements=tuple(kept), missing=tuple(missing)), tuple(said)


def leave_out(
    workload: CapturedWorkload, violations: Mapping[int, Mapping[Values, str]]
) -> tuple[CapturedWorkload, tuple[Missing, ...]]:
    """Return a workload without some sets of values, by template, and how many were left out. Pure."""
    kept: list[CapturedStatement] = []
    missing = list(workload.missing)
    counted: list[Missing] = []
    for statement in workload.statements:
        words = violations.get(statement.template, {})
        sets = tuple(values for values in statement.sets if values not in words)
        if not words or len(sets) == len(statement.sets):
            kept.append(statement)
            continue
        first = next(iter(words.values()))
        if not sets:
            reason = f'with all captured values, it violates a constraint on the copy: "{first}"'
            missing.append(NotCaptured(statement.template, statement.sql, reason, statement.share))
            continue
        kept.append(replace(statement, sets=sets))
        left = len(statement.sets) - len(sets)
        counted.append(
            Missing(
                f"{left} of {len(statement.sets)} sets of values of {inline_statement(statement.sql)}",
                f'they violate a constraint on the copy ("{first}"), so they are not measured',
                "",
            )
        )
    return replace(workload, statements=tuple(kept), missing=tuple(missing)), tuple(counted)
