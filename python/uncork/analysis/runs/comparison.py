"""Compare runs with one of them: what differs, by how much, and with which verdict."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

from uncork import __version__
from uncork.analysis.load.figures import CLOSED_LOOP
from uncork.analysis.load.result import build_load_result
from uncork.analysis.load.sweep import build_sweep_result
from uncork.analysis.runs.comparable_runs import ComparableRuns, differences, seconds_of
from uncork.analysis.runs.cure_figures import cured_watch
from uncork.analysis.runs.figures import run_figures
from uncork.errors import UsageError
from uncork.model.load import Protocol
from uncork.model.records import build_from
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.load import LoadResult
from uncork.model.results.run_comparison import (
    FigureComparison,
    PlanChange,
    RunComparison,
    RunPair,
    RunSeries,
    RunSide,
    RunVerdict,
    SeriesPoint,
)
from uncork.model.results.sweep import SweepResult
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.run_comparison import (
    Claim,
    Measured,
    RunDifference,
    RunToRun,
    claims,
    compare_effects,
    compare_runs,
    compare_shares,
    interval_reason,
)
from uncork.store.layout import Manifest, names_of_runs, read_manifest, watch_of

CONFIDENCE: Final = 0.95
PRACTICAL: Final = 0.03
_SPEED: Final = ("ns", "/s")
_SQL_PROTOCOLS: Final = frozenset(get_args(Protocol))
_ON_COPIES: Final = (
    "A cure measures on a copy; to judge an applied change, watch the server again: "
    "`uncork profile db DSN --since CURE`"
)
_NAMED: Final = 8
"""The most metrics that are named although only one of two runs has them."""

_Judged = tuple[RunDifference | None, int, RunToRun | None]


def compare_stored(
    root: Path,
    before: Path,
    others: Sequence[Path],
    *,
    practical: float = PRACTICAL,
    any_machine: bool = False,
    manifests: Sequence[Manifest] | None = None,
) -> RunComparison:
    """Compare stored runs with one of them (`before`).

    `root` is the folder that is searched for comparable runs; `manifests` are those of its runs,
    oldest first, if the caller has listed them already. `any_machine` compares runs of different
    machines too, without verdicts.

    Raises:
        UsageError: if the runs are the same, or have different kinds or machines, or no metrics.
        StoreError: if one is damaged, or has no result.
    """
    cured = cured_watch(root, before, others)
    if cured is not None:
        before, others = cured.watch, [watch_of(folder) or folder for folder in others]
    changed = () if cured is None else cured.changed
    base, *runs = _with_statements([run_figures(folder) for folder in (before, *others)], changed)
    for run in runs:
        _refuse(base, run, any_machine=any_machine)
    like = ComparableRuns(root, [base, *runs], manifests)
    judged = [_judge(base, run, like, practical) for run in runs]
    flat = [found for pair in judged for found, _, _ in pair.values() if found is not None]
    said = iter(claims(flat, confidence=CONFIDENCE) if flat else [])
    names = names_of_runs(root)
    pairs = tuple(
        replace(_pair(base, run, pair, said, names), changed=changed)
        for run, pair in zip(runs, judged, strict=True)
    )
    return RunComparison(
        before=_side(base, names),
        answer="",
        reasons=(),
        pairs=pairs,
        steps=(),
        confidence=CONFIDENCE,
        practical=practical,
        uncork_version=__version__,
        series=tuple(one for folder in (before, *others) if (one := run_series(folder)) is not None),
        cure="" if cured is None else cured.cure,
    )


def _with_statements(runs: Sequence[RunFigures], changed: Collection[str]) -> list[RunFigures]:
    """Add the metrics of statements that are among the costliest of another run, or that a cure changed."""
    wanted = {*changed, *(figure.subject for run in runs for figure in run.figures if figure.subject)}
    return [
        replace(
            run, figures=(*run.figures, *(figure for figure in run.more if figure.subject in wanted)), more=()
        )
        for run in runs
    ]


def _refuse(before: RunFigures, after: RunFigures, *, any_machine: bool) -> None:
    if before.id == after.id:
        raise UsageError(
            f"{before.id} cannot be compared with itself; name another run (`uncork runs` lists them)"
        )
    if before.kind != after.kind:
        raise UsageError(
            f"{before.id} is a run of kind {before.kind}, {after.id} one of kind {after.kind}: "
            "they have no metric in common; compare runs of one kind"
        )
    tools = [run.asked.get("tool") for run in (before, after)]
    if tools[0] != tools[1]:
        raise UsageError(
            f"{before.id} is a result of {tools[0]}, {after.id} one of {tools[1]}: the tools "
            "define metrics of the same name differently; compare results of one tool"
        )
    _refuse_other_requests(before, after)
    for run in (before, after):
        if run.kind == "load" and run.figure(("", "throughput")) is None:
            raise UsageError(
                f"nothing succeeded in {run.id}, so there is nothing to compare; "
                f"`uncork report {run.id}` shows what failed"
            )
    grave = [difference for difference in differences(before, after) if difference.grave]
    if grave and not any_machine:
        told = "; ".join(
            f'{difference.name} "{difference.before}" and "{difference.after}"' for difference in grave
        )
        raise UsageError(
            f"{before.id} and {after.id} were made on different machines: {told}; their differences do not "
            "show the effect of a change. --any-machine shows them side by side, without verdicts"
        )
    if not {figure.key for figure in before.figures} & {figure.key for figure in after.figures}:
        raise UsageError(
            f"{before.id} and {after.id} have no metric in common: "
            f"{_some(before)} on one side, {_some(after)} on the other"
        )


def _refuse_other_requests(before: RunFigures, after: RunFigures) -> None:
    """Refuse loads whose metrics count different things: SQL and HTTP, or what a sweep raises."""
    if before.kind not in ("load", "sweep"):
        return
    sent = [_requests(run) for run in (before, after)]
    if sent[0] != sent[1]:
        raise UsageError(
            f"{before.id} sent {sent[0]}, {after.id} sent {sent[1]}: their metrics cannot be "
            "compared; compare loads of one kind"
        )
    raised = [run.asked.get("raised") for run in (before, after)]
    if raised[0] != raised[1]:
        raise UsageError(
            f"{before.id} is a sweep of {raised[0]}, {after.id} one of {raised[1]}: their levels "
            "count different things; compare sweeps of one kind"
        )


def _requests(run: RunFigures) -> str:
    return "SQL" if run.asked.get("protocol") in _SQL_PROTOCOLS else "HTTP requests"


def _some(run: RunFigures) -> str:
    named = [
        f"{figure.name} of {figure.subject}" if figure.subject else figure.name for figure in run.figures[:3]
    ]
    return ", ".join(named) + (", …" if len(run.figures) > 3 else "") if named else "nothing"


# ---- figures ----


def _judge(
    before: RunFigures, after: RunFigures, like: ComparableRuns, practical: float
) -> dict[tuple[str, str], _Judged]:
    """Return the difference of every metric that both runs have; None for one without noise."""
    why = None
    if any(difference.grave for difference in differences(before, after)):
        why = "the runs were made on different machines"
    elif _is_closed(before) != _is_closed(after):
        why = "one is a closed loop, the other an open loop, whose latency counts from when a request was due"
    found: dict[tuple[str, str], _Judged] = {}
    for old, new in _both(before, after):
        if old.scale == "exact" or _counted_alike(old, new):
            found[old.key] = (None, 0, None)
            continue
        std_dev = None if old.scale == "effect" else like.std_dev(old, before, after)
        difference = _difference((before, old), (after, new), std_dev, practical)
        if why is not None and difference is not None:
            difference = replace(difference, differs=1.0, alike=1.0, unknown=why)
        found[old.key] = (difference, 0 if std_dev is None else std_dev.runs, std_dev)
    return found


def _is_closed(run: RunFigures) -> bool:
    """Say whether a load is a closed loop; runs of other kinds all count as alike."""
    return run.kind != "load" or run.asked.get("arrivals") == CLOSED_LOOP


def _both(before: RunFigures, after: RunFigures) -> Iterator[tuple[Figure, Figure]]:
    """Yield the metrics of both runs. A kind of failure that only one of them saw is zero in the other."""
    for old in before.figures:
        new = after.counterpart(old)
        if new is not None:
            yield old, new
    for new in after.figures:
        if before.figure(new.key) is None:
            old_one = before.counterpart(new)
            if old_one is not None:
                yield old_one, new


def _difference(
    before: tuple[RunFigures, Figure],
    after: tuple[RunFigures, Figure],
    std_dev: RunToRun | None,
    practical: float,
) -> RunDifference | None:
    (old_run, old), (new_run, new) = before, after
    if old.scale == "share":
        if old.count == new.count == 0:
            return None
        shares = ((old.count, old.of), (new.count, new.of))
        times = (seconds_of(old_run), seconds_of(new_run))
        return compare_shares(*shares, std_dev, times, practical=practical, confidence=CONFIDENCE)
    if min(old.value, new.value) <= 0:
        return None
    if old.scale == "effect":
        sides = [(figure.log_value, figure.rounds, figure.std_dev) for figure in (old, new)]
        return compare_effects(
            *sides, practical=practical, confidence=CONFIDENCE, minimum_rounds=MINIMUM_ROUNDS
        )
    first, last = (
        Measured(seconds_of(run), figure.log_value, figure.within, figure.resolution)
        for run, figure in ((old_run, old), (new_run, new))
    )
    calls = min(old.count, new.count) if old.scale == "ratio" else 0
    return compare_runs(first, last, std_dev, practical=practical, confidence=CONFIDENCE, calls=calls)


def _pair(
    before: RunFigures,
    after: RunFigures,
    judged: Mapping[tuple[str, str], _Judged],
    said: Iterator[Claim],
    names: Mapping[str, tuple[str, ...]],
) -> RunPair:
    figures = tuple(_figures(before, after, judged, said))
    shapes = {(plan.subject, plan.statement): plan.shape for plan in before.plans}
    compared = [plan for plan in after.plans if (plan.subject, plan.statement) in shapes]
    both = {old.key for old, _ in _both(before, after)}
    return RunPair(
        after=_side(after, names),
        differences=tuple(differences(before, after)),
        figures=figures,
        plans=tuple(
            _plan_change(shape.subject, shape.statement, shapes[shape.subject, shape.statement], shape.shape)
            for shape in compared
            if shapes[shape.subject, shape.statement] != shape.shape
        ),
        plans_compared=len(compared),
        only_before=_alone(before, both),
        only_after=_alone(after, both),
        warnings=(
            *(
                f"{run.id} is {run.status}: its metrics cover only what was measured until then"
                for run in (before, after)
                if run.status != "complete"
            ),
            *((_ON_COPIES,) if before.kind == "cure" else ()),
        ),
    )


def _figures(
    before: RunFigures,
    after: RunFigures,
    judged: Mapping[tuple[str, str], _Judged],
    said: Iterator[Claim],
) -> Iterator[FigureComparison]:
    for old, new in _both(before, after):
        found, like_runs, std_dev = judged[old.key]
        claim: Claim = "" if found is None else next(said)
        verdict = _exact(old, new) if found is None else _verdict(old, found, claim)
        yield build_from(
            FigureComparison,
            old,
            before=old.value,
            after=new.value,
            ratio=_plain_ratio(old, new) if found is None else found.ratio,
            low=None if found is None else found.low,
            high=None if found is None else found.high,
            verdict=verdict,
            reason="counted, without noise" if found is None else interval_reason(found, verdict),
            warnings=() if found is None else found.warnings,
            like_runs=like_runs,
            std_dev=None if std_dev is None else std_dev.std_dev,
            before_count=old.count,
            before_of=old.of,
            after_count=new.count,
            after_of=new.of,
            assumed=found is not None and found.assumed,
        )


def _verdict(figure: Figure, found: RunDifference, claim: Claim) -> RunVerdict:
    if claim == "alike":
        return RunVerdict.NO_PRACTICAL_DIFFERENCE
    if claim != "differs":
        return RunVerdict.NOT_ENOUGH_EVIDENCE
    return verdict_of(figure, rises=found.ratio > 1.0)


def verdict_of(figure: Figure, *, rises: bool) -> RunVerdict:
    """Return the verdict on a metric that differs, by whether it rises."""
    speed = figure.unit in _SPEED and figure.better and not figure.name.endswith(" each")
    if speed or figure.scale == "effect":
        return RunVerdict.FASTER if rises == (figure.better == "higher") else RunVerdict.SLOWER
    return RunVerdict.MORE if rises else RunVerdict.LESS


def _counted_alike(old: Figure, new: Figure) -> bool:
    """Say whether two counted costs (blocks, bytes) are equal to the last digit."""
    return old.scale == "ratio" and old.unit in ("", "B") and old.value == new.value


def _exact(old: Figure, new: Figure) -> RunVerdict:
    if old.value == new.value:
        return RunVerdict.SAME
    return RunVerdict.MORE if new.value > old.value else RunVerdict.LESS


def _plain_ratio(old: Figure, new: Figure) -> float | None:
    return new.value / old.value if old.value > 0 and new.value > 0 else None


def _plan_change(subject: str, statement: str, before: str, after: str) -> PlanChange:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=99
    )
    return PlanChange(subject, statement, "\n".join(lines))


def _alone(run: RunFigures, both: set[tuple[str, str]]) -> tuple[str, ...]:
    """Name the metrics that only this run has."""
    lonely = [figure for figure in run.figures if figure.key not in both]
    named = [f"{figure.name} of {figure.subject}" if figure.subject else figure.name for figure in lonely]
    more = len(named) - _NAMED
    return (*named[:_NAMED], *((f"{more} more",) if more > 0 else ()))


# ---- sides ----


def _side(run: RunFigures, names: Mapping[str, tuple[str, ...]]) -> RunSide:
    return build_from(
        RunSide,
        run,
        names=names.get(run.id, ()),
        command=run.command or f"uncork report {shlex.quote(run.id)}",
    )


# ---- time series of stored loads, and levels of stored sweeps, to draw several runs over each other ----


_LEAST_NS: Final = 250_000_000
"""A shorter last interval is left out: its rate would be chance."""


def run_series(folder: Path) -> RunSeries | None:
    """Return the time series of a stored load or sweep; None for a run of another kind.

    Raises:
        StoreError: if its files are damaged, or it has no result.
    """
    kind = read_manifest(folder).kind
    if kind == "load":
        return load_series(build_load_result(folder))
    return sweep_series(build_sweep_result(folder)) if kind == "sweep" else None


def load_series(result: LoadResult) -> RunSeries:
    """Return the time series of a load, second by second."""
    points = tuple(
        SeriesPoint(
            at=second.start_ns / 1e9,
            throughput=second.succeeded * 1e9 / second.length_ns,
            failed=second.failed * 1e9 / second.length_ns,
            p50_ns=second.p50_ns,
            p99_ns=second.p99_ns,
            statuses={status: number * 1e9 / second.length_ns for status, number in second.statuses.items()},
        )
        for second in result.series
        if second.length_ns >= _LEAST_NS
    )
    return RunSeries(result.run.id, "time", points, {} if result.http is None else dict(result.http.statuses))


def sweep_series(result: SweepResult) -> RunSeries:
    """Return the levels of a sweep."""
    points = tuple(
        build_from(
            SeriesPoint,
            level,
            at=level.level,
            failed=level.throughput * level.wrong / (1 - level.wrong) if level.wrong < 1 else 0.0,
        )
        for level in sorted(result.levels, key=lambda level: level.level)
    )
    return RunSeries(result.run.id, result.axis, points, {})
