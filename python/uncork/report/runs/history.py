"""Reports on the history of a metric: its answer, its newest run, the document, the terminal, JUnit XML."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from rich.console import Console

from uncork.model.results.guard import GateOutcome
from uncork.model.results.history import History, HistoryChange, HistoryRun, NewestRun, history_status
from uncork.model.results.run_comparison import RunVerdict
from uncork.model.units import count_words, format_percent
from uncork.report.blocks import (
    Bullets,
    Document,
    Legend,
    Line,
    LineChart,
    Paragraph,
    Section,
    Step,
    Table,
    Tone,
    Value,
)
from uncork.report.cells import column, facts_table, header, number, table_of
from uncork.report.draw.spark import spark_text
from uncork.report.headline import capital, join_sentences
from uncork.report.words import effect_text, figure_value, interval_ends, sentence
from uncork.report.write.junit import attributes, element, suite_xml
from uncork.report.write.terminal_text import TerminalPart, write_lines, write_list, write_report
from uncork.stats.steps import LEAST_POINTS, LEAST_STRETCH

_MEASURED: Final = "measured"
_LEVEL: Final = "level"
_LAST: Final = 12
"""Newest runs that the terminal lists."""
_TONES: Final[dict[RunVerdict, Tone]] = {RunVerdict.FASTER: "faster", RunVerdict.SLOWER: "slower"}
_DIFFERENCES: Final = 4
_FLOOR: Final = 0.15
"""Height of the smallest bar in a row of bars, as a share of the tallest."""


def render_history_terminal(history: History, console: Console) -> None:
    """Print a history: the answer, its warnings, all runs as bars, the changes, and the newest runs."""
    write_report(console, build_history_document(history), _terminal_parts(history), question=False)


def _terminal_parts(history: History) -> Iterator[TerminalPart]:
    if len(history.runs) > 1:
        yield partial(_write_bars, history)
    changes = [_change_item(history, change) for change in history.changes]
    yield partial(write_list, title="Changes", items=changes)
    if history.runs:
        yield _runs_table(history, history.runs[-_LAST:])


def build_history_document(history: History) -> Document:
    """Return the report on a history."""
    return Document(
        title=f"history of {history.metric}",
        question=" · ".join(filter(None, (history.question, history.subject))),
        answer=history.answer,
        reasons=history.warnings,
        steps=tuple(_steps(history)),
        facts=tuple(_facts(history)),
        variants=(_MEASURED, _LEVEL),
        sections=tuple(_sections(history)),
        version=history.uncork_version,
    )


def _facts(history: History) -> Iterator[tuple[str, str]]:
    yield "metric", history.metric
    yield "runs", str(len(history.runs))
    yield "changes", str(sum(not change.suspected for change in history.changes))
    if history.runs:
        yield "from", day(history.runs[0].started_at)
        yield "to", day(history.runs[-1].started_at)
    if history.branch:
        yield "branch", history.branch


def _steps(history: History) -> Iterator[Step]:
    if history.newest is not None and history.newest.outcome is GateOutcome.BROKEN:
        before, newest = history.runs[-2].id, history.newest.id
        yield Step(
            "See what else differs from the run before it:", shlex.join(["uncork", "compare", before, newest])
        )
    if not history.changes:
        return
    last = history.changes[-1]
    if last.suspected:
        yield Step("See the first run of the possible change:", f"uncork report {shlex.quote(last.since)}")
        return
    yield Step(
        "See what else differs between the last run before the change and the first run after it:",
        shlex.join(["uncork", "compare", last.last, last.since]),
    )
    if last.commit and last.commit_before and last.commit != last.commit_before:
        old, new = (commit.removesuffix("-dirty")[:12] for commit in (last.commit_before, last.commit))
        yield Step("See the commits in between:", shlex.join(["git", "log", "--oneline", f"{old}..{new}"]))


def _sections(history: History) -> Iterator[Section]:
    if history.newest is not None:
        yield _newest_section(history, history.newest)
    chart = _chart(history)
    if chart is not None:
        yield Section("chart", "Over time", (Legend((_MEASURED, _LEVEL)), chart))
    if history.changes:
        items = Bullets(tuple(f"Run {change.number}: {_differences(change)}." for change in history.changes))
        differ = Paragraph(
            "Known differences between the last run before a change and the first run after it:"
        )
        yield Section("changes", "Changes", (_changes_table(history), differ, items))
    yield Section("runs", "The runs", (_runs_table(history, history.runs),))


def _chart(history: History) -> LineChart | None:
    if len(history.runs) < 2:
        return None
    values, levels = (
        tuple((float(run.number), getattr(run, name)) for run in history.runs) for name in ("value", "level")
    )
    return LineChart(
        title=f"{history.metric} by run",
        description=history.answer,
        axis="round",
        x_title="run, oldest first",
        y_title=history.metric,
        unit="ns" if history.unit == "ns" else "number",
        lines=(Line(_MEASURED, values), Line(_LEVEL, levels, style="again")),
        variants=(_MEASURED, _LEVEL),
        note="dotted: the mean between changes",
        wide=True,
        from_zero=min(run.value for run in history.runs) <= 0,
    )


def _change_item(history: History, change: HistoryChange) -> str:
    """Return a change as a sentence, for the terminal, where a table would be too wide."""
    before, after = (figure_value(value, history.unit) for value in (change.before, change.after))
    effect = "" if change.ratio is None else f"{effect_text(change.ratio)}, "
    chance = "not known yet" if change.suspected else _chance_words(change.chance)
    commits = f", commit {_commits(change)}" if change.commit else ""
    return (
        f"run {change.number}, {change.since} at {day(change.started_at)}{commits}: {effect}{before} → "
        f"{after}; {change.runs_before} runs before, {change.runs_after} since; chance by noise alone: "
        f"{chance}; other differences: {_differences(change)}"
    )


def _changes_table(history: History) -> Table:
    return table_of(
        "Changes",
        history.changes,
        header("since", lambda change: Value(change.since, note=day(change.started_at))),
        number("run", lambda change: str(change.number)),
        number("before", lambda change: figure_value(change.before, history.unit)),
        number("after", lambda change: figure_value(change.after, history.unit)),
        number("change", _ratio),
        number("runs before, since", lambda change: f"{change.runs_before}, {change.runs_after}"),
        column(
            "chance by noise alone",
            lambda change: "not known yet" if change.suspected else _chance_words(change.chance),
        ),
        column("commit", lambda change: Value(_commits(change), code=True)),
    )


def _ratio(change: HistoryChange) -> Value:
    text = "" if change.ratio is None else effect_text(change.ratio)
    return Value(text, tone=_TONES.get(change.verdict, "plain"))


def _commits(change: HistoryChange) -> str:
    if change.commit is None:
        return ""
    if change.commit_before in (None, change.commit):
        return change.commit[:8]
    return f"{(change.commit_before or '')[:8]}..{change.commit[:8]}"


def _differences(change: HistoryChange) -> str:
    found = [difference for difference in change.differences if difference.section != "commit"]
    words = [
        f"{difference.name or difference.section}: {difference.before or '–'} → {difference.after or '–'}"
        for difference in found
    ]
    more = f"; and {len(words) - _DIFFERENCES} more" if len(words) > _DIFFERENCES else ""
    return "; ".join(words[:_DIFFERENCES]) + more if words else "nothing known"


def _runs_table(history: History, runs: Sequence[HistoryRun]) -> Table:
    changed = {change.number: change for change in history.changes}
    left = len(history.runs) - len(runs)
    caption = f"The newest {len(runs)} of {len(history.runs)} runs" if left else "The runs"
    commits = any(run.commit for run in runs)
    proven = any(run.note for run in runs)
    return table_of(
        caption,
        runs,
        number("", lambda run: str(run.number)),
        header("run", lambda run: Value(run.id, note=", ".join(run.names))),
        column("started", lambda run: day(run.started_at)),
        number(history.metric, lambda run: figure_value(run.value, history.unit)),
        number("level", lambda run: figure_value(run.level, history.unit)),
        column("commit", lambda run: Value((run.commit or "")[:8], code=True), when=commits),
        column("", lambda run: _mark(changed.get(run.number)), when=changed),
        column("proven", lambda run: Value(run.note or "–", code=bool(run.note)), when=proven),
    )


def _mark(change: HistoryChange | None) -> Value:
    if change is None:
        return Value("")
    if change.suspected:
        return Value("← possibly", tone="unsure")
    return Value(f"← {change.verdict.value}", tone=_TONES.get(change.verdict, "plain"))


def _write_bars(history: History, console: Console) -> None:
    """Print the newest runs that fit as bars, changes marked below, and the range of values."""
    shown = history.runs[-console.width :]
    low, high = min(run.value for run in shown), max(run.value for run in shown)
    span = high - low
    heights = [_FLOOR + (1 - _FLOOR) * ((run.value - low) / span if span else 1.0) for run in shown]
    changed = {change.number: "?" if change.suspected else "^" for change in history.changes}
    marks = "".join(changed.get(run.number, " ") for run in shown).rstrip()
    ends = f"from {figure_value(low, history.unit)} to {figure_value(high, history.unit)}"
    write_lines(console, [spark_text(heights), *([marks] if marks else []), ends])
    console.print()


_SURE: Final = 1e-4


def _compose_history_answer(history: History) -> str:
    changed = _change_answer(history)
    if history.newest is None:
        return changed
    return f"{_newest_sentence(history, history.newest)} Change points of the whole series: {changed}"


def _change_answer(history: History) -> str:
    name = f"{history.metric} of {history.subject}" if history.subject else history.metric
    over = f"over {count_words(len(history.runs), 'run')}"
    if len(history.runs) > 1:
        over += f" from {day(history.runs[0].started_at)} to {day(history.runs[-1].started_at)}"
    if len(history.runs) < LEAST_POINTS:
        there = "There is" if len(history.runs) == 1 else "There are"
        few = f"{name} has too few runs to tell a change from noise"
        needed = f"{there} {count_words(len(history.runs), 'run')}; {LEAST_POINTS} are needed"
        return join_sentences((few, needed))
    known = [change for change in history.changes if not change.suspected]
    suspected = len(known) < len(history.changes)
    if not known:
        only = "the last runs may be a change" if suspected else ""
        return join_sentences((f"{name} did not change beyond noise {over}", capital(only)))
    many = "the only change" if len(known) == 1 else f"the last of {len(known)} changes"
    early = " The last runs may be another change." if suspected else ""
    return f"{name} {change_words(history, known[-1])} This is {many} {over}.{early}"


def change_words(history: History, change: HistoryChange) -> str:
    """Return a change in two sentences: its size and first run; its time, and how likely noise shows it."""
    commit = f" with commit {change.commit[:12]}" if change.commit else ""
    before, after = (figure_value(value, history.unit) for value in (change.before, change.after))
    effect = "" if change.ratio is None else effect_text(change.ratio)
    if change.verdict in (RunVerdict.FASTER, RunVerdict.SLOWER) and effect.endswith("%"):
        became = f"became {effect.lstrip('+−')} {change.verdict.value}"
    else:
        became = f"changed{f' by {effect}' if effect else ''} ({change.verdict.value})"
    return (
        f"{became}, {before} → {after}, since {change.since}. That run started {day(change.started_at)}"
        f"{commit}. The chance that noise alone shows such a change is {_chance_words(change.chance)}."
    )


def _chance_words(chance: float) -> str:
    if chance < _SURE:
        return "under 0.01 %"
    return f"{100 * chance:.2g} %"


def day(started_at: str) -> str:
    """Return the day and the minute of a time in ISO form."""
    return started_at[:16].replace("T", " ")


def _effect(history: History, change: HistoryChange) -> str:
    before, after = (figure_value(value, history.unit) for value in (change.before, change.after))
    effect = "" if change.ratio is None else f"{effect_text(change.ratio)}, "
    return f"{effect}{before} → {after}"


def _warnings(history: History) -> Iterator[str]:
    if history.newest is not None:
        yield from _newest_warnings(history.newest)
    if any(not change.suspected for change in history.changes):
        yield (
            f"Of series that are pure noise, at most {100 * history.false_alarms:g} % show any change; each "
            "change below states the chance that noise alone shows it."
        )
    for change in history.changes:
        if change.suspected:
            yield (
                f"{count_words(change.runs_after, 'last run')} from {change.since} on "
                f"({_effect(history, change)}) may be an outlier: a level must last {LEAST_STRETCH} runs. "
                "Repeat the run."
            )
    if history.inflation > 1.0:
        yield (
            f"Neighbouring runs are correlated (tests were inflated {history.inflation:.2g} times): a "
            "machine that drifts changes level by itself, so false alarms are more frequent than stated."
        )
    if history.older:
        left = count_words(history.older, "older run")
        yield f"Only the newest {len(history.runs)} runs are shown: {left} left out."
    if history.broken:
        yield (
            f"{count_words(history.broken, 'run')} left out: a guard found "
            f"{'it' if history.broken == 1 else 'them'} broken (uncork history --all includes them)."
        )
    if history.without_branch:
        yield (
            f"{count_words(history.without_branch, 'run')} left out: no branch is recorded with "
            f"{'it' if history.without_branch == 1 else 'them'}, and git does not find the commit on "
            f'"{history.branch}" here.'
        )
    if history.left_out:
        yield f"{count_words(history.left_out, 'run')} left out: unfinished or unreadable."


def answer_history(result: History) -> History:
    """Return the history with its answer and warnings."""
    result = replace(result, answer=_compose_history_answer(result))
    return replace(result, warnings=tuple(_warnings(result)))


_OUTCOME_TONES: Final[dict[GateOutcome, Tone]] = {
    GateOutcome.BROKEN: "slower",
    GateOutcome.UNDECIDED: "unsure",
}
_WORDS: Final = {
    GateOutcome.KEPT: "not worse",
    GateOutcome.BROKEN: "worse",
    GateOutcome.UNDECIDED: "not decided",
}
_CHANGES: Final = (RunVerdict.FASTER, RunVerdict.SLOWER, RunVerdict.MORE, RunVerdict.LESS)


def _newest_sentence(history: History, newest: NewestRun) -> str:
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


def _newest_warnings(newest: NewestRun) -> Iterator[str]:
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


def _newest_section(history: History, newest: NewestRun) -> Section:
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
    tone: Tone = _OUTCOME_TONES.get(newest.outcome, "plain")
    judgement = ("judgement", Value(_WORDS[newest.outcome], tone=tone))
    return Section(
        "newest", "The newest run", (facts_table("The newest run", [judgement, *rows], value="value"),)
    )


def history_junit(history: History, newest: NewestRun) -> str:
    """Return the judgement as JUnit XML: a worse run is a *failure*, an undecided one is *skipped*."""
    subject = f" of {history.subject}" if history.subject else ""
    name = f"uncork history: {history.metric}{subject}"
    broken, undecided = (newest.outcome is outcome for outcome in (GateOutcome.BROKEN, GateOutcome.UNDECIDED))
    counts = {"tests": "1", "failures": str(int(broken)), "errors": "0", "skipped": str(int(undecided))}
    said = _newest_sentence(history, newest)
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
    cases = [f"<testcase{attributes(case)}>"]
    if broken:
        cases.append(element("failure", said, {"type": "worse", "message": said}))
    if undecided:
        cases.append(element("skipped", "", {"type": "not decided", "message": f"not decided: {said}"}))
    cases.append("</testcase>")
    known = [(key, value) for key, value in facts.items() if value]
    output = "\n".join([history.answer, *history.warnings])
    return suite_xml({"name": name, **counts, "time": "0"}, suite, known, cases, output)
