"""The answer of a history: when a metric last changed, how sure that is, and its warnings. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.history import History, HistoryChange
from uncork.model.results.run_comparison import RunVerdict
from uncork.report.figures import figure_value
from uncork.report.headline import capital, join_sentences
from uncork.report.runs.newest import newest_sentence, newest_warnings
from uncork.report.words import count_words, effect_text
from uncork.stats.steps import LEAST_POINTS, LEAST_STRETCH

_SURE: Final = 1e-4


def _compose_history_answer(history: History) -> str:
    """Return whether the newest run is worse, if asked, and how the metric changed over the runs."""
    changed = _change_answer(history)
    if history.newest is None:
        return changed
    return f"{newest_sentence(history, history.newest)} Change points of the whole series: {changed}"


def _change_answer(history: History) -> str:
    """Return what changed first, then since when and how surely."""
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
        f"{commit}. The chance that noise alone shows such a change is {chance_words(change.chance)}."
    )


def chance_words(chance: float) -> str:
    """Format the probability that noise alone shows such a change."""
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
    """Yield how certain the changes are, and what makes them doubtful, one sentence each."""
    if history.newest is not None:
        yield from newest_warnings(history.newest)
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
