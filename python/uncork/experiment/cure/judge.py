"""Judge what a change brings, choose between changes, and find out which of a set are needed. Pure.

A change is cured if it surely saves time, saves enough of it to matter, and slows down no statement too much.
The interval is at 95 %, so a useless change passes with a probability of at most 2.5 %. Of many changes the
best looks better than it is. Therefore the chosen ones are measured again, and only the fresh measurement
counts: its error rate stays 2.5 % however many were tried (``tests/calibration/test_combined.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.bill import saved_by
from uncork.model.database.workload import CapturedStatement
from uncork.model.results.cure import PRACTICAL, Change, ChangeState, Net, StatementEffect
from uncork.model.template_words import inline_statement
from uncork.model.units import count_words, format_count, format_duration, share_text
from uncork.stats.combined import Bounded, difference

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


def _saved(effect: StatementEffect) -> Bounded:
    """Return what a statement saves in the copy's own time; nothing if it has no interval."""
    return saved_by(effect, effect.before_ns or 0.0) or Bounded(0.0, 0.0, 0.0)


def _worst(effects: Sequence[StatementEffect]) -> StatementEffect | None:
    """Return the statement proven slower that loses most time."""
    slower = [effect for effect in effects if effect.low is not None and effect.low > 1.0]
    return max(slower, key=lambda one: -_saved(one).estimate, default=None)


def _harms(effect: StatementEffect, effects: Sequence[StatementEffect]) -> bool:
    """Return whether a statement is surely slower than the margin, and its loss is too large."""
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
