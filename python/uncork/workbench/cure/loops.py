"""Prove on a copy what a client gains that sends many rows at once, instead of one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from uncork.engines.copying.scratch import LeftBehind, ScratchDatabase, unstable_columns
from uncork.errors import SetupError
from uncork.experiment.cure.judge import account_of, choose, judge, state_of
from uncork.experiment.cure.loops import (
    Batches,
    LoopArm,
    ManyRows,
    loop_arms,
    loop_habit,
    loops_experiment,
    own_cost,
)
from uncork.experiment.cure.setups import Refused
from uncork.experiment.plan.skip_rules import SKIPPING
from uncork.experiment.spec.batches import array_text
from uncork.experiment.spec.sqltext import numbers_in
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.records import build_from
from uncork.model.results.cure import Change, ChangeState, StatementEffect, Tried
from uncork.model.template_words import inline_statement
from uncork.model.units import count_words
from uncork.profile.parameter_values import with_values
from uncork.workbench.cure.trials import Allowance, Measured, measure_arms

_CHECK_S: Final = 60.0
"""How long a statement of the comparison of rows may take."""
_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """A finding about a loop of a client, with the change that replaces it and its captured statements."""

    finding: Finding
    candidate: Candidate
    statements: tuple[CapturedStatement, ...]


def loop_plan(finding: Finding, workload: CapturedWorkload) -> tuple[LoopPlan | None, str]:
    """Return the plan to prove a finding by a variant of the captured workload, or the reason why not. Pure.

    Both are empty if the finding is about no loop.
    """
    candidate = loop_habit(finding)
    if candidate is None:
        return None, ""
    own = tuple(statement for statement in workload.statements if statement.template in finding.templates)
    if not own:
        lost = [captured.reason for captured in workload.missing if captured.template in finding.templates]
        return (
            None,
            f"Its statement cannot be measured on a copy: {lost[0]}." if lost else "It was not captured.",
        )
    types = {statement.template: dict.fromkeys(numbers_in(statement.sql), "text") for statement in own}
    try:
        loop_arms(finding, candidate, own, types)
    except Refused as refused:
        return None, str(refused)
    return LoopPlan(finding, candidate, own), ""


class LoopProver:
    """Measures ways to send many rows on copies of the database at `conninfo`."""

    def __init__(
        self, root: Path, conninfo: str, workload: CapturedWorkload, told: Callable[[str], None]
    ) -> None:
        self._root, self._conninfo, self._workload, self._told = root, conninfo, workload, told

    def of_finding(self, plan: LoopPlan, allowed: Allowance) -> Tried:
        """Compare the rows of all ways, measure them, and measure the best one again for as long."""
        with ScratchDatabase(self._conninfo) as scratch:
            scratch.limit(_CHECK_S)
            try:
                arms, batches = loop_arms(
                    plan.finding, plan.candidate, plan.statements, _types(scratch, plan.statements)
                )
            except Refused as refused:
                return Tried(plan.finding, "refused", str(refused))
            same = {arm.arm.name: _same_rows(scratch, arm, batches) for arm in arms}
        changes = {
            arm.arm.name: _change_of(arm, plan, state="refused", reason=error)
            for arm in arms
            if (error := same[arm.arm.name][0])
        }
        wanted = [
            replace(arm, assumed=(*arm.assumed, same[arm.arm.name][1]))
            for arm in arms
            if arm.arm.name not in changes
        ]
        if wanted:
            measured = self._measure(plan, batches, wanted, allowed.first())
            changes |= {arm.arm.name: self._change(arm, plan, batches, measured) for arm in wanted}
        found = tuple(changes[arm.arm.name] for arm in arms)
        best = choose(found)
        if best is not None and best.state == "cured":
            self._told("measuring the best way to send many rows again")
            (arm,) = (arm for arm in wanted if arm.arm.name == best.name)
            again = self._measure(plan, batches, [arm], allowed)
            best = self._change(arm, plan, batches, again, earlier=best.runs)
            found = tuple(best if change.name == best.name else change for change in found)
            if best.state != "cured":
                reason = f"The gain was not confirmed when it was measured again: {best.reason}"
                return Tried(plan.finding, best.state, reason, found, best.name)
        if best is None:
            return Tried(plan.finding, "not tried", "There is no other way to send its rows.")
        return Tried(plan.finding, state_of(found), best.reason, found, best.name)

    def _measure(
        self, plan: LoopPlan, batches: Sequence[Batches], arms: Sequence[LoopArm], allowed: Allowance
    ) -> Measured:
        text = loops_experiment(
            plan.finding.headline,
            self._conninfo,
            plan.candidate.habit,
            batches,
            arms,
            budget_s=allowed.budget_s,
        )
        self._told(f"measuring {count_words(len(arms), 'way')} to send many rows")
        statements = [batch.statement for batch in batches]
        return measure_arms(
            self._root, text, self._conninfo, statements, 1, self._told, until_s=allowed.until_s
        )

    def _change(
        self,
        arm: LoopArm,
        plan: LoopPlan,
        batches: Sequence[Batches],
        measured: Measured,
        earlier: tuple[str, ...] = (),
    ) -> Change:
        rows = {batch.statement.template: batch.rows for batch in batches}
        effects = tuple(_of_row(effect, rows) for effect in measured.effects.get(arm.arm.name, ()))
        workload = own_cost(self._workload, plan.finding)
        account = account_of(arm.arm, effects, workload)
        whole = sum(statement.calls_per_hour * statement.mean_ns for statement in workload.statements) / _NS
        net = None if account.net is None else replace(account.net, before=whole)
        refused = measured.refused.get(arm.arm.name, "")
        skipped = refused.startswith(SKIPPING)
        state, reason, worst = judge(
            arm.arm, effects, net, refused="" if skipped else refused, unknown=account.unknown
        )
        if skipped:
            reason = f"It could not be measured: {refused}."
        return replace(
            _change_of(arm, plan, state=state, reason=reason),
            net=net,
            effects=effects,
            worst=worst,
            runs=(measured.run, *earlier),
        )


def _of_row(effect: StatementEffect, rows: Mapping[int, int]) -> StatementEffect:
    """Return an effect with times of one row, instead of a batch."""

    def of_row(value: float | None) -> float | None:
        return None if value is None else value / rows[effect.template]

    return replace(
        effect,
        before_ns=of_row(effect.before_ns),
        after_ns=of_row(effect.after_ns),
        before_cpu_ns=of_row(effect.before_cpu_ns),
        after_cpu_ns=of_row(effect.after_cpu_ns),
    )


def _change_of(loop_arm: LoopArm, plan: LoopPlan, *, state: ChangeState, reason: str) -> Change:
    return build_from(
        Change,
        loop_arm.arm,
        state=state,
        reason=reason,
        assumed=loop_arm.assumed,
        habit=plan.candidate.habit,
    )


def _types(scratch: ScratchDatabase, statements: Sequence[CapturedStatement]) -> dict[int, dict[int, str]]:
    """Return the types of each statement's parameters, except for statements that the server refuses."""
    found = {}
    for statement in statements:
        try:
            found[statement.template] = dict(
                enumerate(scratch.parameter_types(statement.sql.rstrip("; \n")), start=1)
            )
        except SetupError:
            found[statement.template] = {}
    return found


def _same_rows(scratch: ScratchDatabase, arm: LoopArm, batches: Sequence[Batches]) -> tuple[str, str]:
    """Compare the rows of a batch with the rows of single statements; return the difference and the scope."""
    if arm.batching != "unnest":
        return "", "The statements are the same."
    compared, left_out = 0, frozenset[str]()
    for batch in batches:
        found = compare_rows(scratch, arm.many[batch.statement.template], batch)
        if found.error:
            return f"{found.error} ({inline_statement(batch.statement.sql)}).", ""
        compared += found.compared
        left_out |= found.left_out
    without = f", apart from {', '.join(sorted(left_out))}, which differ each time" if left_out else ""
    return "", f"The rows were the same for {count_words(compared, 'set')} of values{without}."


_MOST: Final = 10
"""Batches of a statement that reads whose rows are compared."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How the rows of a batch differ from those of single statements; `error` is empty if they do not.

    `compared` is the number of sets of values. `left_out` are columns that differ each time, such as times.
    """

    error: str
    compared: int = 0
    left_out: frozenset[str] = frozenset()


def compare_rows(scratch: ScratchDatabase, many: ManyRows, batches: Batches) -> Compared:
    """Compare a statement for many rows with the captured one, over the captured sets of values.

    Statements that read are compared over up to ten batches, by the rows that they return. Statements that
    change rows are compared over one batch, by all rows of the tables that they change, also by triggers.
    """
    sets, rows = batches.sets, batches.rows
    groups = [sets[at : at + rows] for at in range(0, len(sets), rows)]
    try:
        if batches.statement.changes:
            return _left_otherwise(scratch, many, batches, groups[0])
        for group in groups[:_MOST]:
            single, together = _texts(scratch, many, batches, group)
            expected, found = scratch.returned(single), scratch.returned([together], many.added)
            if expected != found:
                return Compared(_difference(expected.total(), found.total()))
    except SetupError as refused:
        return Compared(f"It failed on the copy: {refused}")
    return Compared("", sum(map(len, groups[:_MOST])))


def _texts(
    scratch: ScratchDatabase, many: ManyRows, batches: Batches, group: Sequence[Sequence[str | None]]
) -> tuple[list[str], str]:
    """Return the statements with values: one for each set, and the one for all of them."""
    sql = batches.statement.sql.strip().rstrip(";")
    single = [with_values(sql, dict(enumerate(sequence, start=1)), scratch.literal) for sequence in group]
    arrays = {
        number: array_text([sequence[number - 1] for sequence in group]) for number in numbers_in(many.sql)
    }
    return single, with_values(many.sql, arrays, scratch.literal)


def _left_otherwise(
    scratch: ScratchDatabase, many: ManyRows, batches: Batches, group: Sequence[Sequence[str | None]]
) -> Compared:
    single, together = _texts(scratch, many, batches, group)
    unstable = unstable_columns(scratch.left_behind(single), scratch.left_behind(single))
    expected, found = scratch.left_behind(single, unstable), scratch.left_behind([together], unstable)
    left_out = frozenset(f"{table}.{column}" for table, column in unstable)
    return Compared(_difference_of(expected, found), len(group), left_out)


def _difference_of(expected: LeftBehind, found: LeftBehind) -> str:
    if expected.rows == found.rows:
        return ""
    differing = sorted(
        name for name in {*expected.rows, *found.rows} if expected.rows.get(name) != found.rows.get(name)
    )
    return f"It leaves other rows in {', '.join(differing)} than the single statements"


def _difference(expected: int, found: int) -> str:
    if expected != found:
        return f"It returns {count_words(found, 'row')}, but the single statements return {expected}"
    return "It returns other rows than the single statements"
