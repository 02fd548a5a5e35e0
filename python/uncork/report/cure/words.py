"""Words and numbers of a cure: outcomes with their signs, gains, times, and the names of changes. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from uncork.model.database.finding import Bill, ClientHabit
from uncork.model.results.cure import Change, ChangeState, CureResult, Net, StatementEffect, Tried
from uncork.model.template_words import inline_statement
from uncork.model.units import format_bytes, format_count, format_duration, series_words
from uncork.model.verdict import Verdict
from uncork.report.blocks import Tone
from uncork.report.headline import capital, join_sentences
from uncork.report.words import effect_with_interval, interval_ends, share_text

SIGNS: Final[dict[ChangeState, str]] = {
    "cured": "✓",
    "harmful": "✗",
    "unclear": "?",
    "not cured": "=",
    "refused": "!",
    "not tried": "–",
}
"""A sign for each outcome, so that none depends on colour alone."""
TONES: Final[dict[ChangeState, Tone]] = {
    "cured": "faster",
    "harmful": "slower",
    "unclear": "unsure",
    "not cured": "same",
    "refused": "refused",
    "not tried": "skipped",
}
VERDICTS: Final[dict[ChangeState, Verdict]] = {
    "cured": Verdict.FASTER,
    "harmful": Verdict.SLOWER,
    "unclear": Verdict.NOT_ENOUGH_EVIDENCE,
    "not cured": Verdict.NO_PRACTICAL_DIFFERENCE,
    "refused": Verdict.REFUSED,
    "not tried": Verdict.SKIPPED,
}
_ORIGINS: Final[dict[str, str]] = {
    "none": "no parameters",
    "executed": "values from a log",
    "seen": "values from sessions",
    "drawn": "values drawn from statistics",
}
_OPERATIONS: Final[dict[ClientHabit, str]] = {
    "connects": "request",
    "pauses": "transaction",
    "locks early": "transaction",
    "counts in one row": "transaction",
}
"""What the effects of a change of the application are about, if they are about no single statement."""
_WHOLE_PERCENT: Final = 0.95
"""Above this share, a percentage has a decimal: 99.7 % less time is not 100 %."""
_LEAST_RATIO: Final = 1e-6
_ALL: Final = 0.99
"""Part of the time of all statements from which on they count as measured."""


def state_text(state: ChangeState) -> str:
    """Format an outcome with its sign: ``✓ cured``."""
    return f"{SIGNS[state]} {state}"


def named_changes(result: CureResult) -> Iterator[tuple[str, Tried, Change]]:
    """Yield each change with its number, such as ``2.1``: the first change of the second finding."""
    for number, tried in enumerate(result.tried, 1):
        for place, change in enumerate(tried.changes, 1):
            yield f"{number}.{place}", tried, change


def change_words(change: Change) -> str:
    """Return what a change does, without a full stop; a control is marked as such."""
    text = change.text.rstrip(". ")
    return f"Control: {text}" if change.kind == "control" else text


def net_ratio(net: Net) -> tuple[float, float | None, float | None]:
    """Return the workload's time with a change as a ratio to the time without it, and its interval.

    A lower end of None means that the interval includes a time of zero.
    """
    if net.before <= 0:
        return 1.0, None, None
    ratio, low, high = (1 - saved / net.before for saved in (net.saved, net.high, net.low))
    return (
        max(ratio, _LEAST_RATIO),
        low if low > 0 else None,
        max(high, _LEAST_RATIO) if math.isfinite(high) else None,
    )


def less_time(net: Net, *, interval: bool = True) -> str:
    """Return a gain for a headline: ``62 % less time [58, 66]``."""
    shares = [saved / net.before if net.before > 0 else 0.0 for saved in (net.saved, net.low, net.high)]
    share, low, high = map(_percent, shares)
    return f"{share} % less time{f' [{low}, {high}]' if interval else ''}"


def operation_word(change: Change) -> str:
    """Return what was measured as a whole, if it is no statement: a request or a transaction."""
    return _OPERATIONS.get(change.habit, "")


def claim_words(change: Change, net: Net, all_s_per_hour: float | None, *, interval: bool = True) -> str:
    """Return what a change saves, for a headline: ``all statements take 62 % less time [58, 66]``.

    If statements were not measured, the saving is a part of the time of all, and what was not measured counts
    as unchanged: ``all statements take at least 45 % less time``.
    """
    word = operation_word(change)
    if word:
        return f"each {word} takes {less_time(net, interval=interval)}"
    if all_s_per_hour is None:
        return f"the measured statements take {less_time(net, interval=interval)}"
    if net.before >= _ALL * all_s_per_hour:
        return f"all statements take {less_time(net, interval=interval)}"
    least = math.floor(100 * max(0.0, net.low) / all_s_per_hour)
    return f"all statements take at least {least} % less time"


def measured_words(net: Net, all_s_per_hour: float | None) -> str:
    """Return how much of the time of all statements was measured, and its saving; empty if it was all."""
    if all_s_per_hour is None or net.before >= _ALL * all_s_per_hour:
        return ""
    part = share_text(net.before / all_s_per_hour)
    return (
        f"uncork measured statements with {part} of the time of all: they take {less_time(net)}; what the "
        "change does to the others is unknown"
    )


def operation_times(change: Change) -> str:
    """Return the times of a request or a transaction on the copy; empty for other changes.

    ``A request takes 3.6 ms over a new connection and 0.2 ms over a kept one; the server's processor time for
    it is 3.1 ms and 0.1 ms``. ``A transaction takes 480 ms now and 2.1 ms with the change``.
    """
    if not operation_word(change) or not change.effects:
        return ""
    (effect,) = change.effects
    if effect.before_ns is None or effect.after_ns is None:
        return ""
    before, after = format_duration(effect.before_ns), format_duration(effect.after_ns)
    if change.habit != "connects":
        return f"On the copy, a transaction takes {before} now and {after} with the change"
    times = f"A request takes {before} over a new connection and {after} over a kept one"
    if effect.before_cpu_ns is None or effect.after_cpu_ns is None:
        return times
    now, then = format_duration(effect.before_cpu_ns), format_duration(effect.after_cpu_ns)
    return f"{times}; the server's processor time for it is {now} and {then}"


def _percent(share: float) -> str:
    if share < 0:
        return f"−{_percent(-share)}"
    if share > _WHOLE_PERCENT:
        return share_text(min(share, 1.0)).removesuffix(" %")
    return f"{share * 100:.0f}" if share >= 0.0995 else f"{share * 100:.1f}"


def gain_cell(net: Net | None) -> str:
    """Format the change of the workload's time: ``−62 % [−66, −58]``; empty if it was not measured."""
    if net is None:
        return ""
    ratio, low, high = net_ratio(net)
    return effect_with_interval(ratio, low, high)


def gain_sentence(net: Net) -> str:
    """Return the interval of a gain in a sentence: ``95 % interval: −66 % to −58 %``."""
    _, low, high = net_ratio(net)
    return f"95 % interval: {interval_ends(low, high)}"


def saved_words(net: Net) -> str:
    """Return what a change saves or costs, with its interval and its base.

    ``saves 1 240 s [1 160, 1 320] of the 1 400 s an hour that the measured statements take``. No number is
    negative: ``costs 573 s [210, 940] above the 1 400 s …``, ``saves 14 s [22 more, 51 less] of the …``.
    """
    verb, ends = ("saves", (net.low, net.high)) if net.saved >= 0 else ("costs", (-net.high, -net.low))
    if ends[0] >= 0:
        low, high = map(seconds_text, ends)
    else:
        less = "less" if verb == "saves" else "more"
        more = "more" if verb == "saves" else "less"
        low, high = f"{seconds_text(-ends[0])} {more}", f"{seconds_text(ends[1])} {less}"
    base = f"{'of' if verb == 'saves' else 'above'} the {seconds_text(net.before)} s an hour"
    return f"{verb} {seconds_text(abs(net.saved))} s [{low}, {high}] {base} that the measured statements take"


def seconds_text(seconds: float) -> str:
    """Format a number of seconds to three digits: ``1 234``, ``12.3``, ``−0.52``."""
    if not math.isfinite(seconds):
        return "∞"
    number = format_count(abs(seconds) if abs(seconds) < 100 else round(abs(seconds)))
    return f"−{number}" if seconds < 0 and float(number.replace(" ", "")) else number


def bill_span(bill: Bill) -> str:
    """Return the 95 % interval of a bill: ``1 800 s to 2 200 s``; ``over 1 800 s`` without an upper bound.

    Empty if the bill is exact.
    """
    if bill.low == bill.high:  # counted, not sampled
        return ""
    low = f"{seconds_text(bill.low)} s"
    return f"{low} to {seconds_text(bill.high)} s" if bill.high is not None else f"over {low}"


def effect_cell(effect: StatementEffect) -> str:
    """Format the effect on a statement: ``−98 % [−99, −97]``; empty if it was not measured."""
    if effect.ratio is None:
        return ""
    return effect_with_interval(effect.ratio, effect.low, effect.high)


def reason_sentence(text: str) -> str:
    """Return a reason as a sentence, with a capital letter and a full stop; empty for an empty one."""
    return join_sentences((capital(text),))


def worst_effect(change: Change) -> StatementEffect | None:
    """Return the effect on the statement that a change harms most, at the number of sessions of most harm."""
    found = [
        effect for effect in change.effects if effect.template == change.worst and effect.ratio is not None
    ]
    return max(found, key=lambda one: one.ratio or 0.0, default=None)


def effect_sentence(effect: StatementEffect) -> str:
    """Return a statement and its change: ``insert into t …: +4.1 % [+1.2, +7.0], 900 calls an hour``."""
    calls = format_count(round(effect.calls_per_hour))
    return f"{inline_statement(effect.sql)}: {effect_cell(effect)}, {calls} calls an hour"


def origin_text(effect: StatementEffect) -> str:
    """Return where the values of a statement's parameters come from."""
    return _ORIGINS.get(effect.origin, effect.origin)


def price_words(change: Change) -> str:
    """Return what a change takes: ``21.4 MB of disk, 3.2 s to execute and 15 ms to revert on the copy``."""
    parts = []
    if change.size is not None and change.size >= 0:
        parts.append(f"{format_bytes(change.size)} of disk")
    elif change.size is not None:
        parts.append(f"frees {format_bytes(-change.size)} of disk")
    times = []
    if change.build_ns is not None:
        times.append(f"{format_duration(change.build_ns)} to execute")
    if change.undo_ns is not None:
        times.append(f"{format_duration(change.undo_ns)} to revert")
    if times:
        parts.append(f"{series_words(times)} on the copy")
    return ", ".join(parts)
