"""The newest run of a history beside the runs before it: its sentences, its table, and JUnit XML. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.guard import GateOutcome
from uncork.model.results.history import History, NewestRun, history_status
from uncork.model.results.run_comparison import RunVerdict
from uncork.model.units import count_words, format_percent
from uncork.report.blocks import Section, Tone, Value
from uncork.report.cells import facts_table
from uncork.report.figures import figure_value
from uncork.report.headline import capital
from uncork.report.words import effect_text, interval_ends, sentence
from uncork.report.write.junit import HEAD, attributes, element

_TONES: Final[dict[GateOutcome, Tone]] = {GateOutcome.BROKEN: "slower", GateOutcome.UNDECIDED: "unsure"}
_WORDS: Final = {
    GateOutcome.KEPT: "not worse",
    GateOutcome.BROKEN: "worse",
    GateOutcome.UNDECIDED: "not decided",
}
_CHANGES: Final = (RunVerdict.FASTER, RunVerdict.SLOWER, RunVerdict.MORE, RunVerdict.LESS)


def newest_sentence(history: History, newest: NewestRun) -> str:
    """Return whether the newest run is worse than those before it, by how much, and how certain that is."""
    name = f"{history.metric} of {history.subject}" if history.subject else history.metric
    window = f"the {count_words(newest.runs, 'run')} before it"
    if newest.runs < 2:
        window = "the run before it" if newest.runs else "earlier runs"
    better = newest.outcome is GateOutcome.KEPT and newest.verdict in _CHANGES
    is_so = "better than" if better else f"{_WORDS[newest.outcome]} than"
    begin = f"{newest.id} is {is_so} {window}"
    if newest.outcome is GateOutcome.UNDECIDED:
        begin = f"It is not decided whether {newest.id} is worse than {window}"
    reason = f"; {newest.reason}" if newest.outcome is GateOutcome.UNDECIDED else ""
    return f"{begin}: {name} {_figures(history, newest)}{reason}."


def _figures(history: History, newest: NewestRun) -> str:
    """Return both values, the change, and its interval."""
    value = figure_value(newest.value, history.unit)
    if newest.before is None:
        return f"is {value}"
    values = f"{figure_value(newest.before, history.unit)} → {value}"
    if newest.ratio is None or history.unit == "share":
        return values
    change = effect_text(newest.ratio)
    if newest.verdict in _CHANGES and change.endswith("%"):
        change = f"is {change.lstrip('+−')} {newest.verdict.value}"
        values = f"{change}, {values}"
    else:
        values = f"{values}, {change}"
    if newest.low is None:
        return values
    percent = f"{100 * newest.confidence:g} %"
    return f"{values} ({percent} interval: {interval_ends(newest.low, newest.high)})"


def newest_warnings(newest: NewestRun) -> Iterator[str]:
    """Yield what makes the judgement doubtful, one sentence each."""
    if 0 < newest.runs < newest.window:
        there = "is" if newest.runs == 1 else "are"
        yield (
            f"There {there} only {count_words(newest.runs, 'run')} before the newest, not {newest.window}."
        )
    if newest.changed_at is not None:
        yield (
            f"The level changed at {newest.changed_at}, within the runs that the newest is judged by, so "
            "they differ more. A smaller --window or a later --since leaves out the runs before that change."
        )
    yield from (capital(sentence(warning)) for warning in newest.warnings)


def newest_section(history: History, newest: NewestRun) -> Section:
    """Return the judgement as a section."""
    rows = [
        *(("run", newest.id), ("judged against", f"{count_words(newest.runs, 'run')} before it")),
        ("before", "–" if newest.before is None else figure_value(newest.before, history.unit)),
        ("newest", figure_value(newest.value, history.unit)),
    ]
    if newest.ratio is not None:
        of = "change of odds" if history.unit == "share" else "change"
        rows.append((of, effect_text(newest.ratio)))
    if newest.low is not None:
        rows.append((f"{100 * newest.confidence:g} % interval", interval_ends(newest.low, newest.high)))
    matters = f"{100 * newest.practical:g} percentage points"
    if history.unit != "share":
        matters = format_percent(1.0 + newest.practical).lstrip("+")
    rows += [("smallest change that matters", matters), ("reason", newest.reason)]
    tone: Tone = _TONES.get(newest.outcome, "plain")
    judgement = ("judgement", Value(_WORDS[newest.outcome], tone=tone))
    return Section(
        "newest", "The newest run", (facts_table("The newest run", [judgement, *rows], value="value"),)
    )


def history_junit(history: History, newest: NewestRun) -> str:
    """Return the judgement as JUnit XML: a suite with one test case.

    As in the XML of a guard, a worse run is a *failure*, and an undecided one is *skipped*.
    """
    subject = f" of {history.subject}" if history.subject else ""
    name = f"uncork history: {history.metric}{subject}"
    broken, undecided = (newest.outcome is outcome for outcome in (GateOutcome.BROKEN, GateOutcome.UNDECIDED))
    counts = {"tests": "1", "failures": str(int(broken)), "errors": "0", "skipped": str(int(undecided))}
    said = newest_sentence(history, newest)
    facts = {
        "run": newest.id,
        "commit": history.runs[-1].commit or "",
        "branch": history.branch,
        "since": history.since,
        "window": str(newest.window),
        "runs": str(newest.runs),
        "status": str(history_status(history)),
    }
    case = {"name": f"{history.metric}{subject} is not worse", "classname": name.replace(".", "_")}
    suite = {"name": name, **counts, "time": "0", "timestamp": history.runs[-1].started_at[:19]}
    lines = [
        HEAD,
        f"<testsuites{attributes({'name': name, **counts, 'time': '0'})}>",
        f"<testsuite{attributes(suite)}>",
        "<properties>",
        *(f"<property{attributes({'name': key, 'value': value})}/>" for key, value in facts.items() if value),
        "</properties>",
        f"<testcase{attributes(case)}>",
        *([element("failure", said, {"type": "worse", "message": said})] if broken else ()),
        *(
            [element("skipped", "", {"type": "not decided", "message": f"not decided: {said}"})]
            if undecided
            else ()
        ),
        "</testcase>",
        element("system-out", "\n".join([history.answer, *history.warnings])),
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"
