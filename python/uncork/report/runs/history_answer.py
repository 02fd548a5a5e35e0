"""The answer of a history: when a figure changed last, how sure that is, and its doubts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.history import History, HistoryChange
from uncork.report.figures import figure_value
from uncork.report.words import count_words, effect_text
from uncork.stats.steps import LEAST_POINTS, LEAST_STRETCH

__all__ = [
    "answer_history",
    "chance_words",
    "change_words",
    "day",
]

_SURE: Final = 1e-4


def _compose_history_answer(history: History) -> str:
    """Return what became of the figure in one sentence."""
    name = f"{history.metric} of {history.subject}" if history.subject else history.metric
    over = f"over {count_words(len(history.runs), 'run')}"
    if len(history.runs) > 1:
        over += f" from {day(history.runs[0].started_at)} to {day(history.runs[-1].started_at)}"
    if len(history.runs) < LEAST_POINTS:
        return f"{name} {over}: too few to tell a change from noise, {LEAST_POINTS} are needed."
    known = [one for one in history.changes if not one.suspected]
    early = "; the last runs may be another" if len(known) < len(history.changes) else ""
    if not known:
        only = "; the last runs may be one" if early else ""
        return f"{name} {over}: no change beyond noise{only}."
    last = known[-1]
    many = f"{count_words(len(known), 'change')}, the last" if len(known) > 1 else "one change,"
    return f"{name} {over}: {many} {change_words(history, last)}{early}."


def _compose_history_warnings(history: History) -> tuple[str, ...]:
    """Return how sure changes are, and what would make an expert hesitate, one sentence each."""
    return tuple(_warnings(history))


def change_words(history: History, change: HistoryChange) -> str:
    """Say a change: by how much, since which run and commit."""
    commit = f", commit {change.commit[:12]}" if change.commit else ""
    return (
        f"{_effect(history, change)} ({change.verdict.value}) since {change.since} of "
        f"{day(change.started_at)}{commit}"
    )


def chance_words(chance: float) -> str:
    """Say how likely noise alone shows a change as clear."""
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
    if any(not one.suspected for one in history.changes):
        yield (
            f"Of series like this one that are pure noise, at most {100 * history.false_alarms:g} % show any "
            "change; each change tells the chance that noise alone shows one as clear."
        )
    for one in history.changes:
        if one.suspected:
            yield (
                f"{count_words(one.runs_after, 'last run')} from {one.since} on "
                f"({_effect(history, one)}): a level must last {LEAST_STRETCH} runs, so that this may be an "
                "outlier; run it again."
            )
    if history.widened > 1.0:
        yield (
            f"Runs resemble their neighbours (tests were widened {history.widened:.2g} times): a machine "
            "that drifts has levels of its own, and false alarms are more frequent than stated."
        )
    if history.older:
        left = count_words(history.older, "older run")
        yield f"Only the newest {len(history.runs)} runs are shown: {left} left out."
    if history.broken:
        yield (
            f"{count_words(history.broken, 'run')} left out: a guard found "
            f"{'it' if history.broken == 1 else 'them'} broken (uncork history --all has them)."
        )
    if history.left_out:
        yield f"{count_words(history.left_out, 'run')} did not end, or cannot be read: left out."


def answer_history(result: History) -> History:
    """Return the history with its answer and warnings."""
    result = replace(result, answer=_compose_history_answer(result))
    return replace(result, warnings=_compose_history_warnings(result))
