"""One metric over comparable runs of a store, and its change points."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from uncork import __version__
from uncork.analysis.runs.comparable_runs import differences, same_machine, seconds_of
from uncork.analysis.runs.comparison import CONFIDENCE, PRACTICAL, verdict_of
from uncork.analysis.runs.figures import FIGURED, asked_of, remembered_figures
from uncork.analysis.runs.past import BROKEN
from uncork.engines.checkouts import commits_of_branch
from uncork.errors import StoreError, UncorkError, UsageError
from uncork.model.records import build_from
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.history import History, HistoryChange, HistoryRun, NewestRun
from uncork.model.results.run_comparison import RunVerdict
from uncork.stats.newest_run import POINTS, NewestJudgement, judge_newest
from uncork.stats.steps import FALSE_ALARMS, ChangePoint, Steps, change_points
from uncork.store.catalogue import tags_of
from uncork.store.layout import Manifest, find_run, list_runs, names_of_runs
from uncork.store.remote.mirrors import fetched

_LEAST_ABBREVIATED: Final = 7


@dataclass(frozen=True)
class RunSelection:
    """Which runs a history is about: those since a time, and those of a branch; by default all.

    A run belongs to the branch that was recorded with it. A run without a recorded branch belongs
    to each branch that contains its commit, by git in the current folder.
    """

    since: datetime | None = None
    branch: str = ""

    def includes(self, manifest: Manifest) -> bool:
        """Say whether a run is selected."""
        return self.includes_time(manifest) and (not self.branch or self._on_branch(manifest))

    def includes_time(self, manifest: Manifest) -> bool:
        """Say whether a run began in the selected time."""
        return self.since is None or datetime.fromisoformat(manifest.started_at) >= self.since

    def without_branch(self, manifests: Iterable[Manifest]) -> int:
        """Count the runs in the selected time of which no branch is known at all."""
        if not self.branch:
            return 0
        return sum(
            manifest.branch is None and self.includes_time(manifest) and not self._on_branch(manifest)
            for manifest in manifests
        )

    def _on_branch(self, manifest: Manifest) -> bool:
        if manifest.branch is not None:
            return manifest.branch == self.branch
        commit = (manifest.commit or "").removesuffix("-dirty").lower()
        if len(commit) < _LEAST_ABBREVIATED:
            return False
        place = bisect_left(self._commits, commit)
        return place < len(self._commits) and self._commits[place].startswith(commit)

    @cached_property
    def _commits(self) -> Sequence[str]:
        """The commits of the branch in order; git is asked only if a run has no recorded branch."""
        return sorted(commits_of_branch(self.branch))


def branches_of(manifests: Iterable[Manifest]) -> list[str]:
    """Return the recorded branches, the one with the newest run first; `manifests` are oldest first."""
    return list(dict.fromkeys(manifest.branch for manifest in reversed(list(manifests)) if manifest.branch))


_COMPLETE: Final = "complete"
_NAMED: Final = 12
_MOST: Final = 1_000
"""The most runs of a history: a chart cannot show more."""
_ALL: Final = RunSelection()


def stored_history(
    root: Path,
    metric: str,
    *,
    subject: str | None = None,
    like: str | None = None,
    any_machine: bool = False,
    everything: bool = False,
    selection: RunSelection = _ALL,
    window: int | None = None,
    manifests: Sequence[Manifest] | None = None,
) -> History:
    """Return a metric over the runs comparable with the newest one that has it, or with the run `like`.

    Comparable runs were asked the same, on a comparable machine (`any_machine`: on any). `subject` selects
    what the metric describes if there are several: its name, or a part that only it has; empty means the run
    as a whole. Runs that a guard found broken are left out, and counted, unless `everything` is set.
    `selection` restricts the history to a time and a branch. With `window`, the newest run is judged against
    that many runs before it. `manifests` are those of all runs, oldest first, if the caller has listed them
    already. If there are very many comparable runs, the newest are taken.

    Raises:
        UsageError: if no run has such a metric, or several subjects have it; if the newest run is to be
            judged by a metric without a better direction.
        SetupError: if there is no run at all, or not the one named.
        StoreError: if the run named is damaged.
    """
    find_run(root, "last" if like is None else like, failed=True)  # reports if there is none
    listed = tuple(list_runs(root)) if manifests is None else manifests
    selected = [one for one in listed if isinstance(one, StoreError) or selection.includes(one)]
    if selection != _ALL and not any(isinstance(one, Manifest) for one in selected):
        raise UsageError(_nothing(root, listed, selection))
    first, figure = _reference(root, metric, subject, like, selected)
    series = _series(root, first, figure, selected, any_machine=any_machine, everything=everything)
    steps = change_points([figure.value for _, figure in series.points])
    names = names_of_runs(root)
    return build_from(
        History,
        figure,
        metric=figure.name,
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
        since="" if selection.since is None else selection.since.isoformat(timespec="seconds"),
        branch=selection.branch,
        without_branch=selection.without_branch(_comparable_kind(listed, first.kind)),
        newest=None if window is None else _newest(series.points, figure, steps, window),
        uncork_version=__version__,
    )


# ---- which runs ----


@dataclass(frozen=True, slots=True)
class _Series:
    points: list[tuple[RunFigures, Figure]]
    left_out: int
    older: int
    broken: int


def _reference(
    root: Path,
    metric: str,
    subject: str | None,
    like: str | None,
    selected: Sequence[Manifest | StoreError],
) -> tuple[RunFigures, Figure]:
    if like is not None:
        run = remembered_figures(find_run(root, like))
        return run, _chosen(run, metric, subject)
    newest: RunFigures | None = None
    for run in _figured(root, selected):
        newest = newest or run
        if any(figure.name == metric for figure in run.figures):
            return run, _chosen(run, metric, subject)
    if newest is None:
        raise UsageError(f"no run in {root} is of a kind that has metrics ({', '.join(FIGURED)})")
    return newest, _chosen(newest, metric, subject)


def _nothing(root: Path, listed: Sequence[Manifest | StoreError], selection: RunSelection) -> str:
    since = "" if selection.since is None else f" since {selection.since:%Y-%m-%d %H:%M}"
    if not selection.branch:
        return f"there is no run in {root}{since}"
    known = branches_of(one for one in listed if isinstance(one, Manifest))
    names = f"branches of runs: {', '.join(known[:_NAMED])}" if known else "no run has a recorded branch"
    return f'there is no run in {root}{since} on branch "{selection.branch}"; {names}'


def _comparable_kind(listed: Sequence[Manifest | StoreError], kind: str) -> Iterator[Manifest]:
    return (
        one for one in listed if isinstance(one, Manifest) and one.kind == kind and one.status == _COMPLETE
    )


def _figured(root: Path, selected: Sequence[Manifest | StoreError]) -> Iterator[RunFigures]:
    """Yield complete runs that have metrics, the newest first; damaged ones are skipped."""
    for manifest in reversed(selected):
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
    named = [figure for figure in run.figures if figure.name == metric]
    if not named:
        names = list(dict.fromkeys(figure.name for figure in run.figures))
        near = difflib.get_close_matches(metric, names, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise UsageError(
            f'{run.id} has no metric "{metric}"{f"{hint} It" if hint else "; it"} has {", ".join(names)}'
        )
    if subject is None:
        whole = [figure for figure in named if not figure.subject]
        if whole or len(named) == 1:
            return (whole or named)[0]
        raise UsageError(
            f'"{metric}" exists for {len(named)} subjects; add --of with one of: {_subjects(named)}'
        )
    exact = [figure for figure in named if figure.subject == subject]
    found = exact or [figure for figure in named if subject in figure.subject]
    if len(found) == 1:
        return found[0]
    trouble = "several subjects contain that name" if found else "no subject has that name"
    raise UsageError(f'--of "{subject}": {trouble}; "{metric}" exists for: {_subjects(found or named)}')


def _subjects(figures: Sequence[Figure]) -> str:
    names = [f'"{figure.subject}"' if figure.subject else "the run as a whole" for figure in figures]
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
    points: list[tuple[RunFigures, Figure]] = []
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
            points.append((run, found))
    points.sort(key=lambda point: (seconds_of(point[0]), point[0].id))
    return _Series(points, left_out, older, broken)


# ---- what became of them ----


def _runs(
    points: Sequence[tuple[RunFigures, Figure]], steps: Steps, names: dict[str, tuple[str, ...]]
) -> Iterator[HistoryRun]:
    bounds = [0, *(point.index for point in steps.points), len(points)]
    levels = [
        sum(figure.value for _, figure in points[low:high]) / (high - low)
        for low, high in pairwise(bounds)
        if high > low
        for _ in range(high - low)
    ]
    for number, ((run, figure), level) in enumerate(zip(points, levels, strict=True), start=1):
        yield HistoryRun(
            number, run.id, names.get(run.id, ()), run.started_at, run.commit, figure.value, level, run.note
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
    return build_from(
        HistoryChange,
        point,
        number=point.index + 1,
        last=last.id,
        since=since.id,
        started_at=since.started_at,
        commit_before=last.commit,
        commit=since.commit,
        ratio=point.after / point.before if point.before > 0 and point.after > 0 else None,
        runs_before=point.before_count,
        runs_after=point.after_count,
        verdict=RunVerdict.NOT_ENOUGH_EVIDENCE if suspected else verdict_of(figure, rises=rises),
        suspected=suspected,
        differences=tuple(differences(last, since)),
    )


# ---- the newest run ----


def _newest(
    points: Sequence[tuple[RunFigures, Figure]], figure: Figure, steps: Steps, window: int
) -> NewestRun:
    """Judge the newest run against the `window` runs before it.

    Raises:
        UsageError: if neither direction of the metric is better, or there is no run.
    """
    if not points:
        raise UsageError("--window: there is no comparable run to judge")
    if not figure.better:
        raise UsageError(
            f'--window: neither more nor less "{figure.name}" is better, so no run can be judged by it; an '
            'imported table can say which in its column "better"'
        )
    timed = [(seconds_of(run), one) for run, one in points]
    start = max(0, len(timed) - 1 - window)
    found = judge_newest(timed[-1], timed[start:-1], confidence=CONFIDENCE, practical=PRACTICAL)
    moved = [points[point.index][0].id for point in steps.points if start < point.index < len(points) - 1]
    return build_from(
        NewestRun,
        found,
        id=points[-1][0].id,
        window=window,
        runs=len(timed) - 1 - start,
        value=timed[-1][1].value,
        verdict=_direction(figure, found),
        changed_at=moved[-1] if moved else None,
        confidence=CONFIDENCE,
        practical=POINTS if figure.scale == "share" else PRACTICAL,
    )


def _direction(figure: Figure, found: NewestJudgement) -> RunVerdict:
    """Return the verdict of a change that the interval, or a count without noise, makes certain."""
    low, high = found.low, found.high
    if low is None or high is None:
        low = high = found.ratio if figure.scale == "exact" else None
    if low is None or high is None or low <= 1.0 <= high:
        inside = low is not None and high is not None and _within(low, high)
        return RunVerdict.NO_PRACTICAL_DIFFERENCE if inside else RunVerdict.NOT_ENOUGH_EVIDENCE
    return verdict_of(figure, rises=low > 1.0)


def _within(low: float, high: float) -> bool:
    return low >= 1.0 / (1.0 + PRACTICAL) and high <= 1.0 + PRACTICAL
