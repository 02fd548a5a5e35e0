"""Judge what a change brings, choose between changes, and find out which of a set are needed. Pure.

A change is cured if it surely saves time, saves enough of it to matter, and slows down no statement too much.
The interval is at 95 %, so a useless change passes with a probability of at most 2.5 %. Of many changes the
best looks better than it is. Therefore the chosen ones are measured again, and only the fresh measurement
counts: its error rate stays 2.5 % however many were tried (``tests/calibration/test_combined.py``).

Ratios of statements become seconds per hour: with rate r (calls per hour), time b (seconds) and measured
ratio ρ of its mean, a statement saves ``r · b · (1 - ρ)``. Ratios are measured on the copy; rates and times
are those of the source. A ratio carries over to a server with other hardware better than a difference of
times does, and no change saves more than the bill says the statements cost. The client's round trip and the
commit are in both times of a ratio, but not in the server's mean time. They make the ratio of a short
statement too close to 1. For a gain this is cautious. A loss therefore counts with the longer of both times:
the source's mean, or the mean on the copy, from which ``b · (ρ - 1)`` is the measured difference itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from uncork.experiment.cure.arms import CONTROL, Arm
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import PRACTICAL, Change, ChangeState, Net, StatementEffect
from uncork.model.template_words import inline_statement
from uncork.model.units import count_words, format_count, format_duration, share_text
from uncork.stats.combined import Bounded, difference, total
from uncork.stats.power import MOST_LONGER

_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Account:
    """What a change saves. `net` is None if no statement was measured.

    `unknown` is the part of the captured time, 0 to 1, of statements that the change can touch and that have
    no interval; `unmeasured` are their templates. Statements that it cannot touch count as unchanged.
    """

    net: Net | None
    unknown: float
    unmeasured: tuple[int, ...]


def account_of(arm: Arm, effects: Sequence[StatementEffect], workload: CapturedWorkload) -> Account:
    """Return what a change saves over a workload, in seconds of sessions' time per hour.

    The interval has the confidence of the effects' intervals, because the statements were measured
    independently (`stats.combined`).
    """
    by_template = {effect.template: effect for effect in effects}
    parts: list[Bounded] = []
    unmeasured: list[CapturedStatement] = []
    before = 0.0
    for statement in workload.statements:
        effect = by_template.get(statement.template)
        saved = None if effect is None else saved_by(effect, statement.mean_ns)
        if saved is not None:
            parts.append(saved)
            before += statement.calls_per_hour * statement.mean_ns / _NS
        elif arm.touches(statement):
            unmeasured.append(statement)
    whole = sum(statement.calls_per_hour * statement.mean_ns for statement in workload.statements)
    unknown = sum(statement.calls_per_hour * statement.mean_ns for statement in unmeasured)
    net = None
    if parts:
        found = total(parts)
        net = Net(found.estimate, found.low, found.high, before)
    return Account(
        net, unknown / whole if whole else 0.0, tuple(statement.template for statement in unmeasured)
    )


def saved_by(effect: StatementEffect, source_ns: float) -> Bounded | None:
    """Return the seconds per hour saved on a statement with this mean; None if not measured."""
    if effect.ratio is None or effect.low is None or effect.high is None:
        return None
    longer_ns = max(source_ns, effect.before_ns or 0.0)

    def saved(ratio: float) -> float:
        counted_ns = source_ns if ratio <= 1.0 else longer_ns
        return effect.calls_per_hour * counted_ns * (1.0 - ratio) / _NS

    return Bounded(saved(effect.ratio), saved(effect.high), saved(effect.low))


# ---- the statements with which changes are measured ----


COVERED: Final = 0.98
"""Part of the time of all statements that a change can touch from which on no further one is measured."""
MOST_STATEMENTS: Final = 20
"""Statements of one experiment at most. A verdict needs several rounds of each of them."""
_WRITE: Final = 10.0
"""Weight of the time of a statement that writes to a changed table: an index can make it several times
slower, so a part of the time that is small now may not stay small."""


def measured_statements(
    arms: Sequence[Arm], workload: CapturedWorkload, own: Collection[int]
) -> tuple[CapturedStatement, ...]:
    """Return the statements with which changes are measured together.

    The statements of the finding, with the templates `own`, come first, the costliest before the others. The
    others that a change can touch follow, until the rest has 2 % of the time of all of them. The time of a
    statement that writes to a changed table counts ten times.
    """
    touched = [
        statement
        for statement in workload.statements
        if statement.template in own or any(arm.touches(statement) for arm in arms)
    ]
    weights = {statement.template: _weight(statement, arms) for statement in touched}
    order = sorted(touched, key=lambda one: (one.template not in own, -weights[one.template]))
    enough = COVERED * math.fsum(weights.values())
    found: list[CapturedStatement] = []
    covered = 0.0
    for statement in order[:MOST_STATEMENTS]:
        if found and covered >= enough:
            break
        found.append(statement)
        covered += weights[statement.template]
    return tuple(found)


def _weight(statement: CapturedStatement, arms: Sequence[Arm]) -> float:
    time = statement.calls_per_hour * statement.mean_ns
    writes = statement.changes and any(
        (arm.setup and not arm.tables) or set(arm.tables) & set(statement.tables) for arm in arms
    )
    return _WRITE * time if writes else time


SLOWER: Final = 1.2
"""Ratio above which a statement is slower than a change may make it: the non-inferiority margin."""

COST_SHARE: Final = 0.1
"""Part of all gains above which the loss of one such statement makes a change harmful."""

_UNLIKE: Final = 10.0
"""Ratio of the times or rows of a call on the source and on the copy from which on the values are doubted. A
busy server is slower than a copy too, by less than that."""
_FROM_LOG: Final = "Take the values from the server's log with --logs."

_ORDER: Final[tuple[ChangeState, ...]] = (
    "cured",
    "unclear",
    "not cured",
    "harmful",
    "refused",
    "not tried",
)


def judge(
    arm: Arm,
    effects: Sequence[StatementEffect],
    net: Net | None,
    *,
    refused: str = "",
    unknown: float = 0.0,
) -> tuple[ChangeState, str, int | None]:
    """Return the state of a change, the reason in one sentence, and the template that loses most time.

    `net` is what it saves over the workload; None if nothing was measured. `refused` is why the run refused
    it, as a sentence. `unknown` is the part of the captured time of statements that it can touch and that
    were not measured. The template is that of the statement proven slower with the greatest loss; None if
    there is none.
    """
    if refused:
        return "refused", refused, None
    if net is None:
        return "unclear", "No statement was measured long enough for an interval; it needs more time.", None
    worst = _worst(effects)
    harmed = [effect for effect in effects if _harms(effect, effects)]
    if harmed:
        most = max(harmed, key=lambda one: -_saved(one).estimate)
        return "harmful", _harm(most), most.template
    template = None if worst is None else worst.template
    if net.high < 0:
        return "harmful", f"The captured statements together take longer: it {_saving(net)}.", template
    rest = (
        f" Statements with {share_text(unknown)} of the time were not measured." if unknown >= 0.005 else ""
    )
    state, reason = _by_net(net, worst, expected=arm.kind != "control")
    return state, f"{reason}{rest}", template


def doubt(
    arm: Arm,
    effects: Sequence[StatementEffect],
    captured: Sequence[CapturedStatement],
    state: ChangeState,
) -> str:
    """Return why the verdict `state` may differ with the application's values; empty if there is no reason.

    Drawn values have the frequencies of the columns. If the application sends rare ones, of which the plan is
    slow, the copy does not show the fault. If it asks for far more rows, an index helps the copy alone.
    """
    known = {statement.template: statement for statement in captured}
    for effect in effects:
        there = known.get(effect.template)
        if there is None or effect.template not in arm.templates or effect.origin not in ("drawn", "rows"):
            continue
        before_ns, rows = effect.before_ns or 0.0, effect.before_rows
        if state != "cured" and before_ns and there.mean_ns > _UNLIKE * before_ns:
            here, takes = format_duration(before_ns), format_duration(there.mean_ns)
            return (
                f"With drawn values, {inline_statement(effect.sql)} takes {here} on the copy, but {takes} on "
                f"the server: the application sends others, or its sessions have other settings. {_FROM_LOG}"
            )
        if rows is not None and there.rows is not None and there.rows > _UNLIKE * max(1.0, rows):
            here, more = count_words(round(rows), "row"), format_count(round(there.rows))
            return (
                f"With drawn values, {inline_statement(effect.sql)} has {here} a call on the copy, "
                f"but {more} "
                f"on the server: the application sends others. {_FROM_LOG}"
            )
    return ""


def choose(changes: Sequence[Change]) -> Change | None:
    """Return the best change of a finding: of those with the best state, the one that surely saves most.

    Controls are never chosen. The result is None if nothing was tried. Only a change whose state is
    ``cured`` may be proposed.
    """
    tried = [change for change in changes if change.kind != "control"]
    return min(tried, key=lambda one: (_ORDER.index(one.state), -_sure(one)), default=None)


def state_of(changes: Sequence[Change]) -> ChangeState:
    """Return the state of a finding: that of its best change."""
    best = choose(changes)
    return "not tried" if best is None else best.state


def kept(whole: Net, without: Mapping[str, Net]) -> tuple[str, ...]:
    """Return the members of a set that are still needed: all, or all but one.

    `whole` is what the set saves, `without` what it saves without single members, by their names. A member
    contributes the difference. If even the upper limit of its contribution does not matter, it is left out.
    Of several such members only the one that contributes least is left out, because two indexes that replace
    each other contribute nothing one by one and everything together. Measure again after each.
    """
    if not without:
        return ()
    contributions = {name: difference(bounded(whole), bounded(net)).high for name, net in without.items()}
    least = min(contributions, key=lambda name: contributions[name])
    if contributions[least] > PRACTICAL * whole.before:
        return tuple(without)
    return tuple(name for name in without if name != least)


def _by_net(net: Net, slower: StatementEffect | None, *, expected: bool) -> tuple[ChangeState, str]:
    """Return the state of a change that harms no statement, and why.

    `slower` is a statement that it slows down a little; `expected` is false for a control.
    """
    least = PRACTICAL * net.before
    if net.low > 0 and net.saved >= least:
        rest = "" if slower is None else f"; it makes {inline_statement(slower.sql)} slower"
        return "cured", f"It {_saving(net)}{rest}."
    if net.high >= least:
        return "unclear", f"The measurement was too short to decide: it {_saving(net)}."
    if expected:
        return "not cured", f"It saves less than {PRACTICAL * 100:g} % of the time: it {_saving(net)}."
    return "not cured", f"As expected, it does not help: it {_saving(net)}."


def times_longer(net: Net) -> float | None:
    """Return how many times as many trials would probably decide what a change saves.

    The estimate is taken as it is, and its interval narrows with the square root of the number of trials.
    None if it is decided, or needs more than `MOST_LONGER` times as many.
    """
    least = PRACTICAL * net.before
    if net.high < least or (net.low > 0 and net.saved >= least):
        return None
    helps = net.saved >= least
    half, distance = (net.saved - net.low, net.saved) if helps else (net.high - net.saved, least - net.saved)
    return max((half / distance) ** 2, 1.0) if half**2 <= MOST_LONGER * distance**2 else None


def _saved(effect: StatementEffect) -> Bounded:
    return saved_by(effect, effect.before_ns or 0.0) or Bounded(0.0, 0.0, 0.0)


def _worst(effects: Sequence[StatementEffect]) -> StatementEffect | None:
    slower = [effect for effect in effects if effect.low is not None and effect.low > 1.0]
    return max(slower, key=lambda one: -_saved(one).estimate, default=None)


def _harms(effect: StatementEffect, effects: Sequence[StatementEffect]) -> bool:
    if effect.low is None or effect.low <= SLOWER:
        return False
    gains = sum(max(0.0, _saved(statement_effect).estimate) for statement_effect in effects)
    return -_saved(effect).estimate > COST_SHARE * gains


def _harm(effect: StatementEffect) -> str:
    seconds = -_saved(effect).estimate
    return (
        f"Statement {inline_statement(effect.sql)} takes {effect.ratio:.2g} times as long (95 % interval: "
        f"{effect.low:.2g} to {effect.high:.2g}), which costs {_seconds(seconds)} per hour."
    )


def _saving(net: Net) -> str:
    """Return what a change saves or costs, without a negative number."""
    share = ""
    if net.before > 0:
        share = f", {100 * abs(net.saved) / net.before:.0f} % of {_seconds(net.before)}"
    if net.low >= 0 or net.high <= 0:
        low, high = map(_seconds, sorted((abs(net.low), abs(net.high))))
    else:
        low, high = f"{_seconds(-net.low)} more", f"{_seconds(net.high)} less"
    verb = "saves" if net.saved >= 0 else "costs"
    return f"{verb} {_seconds(abs(net.saved))} per hour{share} (95 % interval: {low} to {high})"


def _seconds(value: float) -> str:
    return f"{format_count(value)} s"


def _sure(change: Change) -> float:
    return float("-inf") if change.net is None else change.net.low


def bounded(net: Net) -> Bounded:
    """Return what a change saves, with its limits."""
    return Bounded(net.saved, net.low, net.high)


# ---- which comparisons no longer matter to the decisions of a cure ----
#
# The intervals are valid at every look, so an experiment may end as soon as they decide. None of the rules
# looks at whether an effect is significant, because effects that stop at their first significance are
# overstated. `tests/calibration/test_enough.py` simulates what the rules do to errors.


Comparison = tuple[str, int]
"""The name of a change, and the template of a statement."""


def needless(
    arms: Sequence[Arm], effects: Mapping[str, Sequence[StatementEffect]], workload: CapturedWorkload
) -> set[Comparison]:
    """Return the comparisons that need no more trials.

    A comparison needs none if it is about

    - a statement whose part of the bill is known so well that the sum of equally well known parts is known to
      3 % of the time, and which cannot be harmed too much;
    - a control that surely saves less than the chosen changes, the first of the `arms`;
    - a set without one of its members, which surely contributes to it;
    - a change that surely saves less than another change of the same finding.

    `effects` has every statement that is compared, by change; without an interval if it is not known yet.
    """
    nets = {arm.name: _net(arm, effects.get(arm.name, ()), workload) for arm in arms}
    means = {statement.template: statement.mean_ns for statement in workload.statements}
    idle = _idle(arms, nets)
    return {
        (arm.name, effect.template)
        for arm in arms
        for effect in effects.get(arm.name, ())
        if arm.name in idle or _is_known(effect, effects[arm.name], means)
    }


def promising(
    arms: Sequence[Arm], effects: Mapping[str, Sequence[StatementEffect]], workload: CapturedWorkload
) -> bool:
    """Return whether no change is proven, and one seems to save enough without a sure interval."""
    found = []
    for arm in arms:
        net = account_of(arm, effects.get(arm.name, ()), workload).net
        if net is not None:
            state, _, _ = judge(arm, effects[arm.name], net)
            found.append((state, net.saved >= PRACTICAL * net.before))
    return ("unclear", True) in found and not any(state == "cured" for state, _ in found)


def _net(arm: Arm, effects: Sequence[StatementEffect], workload: CapturedWorkload) -> Net | None:
    if not effects or any(effect.low is None or effect.high is None for effect in effects):
        return None
    return account_of(arm, effects, workload).net


def _idle(arms: Sequence[Arm], nets: Mapping[str, Net | None]) -> set[str]:
    confirming = any(arm.kind == CONTROL for arm in arms)
    known = [(arm, net) for arm in arms if (net := nets[arm.name]) is not None]
    if not known:
        return set()
    if not confirming:
        best = max(net.low for _, net in known)
        return {arm.name for arm, net in known if net.high < best}
    whole = nets[arms[0].name]
    if whole is None:
        return set()
    return {
        arm.name
        for arm, net in known
        if arm is not arms[0]
        and (
            net.high < whole.low
            if arm.kind == CONTROL
            else difference(bounded(whole), bounded(net)).low > PRACTICAL * whole.before
        )
    }


def _is_known(
    effect: StatementEffect, effects: Sequence[StatementEffect], means: Mapping[int, float]
) -> bool:
    saved = saved_by(effect, means[effect.template])
    if saved is None:
        return False
    before = math.fsum(
        statement_effect.calls_per_hour * means[statement_effect.template] / 1e9
        for statement_effect in effects
    )
    sure = math.fsum(
        max(0.0, part.low)
        for statement_effect in effects
        if (part := saved_by(statement_effect, means[statement_effect.template])) is not None
    )
    harm = effect.high is not None and effect.high > SLOWER and -saved.low > COST_SHARE * sure
    return not harm and (saved.high - saved.low) / 2 <= PRACTICAL * before / math.sqrt(len(effects))
