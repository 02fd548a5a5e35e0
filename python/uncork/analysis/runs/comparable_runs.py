"""Comparable runs of a store: how much they differ, and how the environments of two runs differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from uncork.analysis.runs.figures import ASKED_FILES, FIGURED, asked_of, remembered_figures
from uncork.errors import UncorkError
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.stats.run_comparison import ComparableRun, RunToRun, log_odds, run_to_run
from uncork.store.layout import Manifest, list_runs
from uncork.store.remote.mirrors import fetch

MOST_COMPARABLE: Final = 200
"""The most comparable runs that are read, the newest first: more add little."""
_AHEAD: Final = 100
_COMPLETE: Final = "complete"

Group = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
"""What comparable runs have in common: what was asked, and their environment."""


class ComparableRuns:
    """The runs of one store that are comparable to any of those compared."""

    def __init__(
        self, root: Path, compared: Sequence[RunFigures], manifests: Sequence[Manifest] | None = None
    ) -> None:
        """Read the runs. Runs that are damaged or did not end are skipped.

        `manifests` are those of all runs, oldest first, if the caller has listed them already.
        """
        self._groups: dict[Group, list[RunFigures]] = defaultdict(list)
        known, asked = {run.id: run for run in compared}, [run.asked for run in compared]
        kinds = {run.kind for run in compared}
        found = 0
        listed = (
            [run for run in list_runs(root) if isinstance(run, Manifest)] if manifests is None else manifests
        )
        like = {
            root / manifest.id: manifest
            for manifest in reversed(listed)
            if manifest.kind in kinds and manifest.status == _COMPLETE
        }
        for folder in alike(like, asked):
            if found == MOST_COMPARABLE:
                break
            try:
                run = known.get(like[folder].id) or remembered_figures(folder)
            except UncorkError:
                continue
            if run.asked in asked and any(same_machine(run.environment, one.environment) for one in compared):
                self._groups[(tuple(sorted(run.asked.items())), surroundings(run))].append(run)
                found += 1

    def std_dev(self, figure: Figure, before: RunFigures, after: RunFigures) -> RunToRun | None:
        """Return how much a metric differs between other comparable runs; None if there are too few.

        Runs that were asked the same as either, on the machine of either, without the two
        themselves: their groups are pooled, each around its own mean.
        """
        groups = []
        for (asked, _), runs in self._groups.items():
            if dict(asked) not in (before.asked, after.asked):
                continue
            if not any(same_machine(runs[0].environment, one.environment) for one in (before, after)):
                continue
            others = [run for run in runs if run.id not in (before.id, after.id)]
            groups.append([like for run in others for like in _like(run, run.counterpart(figure))])
        return run_to_run(groups)


def alike(runs: Mapping[Path, Manifest], asked: Collection[Mapping[str, str]]) -> Iterator[Path]:
    """Yield the folders of runs that were asked one of these things, in the order of the runs.

    Unreadable runs are skipped. Of runs at an address only these are fetched completely, many at
    once and in advance.

    Raises:
        SetupError, ConnectError: if the address cannot be reached.
    """
    folders = list(runs)
    for start in range(0, len(folders), _AHEAD):
        some = folders[start : start + _AHEAD]
        fetch(some, ASKED_FILES)
        found = [folder for folder in some if _asked(folder, runs[folder]) in asked]
        fetch(found)
        yield from found


def _asked(folder: Path, manifest: Manifest) -> Mapping[str, str] | None:
    try:
        return asked_of(folder, manifest)
    except UncorkError:
        return None


def seconds_of(run: RunFigures) -> float:
    """Return when a run was made, in seconds since 1970."""
    return datetime.fromisoformat(run.started_at).timestamp()


def _like(run: RunFigures, figure: Figure | None) -> list[ComparableRun]:
    if figure is None:
        return []
    if figure.scale == "share":
        return [ComparableRun(seconds_of(run), log_odds(figure.count, figure.of))]
    return [ComparableRun(seconds_of(run), figure.log_value)] if figure.value > 0 else []


# ---- the series of comparable runs in a store, over which a metric has a history ----


@dataclass(frozen=True, slots=True)
class ComparableSeries:
    """A series of comparable runs: the newest of them, how many there are, and when the first began."""

    newest: str
    kind: str
    question: str
    runs: int
    first_at: str
    last_at: str


def comparable_series(root: Path, manifests: Iterable[Manifest]) -> tuple[ComparableSeries, ...]:
    """Return the series of complete runs that have metrics, the one with the newest run first.

    `manifests` are those of the runs, oldest first. Unreadable runs are skipped.
    """
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[Manifest]] = {}
    for manifest in manifests:
        if manifest.kind not in FIGURED or manifest.status != _COMPLETE:
            continue
        try:
            asked = asked_of(root / manifest.id, manifest)
        except UncorkError:
            continue
        found.setdefault((manifest.kind, tuple(sorted(asked.items()))), []).append(manifest)
    series = [
        ComparableSeries(
            newest=runs[-1].id,
            kind=runs[-1].kind,
            question=runs[-1].question,
            runs=len(runs),
            first_at=runs[0].started_at,
            last_at=runs[-1].started_at,
        )
        for runs in found.values()
    ]
    return tuple(sorted(series, key=lambda one: one.last_at, reverse=True))


def ordered_figures(folder: Path) -> list[Figure]:
    """Return the metrics of a stored run, those of the run as a whole first.

    Raises:
        UncorkError: if runs of its kind have none, or it is damaged.
    """
    figures = remembered_figures(folder).figures
    return sorted(figures, key=lambda figure: (figure.scale != "effect", bool(figure.subject)))


# ---- differences between the environments of two runs, and between what was asked of them ----


_GRAVE: Final = ("architecture", "processor", "processors", "memory", "virtualised")
"""Facts of a machine that make metrics incomparable."""
_PASSING: Final = ("load average at start", "other uncork runs at start", "python")
"""Facts of a machine that change from moment to moment, or do not affect measurements."""


def differences(before: RunFigures, after: RunFigures) -> Iterator[EnvironmentDifference]:
    """Yield the differences, the gravest first: the machine, then the server, then what was asked."""
    machine = list(_section(before, after, "machine"))
    yield from (difference for difference in machine if difference.grave)
    if before.server != after.server:
        yield EnvironmentDifference("server", "place", before.server, after.server, grave=False)
    others = dict.fromkeys((*before.environment, *after.environment))
    for name in others:
        if name != "machine":
            yield from _section(before, after, name)
    yield from (difference for difference in machine if not difference.grave)
    yield from differing("asked", before.asked, after.asked)
    if before.commit != after.commit:
        yield EnvironmentDifference("commit", "", before.commit or "", after.commit or "", grave=False)


def unasked_differences(before: RunFigures, after: RunFigures) -> tuple[EnvironmentDifference, ...]:
    """Return the differences other than what was asked, the commit measured, and uncork's own core."""
    found = differences(before, after)
    return tuple(difference for difference in found if difference.section not in ("asked", "commit", "core"))


def same_machine(one: Mapping[str, Mapping[str, str]], other: Mapping[str, Mapping[str, str]]) -> bool:
    """Say whether two environments are of comparable machines, as far as is known."""
    facts = [environment.get("machine", {}) for environment in (one, other)]
    return all(facts[0].get(name) == facts[1].get(name) for name in _GRAVE)


def surroundings(run: RunFigures) -> tuple[tuple[str, str], ...]:
    """Return what comparable runs have in common besides what was asked: machine, server and settings."""
    machine, server = (run.environment.get(name, {}) for name in ("machine", "server"))
    kept = [(name, value) for name, value in machine.items() if name not in _PASSING]
    return (("place", run.server), *sorted(kept), *sorted(server.items()))


def _section(before: RunFigures, after: RunFigures, name: str) -> Iterator[EnvironmentDifference]:
    yield from differing(name, before.environment.get(name, {}), after.environment.get(name, {}))


def differing(
    section: str, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[EnvironmentDifference]:
    """Yield the facts of a section that differ, without passing states of the machine."""
    for name in dict.fromkeys((*old, *new)):
        values = (old.get(name, ""), new.get(name, ""))
        if values[0] == values[1] or (section == "machine" and name in _PASSING):
            continue
        grave = section == "machine" and name in _GRAVE and all(values)
        yield EnvironmentDifference(section, name, *values, grave=grave)
