"""Prove changes on a copy: execute each once, measure those that can matter, and measure the best again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from uncork.engines.copying.scratch import ScratchDatabase, indexable_columns
from uncork.errors import SetupError
from uncork.experiment.cure.arms import (
    CONTROL,
    Arm,
    as_sent,
    combine,
    control,
    joined,
    leave_one_out,
    replaceable,
    unique_names,
    usual_arms,
)
from uncork.experiment.cure.judge import (
    account_of,
    choose,
    doubt,
    judge,
    kept,
    measured_statements,
    needless,
    promising,
    state_of,
)
from uncork.experiment.cure.setups import gathers_statistics
from uncork.experiment.cure.text import experiment_of_arms
from uncork.model.database.finding import Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.records import build_from
from uncork.model.results.cure import Change, Tried
from uncork.model.units import count_words
from uncork.profile.parameter_values import with_values
from uncork.profile.plans.tree import plan_shape, plan_tree
from uncork.workbench.cure.loops import LoopPlan
from uncork.workbench.cure.trials import Allowance, Measured, measure_arms
from uncork.workbench.cure.variants import VariantPlan

MOST_ARMS: Final = 4
"""Changes that one experiment compares at most."""
_BUILD_S: Final = 300.0
"""How long a change may take to execute on the copy at most."""
_MOST_CLIENTS: Final = 8
"""Sessions at once with which the chosen changes are measured, if the server had more busy ones."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A finding with the changes to try, and the statements to measure; or the reason why there is none.

    `client` is set if only the application can make the change, and a variant of the workload can show it.
    """

    finding: Finding
    arms: tuple[Arm, ...]
    reason: str
    statements: tuple[CapturedStatement, ...] = ()
    client: LoopPlan | VariantPlan | None = None


class Prover:
    """Measures changes on a copy of the database at `conninfo`."""

    def __init__(
        self, root: Path, conninfo: str, workload: CapturedWorkload, told: Callable[[str], None]
    ) -> None:
        self._root, self._conninfo, self._workload, self._told = root, conninfo, workload, told
        self._arms: dict[str, tuple[Arm, Rehearsed, Plan]] = {}
        self._names: list[Arm] = []
        self._confirmed: tuple[Arm, ...] = ()

    def of_finding(self, plan: Plan, allowed: Allowance) -> Tried:
        """Try the changes of one finding, each alone."""
        arms = self._named(plan.arms[:MOST_ARMS])
        rehearsed = rehearse(self._conninfo, arms, plan.statements, min(_BUILD_S, allowed.left_s))
        hidden = any(statement.changes for statement in plan.statements)
        changes = {arm.name: _left_out(arm, rehearsed[arm.name], hidden=hidden) for arm in arms}
        wanted = [arm for arm in arms if changes[arm.name] is None]
        if wanted:
            measured = self._measure(plan.finding.headline, plan.statements, wanted, allowed, 1)
            for arm in wanted:
                changes[arm.name] = self._change(arm, rehearsed[arm.name], measured)
                self._arms[arm.name] = (arm, rehearsed[arm.name], plan)
        found = tuple(change for change in changes.values() if change is not None)
        best = choose(found)
        if best is None:  # a finding with changes has at least one
            return Tried(plan.finding, "not tried", plan.reason)
        return Tried(plan.finding, state_of(found), best.reason, found, best.name)

    def remember(self, plan: Plan, tried: Tried) -> None:
        """Take over the changes of a finding that an earlier cure tried, so that they can be confirmed."""
        by_sql = {arm.sql: arm for arm in plan.arms}
        for change in tried.changes:
            if change.sql in by_sql:
                arm = replace(by_sql[change.sql], name=change.name)
                rehearsed = Rehearsed("", change.build_ns or 0, change.undo_ns, change.size or 0)
                self._arms[arm.name] = (arm, rehearsed, plan)
                self._names.append(arm)

    def confirm(self, tried: Sequence[Tried], allowed: Allowance) -> Change | None:
        """Measure the best changes again, all together and without each; return those that earn their place.

        A change that cannot help is measured beside them, as a control.
        """
        proven = {
            change.name: change.net
            for attempt in tried
            for change in attempt.changes
            if attempt.state == "cured" and change.name in self._arms and change.name == attempt.best
            if change.net is not None
        }
        arms = combine(proven, [self._arms[name][0] for name in proven])
        if not arms:
            return None
        self._told("measuring the changes that help again, all together")
        clients = min(_MOST_CLIENTS, max(1, round(self._workload.sessions)))
        change = self._together(arms, allowed if clients == 1 else allowed.first())
        if change.state == "cured" and clients > 1:
            self._told(f"measuring them with {clients} sessions at once")
            whole = _whole(arms)
            measured = self._measure("all changes at once", self._union(arms), [whole], allowed, clients)
            change = _with_concurrency(change, self._change(whole, Rehearsed(), measured), clients)
        return change

    def _together(self, arms: tuple[Arm, ...], allowed: Allowance) -> Change:
        """Measure changes together, and without each that another may replace; leave out what is replaced."""
        self._confirmed = arms
        whole = _whole(arms)
        doubtful = replaceable({arm.name: self._arms[arm.name][1].planned for arm in arms})
        others = {name: arm for name, arm in leave_one_out(arms).items() if name in doubtful}
        useless = control(self._workload, [whole, *others.values()])
        built = _sum([self._arms[arm.name][1] for arm in arms])
        measured = self._measure(
            "all changes that help", self._union(arms), [whole, *others.values(), useless], allowed, 1
        )
        change = _beside_control(
            self._change(whole, built, measured), self._change(useless, Rehearsed(), measured)
        )
        nets = {
            name: net
            for name, arm in others.items()
            if (net := self._change(arm, Rehearsed(), measured).net) is not None
        }
        if change.net is None or len(nets) < len(others):
            return change
        left = set(nets) - set(kept(change.net, nets))
        if left:
            return self._together(tuple(arm for arm in arms if arm.name not in left), allowed)
        return change

    def usual(self, allowed: Allowance) -> tuple[Change, ...]:
        """Measure what people often try first, on the statements with which the changes were confirmed."""
        chosen, statements = self._confirmed, self._union(self._confirmed)
        columns = indexable_columns(self._conninfo, {table for arm in chosen for table in arm.tables})
        arms = usual_arms(chosen, self._workload, columns)
        rehearsed = rehearse(self._conninfo, arms, statements, min(_BUILD_S, allowed.left_s))
        found = {arm.name: _left_out(arm, rehearsed[arm.name], hidden=True) for arm in arms}
        wanted = [arm for arm in arms if found[arm.name] is None]
        if wanted:
            self._told("measuring what people often try first")
            measured = self._measure("What do usual remedies bring?", statements, wanted, allowed, 1)
            found.update({arm.name: self._change(arm, rehearsed[arm.name], measured) for arm in wanted})
        return tuple(change for change in found.values() if change is not None)

    def _named(self, arms: Sequence[Arm]) -> list[Arm]:
        """Return the changes with names that no earlier change has."""
        named = unique_names([*self._names, *arms])[len(self._names) :]
        self._names += named
        return named

    def _union(self, arms: Sequence[Arm]) -> tuple[CapturedStatement, ...]:
        own = {template for arm in arms for template in self._arms[arm.name][2].finding.templates[:1]}
        return as_sent(measured_statements(arms, self._workload, own), arms)

    def _measure(
        self,
        about: str,
        statements: Sequence[CapturedStatement],
        arms: Sequence[Arm],
        allowed: Allowance,
        clients: int,
    ) -> Measured:
        text = experiment_of_arms(
            "change", about, self._conninfo, statements, arms, budget_s=allowed.budget_s, clients=clients
        )
        self._told(
            f"measuring {count_words(len(arms), 'change')} on {count_words(len(statements), 'statement')}"
        )
        rule = partial(needless, arms, workload=self._workload)
        deciding = arms[0].name if any(arm.kind == CONTROL for arm in arms) else ""
        wanted = arms[:1] if deciding else arms
        return measure_arms(
            self._root,
            text,
            self._conninfo,
            statements,
            clients,
            self._told,
            rule,
            deciding,
            partial(promising, wanted, workload=self._workload),
            allowed.until_s,
        )

    def _change(self, arm: Arm, rehearsed: Rehearsed, measured: Measured) -> Change:
        effects = measured.effects.get(arm.name, ())
        account = account_of(arm, effects, self._workload)
        refused = measured.refused.get(arm.name, "")
        state, reason, worst = judge(arm, effects, account.net, refused=refused, unknown=account.unknown)
        other = doubt(arm, effects, self._workload.statements, state)
        if state in ("cured", "not cured", "unclear") and other:
            state, reason = "unclear", other
        return replace(
            _untried(arm, rehearsed),
            state=state,
            reason=reason,
            net=account.net,
            effects=effects,
            worst=worst,
            runs=(measured.run,),
        )


def _beside_control(change: Change, useless: Change) -> Change:
    """Return a change that is judged against the control, a change that cannot help.

    If the control seems to help, the variants' databases differ by more than the changes. Then a
    change must surely save more than the control can have saved.
    """
    if change.state != "cured" or useless.state != "cured" or change.net is None or useless.net is None:
        return change
    if change.net.low > useless.net.high:
        return change
    reason = "A change that cannot help seemed to save as much, so this is no proof."
    return replace(change, state="unclear", reason=reason)


def _whole(arms: tuple[Arm, ...]) -> Arm:
    return arms[0] if len(arms) == 1 else joined(arms)


def _untried(arm: Arm, rehearsed: Rehearsed) -> Change:
    return build_from(
        Change,
        arm,
        state="not tried",
        reason="",
        build_ns=rehearsed.build_ns or None,
        undo_ns=rehearsed.undo_ns,
        size=rehearsed.size or None,
    )


def _left_out(arm: Arm, rehearsed: Rehearsed, *, hidden: bool) -> Change | None:
    """Return why a change need not be measured: it failed, or no plan uses the index; None to measure it.

    `hidden` means that statements change rows: no plan shows the checks of foreign keys, and triggers.
    """
    if rehearsed.late:
        return replace(_untried(arm, rehearsed), reason=f"The budget was too short: {rehearsed.error}.")
    if rehearsed.error:
        return replace(
            _untried(arm, rehearsed), state="refused", reason=f"It failed on the copy: {rehearsed.error}."
        )
    if hidden or rehearsed.planned:
        return None
    if gathers_statistics(arm.setup):
        reason = "On the copy, new statistics change the plan of none of the captured statements."
        return replace(_untried(arm, rehearsed), state="not cured", reason=reason)
    if arm.kind == "index" and "CREATE" in arm.setup.upper():
        reason = "The planner uses it for none of the captured statements."
        return replace(_untried(arm, rehearsed), state="not cured", reason=reason)
    return None


def _sum(built: Sequence[Rehearsed]) -> Rehearsed:
    undone = [rehearsed.undo_ns for rehearsed in built]
    return Rehearsed(
        build_ns=sum(rehearsed.build_ns for rehearsed in built),
        undo_ns=None if None in undone else sum(number or 0 for number in undone),
        size=sum(rehearsed.size for rehearsed in built),
    )


def _with_concurrency(alone: Change, together: Change, clients: int) -> Change:
    """Return a confirmed change with what several sessions at once found; harm there overrules."""
    effects = (*alone.effects, *together.effects)
    runs = (*alone.runs, *together.runs)
    if together.state in ("harmful", "refused"):
        reason = f"With {clients} sessions at once: {together.reason}"
        return replace(alone, state=together.state, reason=reason, effects=effects, runs=runs)
    return replace(alone, effects=effects, runs=runs)


# ---- execute each change once on a scratch database ----


_SETS: Final = 5
"""Sets of values with which a statement is planned: common, rare and extreme ones choose other plans."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A change that was executed once, alone.

    `error` is the server's words if it failed, else empty. `late` says that it took longer than the budget
    allows. `build_ns` and `undo_ns` are how long
    the change and its reversal took, `size` by how many bytes the database grew. `planned` are the
    templates whose plan it changes. Templates that cannot be planned are not among them.
    """

    error: str = ""
    build_ns: int = 0
    undo_ns: int | None = None
    size: int = 0
    planned: frozenset[int] = frozenset()
    late: bool = False


def rehearse(
    conninfo: str, arms: Sequence[Arm], statements: Sequence[CapturedStatement], timeout_s: float
) -> Mapping[str, Rehearsed]:
    """Execute each change on a copy of the database at `conninfo`, of which nothing remains.

    Plans are only estimated, never executed. A change that takes longer than `timeout_s` has failed.

    Raises:
        ConnectError: if the server cannot be reached.
        SetupError: if it refuses to copy the database.
    """
    found = {}
    for arm in arms:
        with ScratchDatabase(conninfo) as scratch:
            found[arm.name] = _tried(scratch, arm, statements, timeout_s)
    return found


def _tried(
    scratch: ScratchDatabase, arm: Arm, statements: Sequence[CapturedStatement], timeout_s: float
) -> Rehearsed:
    before, size = _plans(scratch, statements, {}), scratch.size()
    scratch.limit(timeout_s)
    begun = time.monotonic_ns()
    try:
        scratch.set(arm.settings)
        if arm.setup:
            scratch.execute(arm.setup)
        built = time.monotonic_ns() - begun
    except SetupError as error:
        late = timeout_s < _BUILD_S and time.monotonic_ns() - begun >= timeout_s * 1e9
        return Rehearsed(error=str(error), late=late)
    grown = scratch.size() - size
    after = _plans(scratch, statements, arm.statements, arm.settings)
    if any(number in before and number not in after for number in arm.statements):
        return Rehearsed(error="the server refuses the new statement")
    changed = {number for number, shapes in after.items() if shapes != before.get(number)}
    return Rehearsed("", built, _undone(scratch, arm), grown, frozenset(changed))


def _undone(scratch: ScratchDatabase, arm: Arm) -> int | None:
    """Revert a change, and return the nanoseconds; None if nothing reverts it, or that fails."""
    if not arm.undo or not arm.setup:
        return None
    begun = time.monotonic_ns()
    with suppress(SetupError):
        for statement in filter(None, (word.strip() for word in arm.undo.split(";\n"))):
            scratch.execute(statement)
        return time.monotonic_ns() - begun
    return None


def _plans(
    scratch: ScratchDatabase,
    statements: Sequence[CapturedStatement],
    texts: Mapping[int, str],
    chosen: Collection[str] = (),
) -> dict[int, tuple[Any, ...]]:
    """Return the shapes of each statement's plans, by template; `texts` replace the statements' own.

    Each statement runs with the settings of its role; settings `chosen` for the session take precedence.
    """
    found = {}
    for statement in statements:
        text = texts.get(statement.template, statement.sql)
        settings = {name: value for name, value in statement.settings.items() if name not in chosen}
        shapes = [
            shape for values in statement.sets[:_SETS] if (shape := _shape(scratch, text, values, settings))
        ]
        if shapes:
            found[statement.template] = tuple(shapes)
    return found


def _shape(
    scratch: ScratchDatabase, text: str, values: Sequence[str | None], settings: Mapping[str, str]
) -> tuple[Any, ...]:
    """Return the shape of a plan with values; empty if there is no plan."""
    try:
        statement = with_values(text, dict(enumerate(values, start=1)), scratch.literal)
    except ValueError:  # the grammar of another version of PostgreSQL
        return ()
    output = scratch.plan(statement, settings)
    tree = None if output is None else plan_tree(output)
    return () if tree is None else plan_shape(tree)
