"""Judge the gates of a guard against earlier comparable runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from uncork.analysis.runs.comparable_runs import MOST_COMPARABLE, alike, same_machine, seconds_of
from uncork.analysis.runs.figures import remembered_figures
from uncork.errors import UncorkError
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.guard import Gate
from uncork.model.stored_run import BASELINE
from uncork.model.variant_evidence import Levels
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.gates.decision import Exact, GateQuestion, Same, Unknown
from uncork.stats.gates.history import Past, beside_past, past_of, share_beside_past
from uncork.stats.gates.history_gates import Beside, ratio_beside, share_beside, value_beside
from uncork.stats.run_comparison import KNOWN_RUNS, ComparableRun, RunDifference, compare_effects, log_odds
from uncork.store.catalogue import read_catalogue
from uncork.store.layout import read_names

BROKEN: Final = "guard-broken"
"""The tag of runs that a guard found broken: they do not count as history."""
PRACTICAL: Final = 0.03
"""What matters in practice, as in every comparison of runs; for shares one percentage point."""
POINTS: Final = 0.01
_WHOLE: Final = 10**9
"""A share given as a limit counts as precise as one from so many operations."""


@dataclass(frozen=True, slots=True)
class Place:
    """A gate at one place: `find` returns its metric of a run, None if the run has none.

    `missing` is a clause that says why there may be none. For a gate on plans, `plan` returns a run's.
    """

    gate: Gate
    find: Callable[[RunFigures], Figure | None]
    missing: str
    workload: str = ""
    cell: Levels = ()
    plan: Callable[[RunFigures], str | None] | None = None


@dataclass(frozen=True, slots=True)
class ComparablePast:
    """Runs that were asked the same as one, at the same place, on a comparable machine, the oldest first.

    `baseline` is the one of them with that name; `warning` says why a run with that name does not
    count. `how` says how to get more of them. `broken` counts the runs that are left out
    because a guard found them broken.
    """

    runs: tuple[RunFigures, ...]
    baseline: RunFigures | None = None
    warning: str = ""
    how: str = ""
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The evidence of a gate: what it is judged by, both sides' values, and those of each run.

    `like` counts the comparable runs. `unit` is that of the values, None for the metric's own.
    """

    evidence: Beside | GateQuestion
    baseline: float | None = None
    candidate: float | None = None
    like: int = 0
    by_run: tuple[tuple[int, float | None, float | None], ...] = ()
    unit: Literal[""] | None = None


def find_past(
    root: Path,
    reference: RunFigures,
    *,
    without: Sequence[str] = (),
    before_s: float = math.inf,
    how: str = "",
    everything: bool = False,
) -> ComparablePast:
    """Return the comparable runs of a store; damaged and incomplete ones are skipped.

    `without` are runs to exclude. Runs that began at `before_s` or later are excluded too, and so
    are runs that a guard found broken, unless `everything` is set. If there are very many, the
    newest are taken, and the one named baseline.

    Raises:
        StoreError: if the folder cannot be listed.
    """
    named = read_names(root).get(BASELINE)
    fit = {
        catalogued_run.folder: catalogued_run
        for catalogued_run in reversed(read_catalogue(root).runs)
        if catalogued_run.manifest.kind == reference.kind
        and catalogued_run.manifest.status == "complete"
        and catalogued_run.id not in without
        and catalogued_run.manifest.server == reference.server
    }
    found: list[RunFigures] = []
    broken = 0
    # The newest come first, except for the one named baseline.
    first = {folder: fit[folder].manifest for folder in sorted(fit, key=lambda folder: folder.name != named)}
    for folder in alike(first, [reference.asked]):
        if len(found) == MOST_COMPARABLE:
            break
        try:
            run = remembered_figures(folder)
        except UncorkError:
            continue
        if same_machine(run.environment, reference.environment) and seconds_of(run) < before_s:
            if BROKEN in fit[folder].tags and not everything:
                broken += 1
            else:
                found.append(run)
    found.sort(key=lambda run: (seconds_of(run), run.id))
    baseline = next((run for run in found if run.id == named), None)
    warning = ""
    if named is not None and baseline is None and named not in without:
        warning = (
            f"the run named {BASELINE}, {named}, was asked something else, ran elsewhere, failed, was "
            "found broken by a guard, or no longer exists: the other comparable runs are used instead"
        )
    return ComparablePast(tuple(found), baseline, warning, how, broken)


def held_against(
    place: Place, new: Sequence[RunFigures], comparable_past: ComparablePast, confidence: float
) -> Found:
    """Compare new runs, made in a row and taken as one, with history. Pure."""
    gate = place.gate
    if place.plan is not None:
        return Found(GateQuestion(gate, _plan(place.plan, new[-1], comparable_past)))
    own = [one for run in new if (one := place.find(run)) is not None]
    if len(own) < len(new):
        return Found(GateQuestion(gate, Unknown(place.missing)))
    pairs = ((run, _counterpart(place, run, own[0])) for run in comparable_past.runs)
    known = [(run, figure) for run, figure in pairs if figure is not None]
    named = next((pair for pair in known if pair[0] is comparable_past.baseline), None)
    base = None if named is None else named[1]
    if not known:
        needed = "one is" if own[0].scale in ("effect", "exact") else f"{KNOWN_RUNS} are"
        reason = f"no stored comparable run has it, and {needed} needed{_how(comparable_past)}"
        return Found(GateQuestion(gate, Unknown(reason)), None, _middle(gate, own))
    if own[0].scale == "effect":
        return _effect(gate, _in_the_middle(own), [figure for _, figure in known], base, confidence)
    stretch = past_of([ComparableRun(seconds_of(run), _log(figure)) for run, figure in known])
    since = known[stretch.before :]
    like = next((run for run, pair in zip(stretch.runs, since, strict=True) if pair is named), None)
    if named is not None and like is None:  # it is older than the last change, and counts all the same
        like = ComparableRun(seconds_of(named[0]), _log(named[1]))
    before = [base] if base is not None else [figure for _, figure in since]
    evidence = _evidence(gate, new, own, before, stretch, like, confidence)
    if isinstance(evidence, Beside) and evidence.unknown:
        evidence = replace(evidence, unknown=f"{evidence.unknown}{_how(comparable_past)}")
    rows: list[tuple[int, float | None, float | None]]
    rows = [(n, _value(gate, figure), None) for n, (_, figure) in enumerate(since, start=1)]
    rows += [(len(rows) + n, None, _value(gate, figure)) for n, figure in enumerate(own, start=1)]
    return Found(evidence, _middle(gate, before), _middle(gate, own), len(before), tuple(rows))


def _evidence(
    gate: Gate,
    new: Sequence[RunFigures],
    own: Sequence[Figure],
    before: Sequence[Figure],
    stretch: Past,
    baseline: ComparableRun | None,
    confidence: float,
) -> Beside | GateQuestion:
    if own[0].scale == "share":
        time_s = statistics.median(map(seconds_of, new))
        return _share(gate, time_s, own, before, stretch, baseline, confidence)
    values = {figure.value for figure in (*own, *before)}
    if own[0].scale == "exact" or (len(values) == 1 and own[0].unit in ("", "B")):
        return GateQuestion(gate, Exact(before[-1].value, own[-1].value))
    runs = [ComparableRun(seconds_of(run), figure.log_value) for run, figure in zip(new, own, strict=True)]
    resolution = own[0].resolution
    if gate.bound == "value":
        at = beside_past(
            runs, stretch, confidence=confidence, limit=math.log(gate.limit), resolution=resolution
        )
        return value_beside(gate, at)
    found = beside_past(runs, stretch, confidence=confidence, baseline=baseline, resolution=resolution)
    return ratio_beside(gate, found, practical=PRACTICAL)


def _effect(
    gate: Gate, own: Figure, known: Sequence[Figure], base: Figure | None, confidence: float
) -> Found:
    """Compare an effect, measured side by side within its run, with that of the run in the middle."""
    before = base or _in_the_middle(known)
    if gate.bound == "value":
        reason = "an experiment's metric is an effect, a ratio; gates on values work only for loads"
        return Found(GateQuestion(gate, Unknown(reason)), before.value, own.value)

    def compared(shift: float) -> RunDifference:
        sides = [(figure.log_value, figure.rounds, figure.std_dev) for figure in (before, own)]
        moved = (sides[0][0] + shift, *sides[0][1:])
        return compare_effects(
            moved, sides[1], practical=PRACTICAL, confidence=confidence, minimum_rounds=MINIMUM_ROUNDS
        )

    def p_at(ratio: float) -> float:
        return compared(math.log(ratio)).differs

    evidence = ratio_beside(gate, compared(0.0), practical=PRACTICAL, p_at=p_at)
    return Found(evidence, before.value, own.value, len(known), unit="")


def _in_the_middle(figures: Sequence[Figure]) -> Figure:
    """Return the metric whose value is the median, the lower of two."""
    return sorted(figures, key=lambda figure: figure.value)[(len(figures) - 1) // 2]


def _plan(
    find: Callable[[RunFigures], str | None], new: RunFigures, comparable_past: ComparablePast
) -> Same | Unknown:
    """Say whether a run's plan equals that of the baseline, or of the newest comparable run."""
    own = find(new)
    runs = [comparable_past.baseline] if comparable_past.baseline is not None else comparable_past.runs[-1:]
    before = [(run, shape) for run in runs if (shape := find(run)) is not None]
    if own is None:
        return Unknown("the run has no plan for it")
    if not before:
        return Unknown(f"no stored comparable run has a plan for it{_how(comparable_past)}")
    run, shape = before[-1]
    if shape == own:
        return Same(True, f"the same as in {run.id}")
    return Same(False, f"different from {run.id}; uncork compare {run.id} {new.id} shows both")


def _share(
    gate: Gate,
    time_s: float,
    own: Sequence[Figure],
    before: Sequence[Figure],
    stretch: Past,
    baseline: ComparableRun | None,
    confidence: float,
) -> Beside | GateQuestion:
    after = (sum(figure.count for figure in own), sum(figure.of for figure in own))
    old = (sum(figure.count for figure in before), sum(figure.of for figure in before))
    if gate.bound == "value":
        limit = gate.limit if gate.metric == "errors" else 1.0 - gate.limit
        if limit <= 0.0 or limit >= 1.0:
            return GateQuestion(gate, Exact(None, _middle(gate, own)))
        at = (round(limit * _WHOLE), _WHOLE)
        return value_beside(
            gate, share_beside_past(after, time_s, at, stretch, confidence=confidence), failures=True
        )
    if after[0] == old[0] == 0:
        return GateQuestion(gate, Same(True, f"none of {after[1]} operations failed, as before"))
    found = share_beside_past(after, time_s, old, stretch, confidence=confidence, baseline=baseline)
    share = (old[0] + 0.5) / (old[1] + 1.0)
    return share_beside(gate, found, share, practical=POINTS)


def _how(comparable_past: ComparablePast) -> str:
    return f"; {comparable_past.how}" if comparable_past.how else ""


def _counterpart(place: Place, run: RunFigures, own: Figure) -> Figure | None:
    found = place.find(run)
    if found is None or (found.scale != "share" and found.value <= 0.0):
        return None
    return found if found.scale == own.scale else None


def _log(figure: Figure) -> float:
    return log_odds(figure.count, figure.of) if figure.scale == "share" else figure.log_value


def _value(gate: Gate, figure: Figure) -> float:
    """Return a metric in the terms of its gate: success is the complement of failure."""
    return 1.0 - figure.value if gate.metric == "success" else figure.value


def _middle(gate: Gate, figures: Sequence[Figure]) -> float:
    """Return the median of several; for shares that of all operations together."""
    if figures[0].scale == "share":
        failed = sum(figure.count for figure in figures) / max(1, sum(figure.of for figure in figures))
        return 1.0 - failed if gate.metric == "success" else failed
    return statistics.median(_value(gate, figure) for figure in figures)
