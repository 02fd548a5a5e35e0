"""The answer of a cure: what to change and what it brings, and what to do next. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.database.finding import Bill, ClientHabit
from uncork.model.results.cure import (
    Change,
    ChangeState,
    CureResult,
    Net,
    StatementEffect,
    Tried,
    application_changes,
)
from uncork.model.template_words import inline_statement
from uncork.model.units import (
    count_words,
    format_bytes,
    format_count,
    format_duration,
    series_words,
    share_text,
)
from uncork.model.verdict import Verdict
from uncork.report.blocks import Step
from uncork.report.findings import (
    costly_words,
    hidden_sentences,
    hidden_steps,
    hides_findings,
    looked_at_words,
    nothing_found_words,
    server_conninfo,
)
from uncork.report.headline import capital, fitting, join_sentences
from uncork.report.words import (
    SYMBOLS,
    effect_with_interval,
    enough_budget,
    exact_share_text,
    interval_ends,
    with_option,
)

_MOST_REASONS: Final = 6
"""Findings without a cure that get a sentence each; each has its section below."""
_MOST_BY_HAND: Final = 2
_RUNS: Final = re.compile(r" --runs[ =](?:'[^']*'|\S+)")
_ONE_INDEX: Final = "Create an index on "
_CURE: Final = "uncork cure "


def answer_cure(result: CureResult) -> CureResult:
    """Return the result with its answer and reasons."""
    hidden, reasons = hidden_sentences(result.hidden), tuple(_reasons(result))
    if hidden and proven_change(result) is not None and not application_changes(result):
        return replace(result, answer=_answer(result), reasons=(join_sentences(hidden), *reasons))
    return replace(result, answer=join_sentences((*hidden, _answer(result))), reasons=reasons)


def _answer(result: CureResult) -> str:
    stopped = result.status != "complete"
    chosen = proven_change(result)
    if chosen is None:  # only the application can make what was proven
        chosen = next(iter(application_changes(result)), None)
    if chosen is not None:
        return _proven(chosen, stopped, result.all_s_per_hour)
    if not result.tried:
        if stopped:
            return "It ended before any finding was known."
        hides = hides_findings(result.hidden)
        return nothing_found_words(result.sessions, result.costliest, hidden=hides)
    measured = [tried for tried in result.tried if any(change.net is not None for change in tried.changes)]
    many, total = format_count(len(measured)), count_words(len(result.tried), "finding")
    cured = [tried for tried in measured if tried.state == "cured"]
    if stopped:
        proven = f"{format_count(len(cured))} looked cured so far" if cured else ""
        what = f"{many} of {total} {'was' if len(measured) == 1 else 'were'} tried on a copy"
        return join_sentences((f"It ended early, before a change was proven; {what}", proven))
    if not measured:
        first = result.tried[0]
        below = f"No change was tried, so none is proven: {total} below"
        return join_sentences((below, reason_sentence(first.reason)))
    tried = f"{many} of {total} {'was' if len(measured) == 1 else 'were'} tried on a copy"
    again = result.chosen
    lost = "" if again is None else f"Measured again, the best change is {again.state}: {again.reason}"
    harmful = sum(change.state == "harmful" for _, _, change in named_changes(result))
    harm = f"{count_words(harmful, 'change')} would do harm" if harmful else ""
    return join_sentences((f"No change was proven to help; {tried}", lost, harm))


def proven_change(result: CureResult) -> Change | None:
    """Return the changes that are proposed together; None unless measuring them again confirmed them."""
    chosen = result.chosen
    confirmed = chosen is not None and chosen.state == "cured" and chosen.net is not None
    return chosen if confirmed else None


def _proven(chosen: Change, stopped: bool, all_s_per_hour: float | None) -> str:
    """Return the answer with the proven change: in the headline if it fits, or else after it."""
    net = chosen.net
    if net is None:
        raise AssertionError("the caller checks this")
    text = _together(chosen.text)
    claim, short = (claim_words(chosen, net, all_s_per_hour, interval=each) for each in (True, False))
    interval = gain_sentence(net) if claim != short else ""
    rest = "" if operation_word(chosen) else _measured_words(net, all_s_per_hour)
    ended = "It ended early, so other changes were not tried" if stopped else ""
    after = join_sentences((rest, ended))
    below = (f"With the proven change, {claim}", join_sentences((text, after)))
    if ". " in text:  # the headline ends at the first full stop
        return fitting((below,))
    named = ((f"{text}: {claim}", after), (f"{text}: {short}", join_sentences((interval, after))))
    return fitting((*named, below))


def _together(text: str) -> str:
    """Return what changes do, without a full stop: ``Create indexes on a of t and on b of u``."""
    each = [word.removeprefix(_ONE_INDEX) for word in text.rstrip(". ").split(". ")]
    alike = len(each) > 1 and text.count(_ONE_INDEX) == len(each)
    return f"Create indexes {series_words([f'on {one}' for one in each])}" if alike else text.rstrip(". ")


def _reasons(result: CureResult) -> Iterator[str]:
    chosen = proven_change(result)
    if chosen is not None and chosen.net is not None:
        again = " uncork measured it again, apart from the trials that chose it." if chosen.runs else ""
        yield f"That {saved_words(chosen.net)}.{again}"
        worst = worst_effect(chosen)
        if worst is not None:
            yield f"It harms one statement most, {effect_sentence(worst)}."
        if price_words(chosen):
            yield f"The change takes {price_words(chosen)}."
        usual = [_usual(change, change.net) for change in result.usual if change.net is not None]
        if usual:
            yield " ".join(("uncork also measured what people often try first.", *usual))
    application = application_changes(result)
    for change in application:
        yield from _application(change)
    others = [
        tried
        for tried in result.tried
        if (tried.changes or tried.more_s is not None)
        and (tried.state != "cured" or chosen is None)
        and not any(change in application for change in tried.changes)
    ]
    for tried in others[:_MOST_REASONS]:
        yield f"{tried.state.capitalize()}: {_claim(tried)}. {reason_sentence(tried.reason)}"
    if len(others) > _MOST_REASONS:
        yield f"{count_words(len(others) - _MOST_REASONS, 'more finding')} below."
    yield from costly_words(result.costliest)
    if result.looked_at is not None:
        yield from looked_at_words(result.looked_at, result.sessions)
    if result.tried:
        yield f"The captured statements take {share_text(result.covered)} of the time of all statements."
    if result.copy is not None:
        yield _copy_sentence(result)


def _usual(change: Change, net: Net) -> str:
    text, size = change.text.rstrip(". "), ""
    if change.size and change.size > 0:
        size = f", for {format_bytes(change.size)} of disk"
    if net.low > 0:
        return f"{text}: the measured statements take {less_time(net)}{size}."
    return f"{text}: the time of the measured statements changes by {gain_cell(net)}{size}."


def _application(change: Change) -> Iterator[str]:
    """Yield what a change of the application saves, and what the measurement rests on."""
    if change.net is None:
        return
    saves = f"{less_time(change.net)}, which {saved_words(change.net)}"
    yield join_sentences(
        (
            f"{change.text.rstrip('. ')}: {saves}",
            operation_times(change),
            "Only the application can make this change",
            *(change.assumed[-1:] if operation_word(change) else change.assumed),
        )
    )


def _claim(tried: Tried) -> str:
    bill = tried.finding.bill
    share = "" if bill is None else f" ({share_text(bill.share)} of the busy time)"
    return f"{tried.finding.headline}{share}"


def _copy_sentence(result: CureResult) -> str:
    copy = result.copy
    if copy is None:
        return ""
    if not copy.sampled:
        return "Measured on a copy with all rows of its tables."
    partial = [table for table in copy.tables if not table.whole]
    many = f"{format_count(len(partial))} of {count_words(len(copy.tables), 'table')}"
    has = "has" if len(partial) == 1 else "have"
    return f"Measured on a sample: {many} {has} only a part of the rows. On whole tables, gains can differ."


def handed_path(result: CureResult, name: str) -> str:
    """Return the path of a file that was handed over, as typed from here; empty if there is none."""
    path = next((handed.path for handed in result.handed if handed.path.rpartition("/")[2] == name), "")
    return f"{result.folder.rstrip('/')}/{path}" if path and result.folder else path


def cure_steps(result: CureResult) -> Iterator[Step]:
    """Yield the next steps, most urgent first: apply, revert, compare; or measure more."""
    chosen = proven_change(result)
    yield from hidden_steps(result.hidden)
    if chosen is not None:
        up, down = (handed_path(result, name) for name in ("up.sql", "down.sql"))
        server = shlex.quote(server_conninfo(result.server))
        if up:
            yield Step("Read up.sql, then run it on your server (uncork never does):", _psql(up, server))
        else:
            yield Step(f"{chosen.text.rstrip('. ')}.", chosen.sql)
        if down:
            yield Step("If anything becomes slower, revert it:", _psql(down, server))
        yield from _compare(result)
    for change in application_changes(result):
        place = f"{result.folder.rstrip('/')}/handed/application/{change.name}/README.md"
        what = "What to do" if operation_word(change) else "The statements before and after"
        yield Step(f"Change the application: {change.text} {what}:", f"cat {shlex.quote(place)}")
    if chosen is None and application_changes(result):
        yield from _compare(result)
    if "--dry-run" in result.reproduce:
        yield Step("Try the changes on a copy:", _again(result).replace(" --dry-run", ""))
        return
    if result.status != "complete" and result.tried:
        yield Step("Try them again, with the same watch of the server:", _again(result))
        return
    states = [change.state for _, _, change in named_changes(result)]
    states += [tried.state for tried in result.tried if tried.changes or tried.more_s is not None]
    if "unclear" in states or "not tried" in states:
        yield _more_time(result, "decide the unclear changes" if "unclear" in states else "try the rest")
    by_hand = [tried for tried in result.tried if not tried.changes and tried.more_s is None]
    for tried in by_hand[:_MOST_BY_HAND]:
        yield _unproven(tried)
    if not result.tried:
        again = with_option(result.reproduce, "--for 10min")
        yield Step("Run it again while the server is slow, or for longer:", again)
    if result.watched and chosen is None and result.tried:
        yield Step("See where the time goes:", f"uncork report {shlex.quote(result.watched)}")


def _more_time(result: CureResult, what: str) -> Step:
    """Return the step that gives a cure enough time, as far as that can be said.

    The copy is made again, and what helps is measured again for as long as it is tried.
    """
    more = [tried.more_s for tried in result.tried if tried.more_s is not None]
    copying_s = 0.0 if result.copy is None else result.copy.seconds
    budget = enough_budget(2 * sum(more) + copying_s) if more else None
    enough = "" if budget is None else ", for which that budget is probably enough"
    again = with_option(_again(result), f"--budget {budget or '60min'}")
    if result.id and again.startswith(_CURE):  # a demo's database is gone
        again = with_option(again, f"--resume {shlex.quote(result.id)}")
    return Step(f"Give uncork more time to {what}{enough}:", again)


def _unproven(tried: Tried) -> Step:
    why = reason_sentence(tried.reason)
    if tried.state == "unclear":
        return Step(
            f"Name a whole copy, such as a restored backup, with --copy, to try {_claim(tried)}. {why}"
        )
    change = tried.finding.candidates[0].text if tried.finding.candidates else ""
    return Step(" ".join(filter(None, (f"Not proven on a copy: {_claim(tried)}.", change, why))))


def _compare(result: CureResult) -> Iterator[Step]:
    if result.watched and result.id:
        server = shlex.quote(server_conninfo(result.server))
        runs = _RUNS.search(result.reproduce)
        command = f"uncork profile db {server} --for 5min --since {shlex.quote(result.id)}"
        yield Step(
            "Afterwards, watch the server under its usual load, and compare the changed statements:",
            f"{command}{'' if runs is None else runs[0]}",
        )


def _psql(path: str, server: str) -> str:
    return f"psql -v ON_ERROR_STOP=1 -f {shlex.quote(path)} -d {server}"


def _again(result: CureResult) -> str:
    """Return the command that repeats the cure with the stored watch, without watching again."""
    command = result.reproduce
    if not result.watched or result.watched in command or not command.startswith(_CURE):
        return command
    return f"{_CURE}{shlex.quote(result.watched)} {command.removeprefix(_CURE)}"


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
    return f"{SYMBOLS[VERDICTS[state]]} {state}"


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
    """Return the workload's time with a change as a ratio, and its interval: a low of None may be zero."""
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


def _measured_words(net: Net, all_s_per_hour: float | None) -> str:
    if all_s_per_hour is None or net.before >= _ALL * all_s_per_hour:
        return ""
    part = exact_share_text(net.before / all_s_per_hour)
    return (
        f"uncork measured statements with {part} of the time of all: they take {less_time(net)}; what the "
        "change does to the others is unknown"
    )


def operation_times(change: Change) -> str:
    """Return the times of a request or a transaction on the copy; empty for other changes."""
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
        return exact_share_text(min(share, 1.0)).removesuffix(" %")
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
    """Return the interval of a bill: ``1 800 s to 2 200 s``, ``over 1 800 s``; empty if it is exact."""
    if bill.low == bill.high:  # counted, not sampled
        return ""
    low = f"{seconds_text(bill.low)} s"
    return f"{low} to {seconds_text(bill.high)} s" if bill.high is not None else f"over {low}"


def effect_cell(effect: StatementEffect | None) -> str:
    """Format the effect on a statement: ``−98 % [−99, −97]``; empty if it was not measured."""
    if effect is None or effect.ratio is None:
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
