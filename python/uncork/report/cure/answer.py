"""The answer of a cure: what to change and what it brings, and what to do next. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.cure import Change, CureResult, Net, Tried, application_changes
from uncork.model.units import count_words, format_bytes, format_count, series_words, share_text
from uncork.report.blocks import Step
from uncork.report.cure.words import (
    claim_words,
    effect_sentence,
    gain_cell,
    gain_sentence,
    less_time,
    measured_words,
    named_changes,
    operation_times,
    operation_word,
    price_words,
    reason_sentence,
    saved_words,
    worst_effect,
)
from uncork.report.findings import costly_words, looked_at_words, nothing_found_words, server_conninfo
from uncork.report.headline import fitting, join_sentences
from uncork.report.hidden_work import hidden_sentences, hidden_steps, hides_findings

_MOST_REASONS: Final = 6
"""Findings without a cure that get a sentence each; each has its section below."""
_MOST_BY_HAND: Final = 2
_RUNS: Final = re.compile(r" --runs[ =](?:'[^']*'|\S+)")
_ONE_INDEX: Final = "Create an index on "


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
    return join_sentences((f"No change was proven to help; {tried}", lost, _harm(result)))


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
    rest = "" if operation_word(chosen) else measured_words(net, all_s_per_hour)
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


def _harm(result: CureResult) -> str:
    """Return how many changes would do harm; empty if none would."""
    harmful = [change for _, _, change in named_changes(result) if change.state == "harmful"]
    return f"{count_words(len(harmful), 'change')} would do harm" if harmful else ""


def _reasons(result: CureResult) -> Iterator[str]:
    chosen = proven_change(result)
    if chosen is not None and chosen.net is not None:
        yield f"That {saved_words(chosen.net)}. {_confirmed(chosen)}".strip()
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
        if tried.changes
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
    """Return what a usual remedy brings, and the disk that it takes, as a sentence."""
    text, size = change.text.rstrip(". "), ""
    if change.size and change.size > 0:
        size = f", for {format_bytes(change.size)} of disk"
    if net.low > 0:
        return f"{text}: the measured statements take {less_time(net)}{size}."
    return f"{text}: the time of the measured statements changes by {gain_cell(net)}{size}."


def _application(change: Change) -> Iterator[str]:
    """Yield what a change of the application saves, and what the measurement rests on.

    Of requests and transactions, the last sentence suffices: what was left out.
    """
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


def _confirmed(chosen: Change) -> str:
    return "uncork measured it again, apart from the trials that chose it." if chosen.runs else ""


def _claim(tried: Tried) -> str:
    """Return what is wrong, and its share of the time: ``orders is scanned (70 % of the busy time)``."""
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


# ---- what to do next ----


def handed_path(result: CureResult, name: str) -> str:
    """Return the path of a file that was handed over, as typed from here; empty if there is none."""
    path = next((handed.path for handed in result.handed if handed.path.rpartition("/")[2] == name), "")
    return f"{result.folder.rstrip('/')}/{path}" if path and result.folder else path


def cure_steps(result: CureResult) -> Iterator[Step]:
    """Yield the next steps, most urgent first: apply, revert, compare; or measure more."""
    chosen = proven_change(result)
    yield from hidden_steps(result.hidden)
    if chosen is not None:
        yield from _apply(result, chosen)
    for change in application_changes(result):
        place = f"{result.folder.rstrip('/')}/handed/application/{change.name}/README.md"
        what = "What to do" if operation_word(change) else "The statements before and after"
        yield Step(
            f"Change the application: {change.text} {what}:",
            f"cat {shlex.quote(place)}",
        )
    if chosen is None and application_changes(result):
        yield from _compare(result)
    if "--dry-run" in result.reproduce:
        yield Step("Try the changes on a copy:", _again(result).replace(" --dry-run", ""))
        return
    if result.status != "complete" and result.tried:
        yield Step("Try them again, with the same watch of the server:", _again(result))
        return
    states = [change.state for _, _, change in named_changes(result)]
    states += [tried.state for tried in result.tried if tried.changes]
    unclear = "unclear" in states
    if unclear or "not tried" in states:
        what = "decide the unclear changes" if unclear else "try the rest"
        again = _with(_again(result), "--budget 60min")
        again = again if not result.id else _with(again, f"--resume {shlex.quote(result.id)}")
        yield Step(f"Give uncork more time to {what}:", again)
    for tried in [tried for tried in result.tried if not tried.changes][:_MOST_BY_HAND]:
        yield _unproven(tried)
    if not result.tried:
        again = _with(result.reproduce, "--for 10min")
        yield Step("Run it again while the server is slow, or for longer:", again)
    if result.watched and chosen is None and result.tried:
        yield Step("See where the time goes:", f"uncork report {shlex.quote(result.watched)}")


def _unproven(tried: Tried) -> Step:
    """Return what to do about a finding that this copy could not prove."""
    why = reason_sentence(tried.reason)
    if tried.state == "unclear":
        return Step(
            f"Name a whole copy, such as a restored backup, with --copy, to try {_claim(tried)}. {why}"
        )
    change = tried.finding.candidates[0].text if tried.finding.candidates else ""
    return Step(" ".join(filter(None, (f"Not proven on a copy: {_claim(tried)}.", change, why))))


def _apply(result: CureResult, chosen: Change) -> Iterator[Step]:
    up, down = (handed_path(result, name) for name in ("up.sql", "down.sql"))
    server = shlex.quote(server_conninfo(result.server))
    if up:
        yield Step("Read up.sql, then run it on your server (uncork never does):", _psql(up, server))
    else:
        yield Step(f"{chosen.text.rstrip('. ')}.", chosen.sql)
    if down:
        yield Step("If anything becomes slower, revert it:", _psql(down, server))
    yield from _compare(result)


def _compare(result: CureResult) -> Iterator[Step]:
    """Yield how to compare the changed statements on the server after the change with those before."""
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
    verb, command = "uncork cure ", result.reproduce
    if not result.watched or result.watched in command or not command.startswith(verb):
        return command
    return f"{verb}{shlex.quote(result.watched)} {command.removeprefix(verb)}"


def _with(command: str, option: str) -> str:
    """Return a command with one option added or replaced."""
    name = option.partition(" ")[0]
    return f"{re.sub(rf' {name}[ =][^ ]+', '', command)} {option}"
