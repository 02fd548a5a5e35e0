"""One metric over comparable runs of a store, and its change points."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from uncork import __version__
from uncork.analysis.runs.comparable_runs import seconds_of
from uncork.analysis.runs.comparison import verdict_of
from uncork.analysis.runs.environments import differences, same_machine
from uncork.analysis.runs.figures import FIGURED, asked_of, remembered_figures
from uncork.analysis.runs.past import BROKEN
from uncork.errors import StoreError, UncorkError, UsageError
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.history import History, HistoryChange, HistoryRun
from uncork.model.results.run_comparison import RunVerdict
from uncork.stats.steps import FALSE_ALARMS, ChangePoint, Steps, change_points
from uncork.store.catalogue import tags_of
from uncork.store.layout import Manifest, find_run, list_runs, names_of_runs
from uncork.store.remote.mirrors import fetched

__all__ = ["stored_history"]

_COMPLETE: Final = "complete"
_NAMED: Final = 12
_MOST: Final = 1_000
"""The most runs of a history: a chart cannot show more."""


def stored_history(
    root: Path,
    metric: str,
    *,
    subject: str | None = None,
    like: str | None = None,
    any_machine: bool = False,
    everything: bool = False,
    manifests: Sequence[Manifest] | None = None,
) -> History:
    """Return a metric over the runs comparable with the newest one that has it, or with the run `like`.

    Comparable runs were asked the same, on a comparable machine (`any_machine`: on any). `subject` selects
    what the metric describes if there are several: its name, or a part that only it has; empty means the run
    as a whole. Runs that a guard found broken are left out, and counted, unless `everything` is set.
    `manifests` are those of all runs, oldest first, if the caller has listed them already. If there are very
    many comparable runs, the newest are taken.

    Raises:
        UsageError: if no run has such a metric, or several subjects have it.
        SetupError: if there is no run at all, or not the one named.
        StoreError: if the run named is damaged.
    """
    first, figure = _reference(root, metric, subject, like)
    listed = tuple(list_runs(root)) if manifests is None else manifests
    series = _series(root, first, figure, listed, any_machine=any_machine, everything=everything)
    values = [value for _, value in series.points]
    steps = change_points(values)
    names = names_of_runs(root)
    return History(
        metric=figure.name,
        subject=figure.subject,
        unit=figure.unit,
        better=figure.better,
        kind_of_runs=first.kind,
        question=first.question,
        answer="",
        warnings=(),
        runs=tuple(_runs(series.points, steps, names)),
        changes=tuple(_changes([run for run, _ in series.points], figure, steps)),
        false_alarms=FALSE_ALARMS,
        inflation=steps.inflation,
        left_out=series.left_out,
        older=series.older,
        broken=series.broken,
        uncork_version=__version__,
    )


# ---- which runs ----


@dataclass(frozen=True, slots=True)
class _Series:
    points: list[tuple[RunFigures, float]]
    left_out: int
    older: int
    broken: int


def _reference(root: Path, metric: str, subject: str | None, like: str | None) -> tuple[RunFigures, Figure]:
    """Return the reference run, and its metric."""
    if like is not None:
        run = remembered_figures(find_run(root, like))
        return run, _chosen(run, metric, subject)
    find_run(root, "last", failed=True)  # reports if there is none
    newest: RunFigures | None = None
    for run in _figured(root):
        newest = newest or run
        if any(one.name == metric for one in run.figures):
            return run, _chosen(run, metric, subject)
    if newest is None:
        raise UsageError(f"no run in {root} is of a kind that has metrics ({', '.join(FIGURED)})")
    return newest, _chosen(newest, metric, subject)


def _figured(root: Path) -> Iterator[RunFigures]:
    """Yield complete runs that have metrics, the newest first; damaged ones are skipped."""
    for manifest in reversed(list(list_runs(root))):
        if isinstance(manifest, StoreError) or manifest.kind not in FIGURED or manifest.status != _COMPLETE:
            continue
        try:
            yield remembered_figures(root / manifest.id)
        except UncorkError:
            continue


def _chosen(run: RunFigures, metric: str, subject: str | None) -> Figure:
    """Return the selected metric.

    Raises:
        UsageError: if the run has none of that name, or several.
    """
    named = [one for one in run.figures if one.name == metric]
    if not named:
        names = list(dict.fromkeys(one.name for one in run.figures))
        near = difflib.get_close_matches(metric, names, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise UsageError(
            f'{run.id} has no metric "{metric}"{f"{hint} It" if hint else "; it"} has {", ".join(names)}'
        )
    if subject is None:
        whole = [one for one in named if not one.subject]
        if whole or len(named) == 1:
            return (whole or named)[0]
        raise UsageError(
            f'"{metric}" exists for {len(named)} subjects; add --of with one of: {_subjects(named)}'
        )
    exact = [one for one in named if one.subject == subject]
    found = exact or [one for one in named if subject in one.subject]
    if len(found) == 1:
        return found[0]
    trouble = "several subjects contain that name" if found else "no subject has that name"
    raise UsageError(f'--of "{subject}": {trouble}; "{metric}" exists for: {_subjects(found or named)}')


def _subjects(figures: Sequence[Figure]) -> str:
    names = [f'"{one.subject}"' if one.subject else "the run as a whole" for one in figures]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _series(
    root: Path,
    first: RunFigures,
    figure: Figure,
    listed: Sequence[Manifest | StoreError],
    *,
    any_machine: bool,
    everything: bool,
) -> _Series:
    points: list[tuple[RunFigures, float]] = []
    left_out = sum(isinstance(manifest, StoreError) for manifest in listed)
    older = broken = 0
    like = {
        root / manifest.id: manifest
        for manifest in reversed(listed)
        if not isinstance(manifest, StoreError) and manifest.kind == first.kind
    }
    for folder in fetched(list(like)):
        manifest = like[folder]
        try:
            if asked_of(folder, manifest) != first.asked:
                continue
            if manifest.status != _COMPLETE:
                left_out += 1
                continue
            if len(points) == _MOST:
                older += 1
                continue
            run = remembered_figures(folder)
        except UncorkError:
            left_out += 1
            continue
        found = run.counterpart(figure)
        if found is None or not (any_machine or same_machine(run.environment, first.environment)):
            continue
        if BROKEN in tags_of(folder) and not everything:
            broken += 1
        else:
            points.append((run, found.value))
    points.sort(key=lambda point: (seconds_of(point[0]), point[0].id))
    return _Series(points, left_out, older, broken)


# ---- what became of them ----


def _runs(
    points: Sequence[tuple[RunFigures, float]], steps: Steps, names: dict[str, tuple[str, ...]]
) -> Iterator[HistoryRun]:
    bounds = [0, *(point.index for point in steps.points), len(points)]
    levels = [
        sum(value for _, value in points[low:high]) / (high - low)
        for low, high in pairwise(bounds)
        if high > low
        for _ in range(high - low)
    ]
    for number, ((run, value), level) in enumerate(zip(points, levels, strict=True), start=1):
        yield HistoryRun(
            number, run.id, names.get(run.id, ()), run.started_at, run.commit, value, level, run.note
        )


def _changes(runs: Sequence[RunFigures], figure: Figure, steps: Steps) -> Iterator[HistoryChange]:
    for point in steps.points:
        yield _change(runs, figure, point, suspected=False)
    if steps.suspected is not None:
        yield _change(runs, figure, steps.suspected, suspected=True)


def _change(
    runs: Sequence[RunFigures], figure: Figure, point: ChangePoint, *, suspected: bool
) -> HistoryChange:
    last, since = runs[point.index - 1], runs[point.index]
    rises = point.after > point.before
    return HistoryChange(
        number=point.index + 1,
        last=last.id,
        since=since.id,
        started_at=since.started_at,
        commit_before=last.commit,
        commit=since.commit,
        before=point.before,
        after=point.after,
        ratio=point.after / point.before if point.before > 0 and point.after > 0 else None,
        runs_before=point.before_count,
        runs_after=point.after_count,
        p_value=point.p_value,
        chance=point.chance,
        verdict=RunVerdict.NOT_ENOUGH_EVIDENCE if suspected else verdict_of(figure, rises=rises),
        suspected=suspected,
        differences=tuple(differences(last, since)),
    )
