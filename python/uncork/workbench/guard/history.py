"""Guard a stored run against its history: repeat it, and compare it with earlier comparable runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from uncork.analysis.runs.comparable_runs import seconds_of, unasked_differences
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import BROKEN, ComparablePast, Found, Place, find_past, held_against
from uncork.errors import ConnectError, LoadError, UsageError
from uncork.experiment.plan.order import cells
from uncork.experiment.spec.gates import check_gates, default_gates, gate_workloads, parse_gate
from uncork.experiment.spec.schema import Spec
from uncork.model.load import LoadOutcome
from uncork.model.records import build_from
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import Gate, GateCheck, GuardSide, metric_of
from uncork.model.stored_run import BASELINE
from uncork.model.trial import Cell
from uncork.model.units import count_words
from uncork.requests.guard import GuardRequest, Tell, command_text
from uncork.requests.jobs import AnyLoad
from uncork.requests.source import Options, run_source
from uncork.stats.gates.decision import Decision
from uncork.stats.gates.history_gates import judge_past
from uncork.stats.run_comparison import KNOWN_RUNS
from uncork.store.catalogue import set_tag
from uncork.store.query import RunReader
from uncork.workbench.documents.loads import read_load
from uncork.workbench.experiment.session import new_run
from uncork.workbench.guard.acknowledged import acknowledge_from
from uncork.workbench.guard.confirming import Judgement, measure_and_confirm
from uncork.workbench.guard.question import FIGURES, Judged, LoadQuestion, Question, drawn_seed, known_of
from uncork.workbench.load.repeating import Target, carried_out, repeated_job

MeasureRuns = Callable[[], list[RunFigures]]
"""Measures once, or several times in a row, and returns the runs."""

CONFIDENCE: Final = 0.95


def judge_history(root: Path, question: Question, measure: MeasureRuns | None, notify: Tell) -> Judged:
    """Measure and judge, and measure again what looks broken. Without `measure`, judge the stored run.

    Raises UncorkError if the run cannot be measured.
    """
    new = [question.reference] if measure is None else measure()
    past = _past(root, question, new)
    found = [held_against(place, new, past, CONFIDENCE) for place in question.places]
    second: list[RunFigures] = []

    def judge(broken: Collection[Hashable] | None) -> list[Judgement]:
        places = [place for place in question.places if broken is None or place in broken]
        if broken is not None and measure is not None:
            second.extend(measure())
        here = (
            found if broken is None else [held_against(place, second, past, CONFIDENCE) for place in places]
        )
        decisions = judge_past([entry.evidence for entry in here], confidence=CONFIDENCE)
        return [
            Judgement(place, decision, partial(_check, place, entry))
            for place, entry, decision in zip(places, here, decisions, strict=True)
        ]

    acknowledge = partial(acknowledge_from, question.acknowledged)
    twice = measure is not None and question.wanted.confirm
    known = acknowledge(measure_and_confirm(judge, acknowledge, notify, twice=twice))
    base = past.baseline or (past.runs[-1] if past.runs else None)
    return Judged(
        checks=known.checks,
        baseline=_baseline(past, found),
        candidate=_candidate(question, new),
        runs=tuple(run.id for run in (*new, *second)),
        warnings=tuple(filter(None, (past.warning, _left_out(past)))),
        unused=known.unused,
        settings=() if base is None else unasked_differences(base, new[-1]),
    )


def measure_load(root: Path, question: LoadQuestion, notify: Tell) -> MeasureRuns:
    """Return a function that carries out the load as many times in a row as requested.

    Raises:
        UsageError: if a secret is missing, or the target is of the wrong kind.
        ConnectError: if the connection string of the target is wrong.
    """
    wanted = question.wanted
    target = Target(wanted.choice.dsn, wanted.url)
    command = command_text(wanted.words) if target != Target() else ""
    job = repeated_job(question.folder, target, headers=wanted.headers, command=command)
    return lambda: _measured(root, job, question, wanted.times, notify)


def tag_broken(root: Path, runs: Sequence[str]) -> None:
    """Tag runs that were found broken, so that later runs are not compared with them."""
    for id in runs:
        set_tag(root / id, BROKEN, present=True)


def _check(place: Place, found: Found, decision: Decision) -> GateCheck:
    return build_from(
        GateCheck,
        decision,
        gate=place.gate,
        cell=place.cell,
        workload=place.workload,
        baseline=found.baseline,
        candidate=found.candidate,
        unit=found.unit if found.unit is not None else metric_of(place.gate).unit,
        rounds=found.like,
        by_round=found.by_run,
    )


def _measured(root: Path, job: AnyLoad, question: LoadQuestion, times: int, notify: Tell) -> list[RunFigures]:
    found = []
    for number in range(1, times + 1):
        folder, outcome = carried_out(root, job, notify)
        if outcome is LoadOutcome.REFUSED:
            trouble = _trouble(folder)
            shutil.rmtree(folder, ignore_errors=True)
            raise ConnectError(f"{question.reference.id} could not be repeated: {trouble}")
        notify(f"run {folder.name}" + (f" ({number} of {times})" if times > 1 else ""))
        if outcome is LoadOutcome.INTERRUPTED:
            raise KeyboardInterrupt
        run = run_figures(folder)
        if outcome is not LoadOutcome.COMPLETE:
            raise LoadError(
                f"{question.reference.id} could not be repeated: {_trouble(folder)}; {run.id} keeps what was "
                "measured"
            )
        if run.asked != question.reference.asked:
            raise UsageError(
                f"{run.id} did not send the same load as {question.reference.id}: "
                f"{_unlike(question.reference, run)}"
            )
        found.append(run)
    return found


def _trouble(folder: Path) -> str:
    return read_load(folder).answer.removesuffix(".")


def _unlike(before: RunFigures, after: RunFigures) -> str:
    names = dict.fromkeys((*before.asked, *after.asked))
    differing = (name for name in names if before.asked.get(name) != after.asked.get(name))
    name = next(differing)
    return f"{name} was {before.asked.get(name)}, and is now {after.asked.get(name)}"


def _past(root: Path, question: Question, new: Sequence[RunFigures]) -> ComparablePast:
    without = [run.id for run in new]
    before_s = min(map(seconds_of, new)) if question.wanted.stored else float("inf")
    how = (
        f"uncork guard {question.reference.id} --times {KNOWN_RUNS} measures some for the next "
        "guard to compare "
        "with"
    )
    everything = question.wanted.everything
    return find_past(
        root, question.reference, without=without, before_s=before_s, how=how, everything=everything
    )


def _left_out(comparable_past: ComparablePast) -> str:
    """Return a warning if comparable runs were left out of the history; empty if none were."""
    if not comparable_past.broken:
        return ""
    them = "it" if comparable_past.broken == 1 else "them"
    many = count_words(comparable_past.broken, "comparable run")
    return f"{many} left out: a guard found {them} broken (--all includes {them})"


def _baseline(comparable_past: ComparablePast, found: Sequence[Found]) -> GuardSide:
    if comparable_past.baseline is not None:
        run = comparable_past.baseline
        return GuardSide("baseline", f"the run named {BASELINE}, {run.id}", (_day(run),), run.commit)
    many = max((entry.like for entry in found), default=0)
    if not many:
        return GuardSide("baseline", "its earlier comparable runs (there are none yet)")
    first, last = comparable_past.runs[-many], comparable_past.runs[-1]
    title = f"the median of {count_words(many, 'earlier comparable run')}"
    return GuardSide("baseline", title, (f"{_day(first)} to {_day(last)}",), last.commit)


def _candidate(question: Question, new: Sequence[RunFigures]) -> GuardSide:
    run = new[-1]
    times = f", {len(new)} times" if len(new) > 1 else ""
    title = run.id if question.wanted.stored else f"{question.reference.id} repeated{times}"
    return GuardSide("candidate", title, (run.server,), run.commit)


def _day(run: RunFigures) -> str:
    return datetime.fromisoformat(run.started_at).strftime("%Y-%m-%d %H:%M")


# ---- a stored experiment, against earlier comparable runs ----


def read_experiment(folder: Path, wanted: GuardRequest) -> Question:
    """Read a stored experiment and the request to guard it.

    Each gate applies to each variant except the baseline, in each cell. A gate on the workload's own metric
    compares the effect with earlier effects. A gate on costs or plans compares them with earlier ones.

    Raises:
        UsageError: if the request does not fit the experiment.
        StoreError: if the run is damaged.
    """
    for side in (wanted.baseline, wanted.candidate):
        if side.says or wanted.same:
            raise UsageError(
                f"--{side.role}: a stored experiment is compared with its comparable runs; guard its file to "
                "compare two sides"
            )
    for option, given in {"--url": wanted.url, "--header": wanted.headers}.items():
        if given:
            raise UsageError(f"{option} is for stored loads; {folder.name} is an experiment")
    if wanted.stored and wanted.times > 1:
        raise UsageError("--stored measures nothing: leave out --times")
    with closing(RunReader(folder)) as reader:
        spec, name = run_source(reader).spec, reader.manifest.name
    gates = tuple(dict.fromkeys((*map(parse_gate, wanted.gates), *spec.guard.parsed)))
    for message in check_gates(spec, gates):
        raise UsageError(message)
    places = tuple(place for gate in gates or default_gates(spec) for place in _places(gate, spec))
    return Question(folder, run_figures(folder), name, places, wanted, drawn_seed(wanted), known_of(wanted))


def measure_experiment(root: Path, question: Question, notify: Tell) -> Callable[[], list[RunFigures]]:
    """Return a function that measures the experiment again, as often as requested, with new seeds.

    Raises UsageError if it was measured on an existing server, and the request names none.
    """
    wanted = question.wanted
    with closing(RunReader(question.folder)) as reader:
        if reader.manifest.server.startswith("existing") and wanted.choice.dsn is None:
            raise UsageError(
                f"run {reader.manifest.id} was measured on {reader.manifest.server}; name that server with "
                "--dsn"
            )
    seeds = iter(range(question.seed, question.seed + 1_000))

    def once() -> RunFigures:
        given = wanted.options
        changes = Options(budget_ns=given.budget_ns, precision=given.precision, seed=next(seeds))
        with closing(RunReader(question.folder)) as reader:
            source = run_source(reader, changes)
        session = new_run(root, source, wanted.choice)
        notify(f"run {session.folder.name}")
        for _ in session.events():
            pass
        return run_figures(session.folder)

    return lambda: [once() for _ in range(wanted.times)]


def _places(gate: Gate, spec: Spec) -> Iterator[Place]:
    """Yield each place where a gate applies: every compared variant in every cell."""
    metric = metric_of(gate)
    if metric.source == "size":
        others = [name for name in spec.variants if name != spec.baseline]
        for cell, variant in product(cells(spec), others):
            find = partial(_size, f"{variant}{cell.at}")
            levels = (("variant", variant), *cell.levels)
            yield Place(gate, find, "the sizes of its tables and indexes are not stored", "", levels)
    for workload in gate_workloads(gate, spec):
        own = spec.workloads[workload].metric == gate.metric
        for cell in cells(spec):
            for variant in spec.compared(workload):
                if variant == spec.baseline:
                    continue
                subject = f"{variant} on {workload}{cell.at}"
                levels = (("variant", variant), *cell.levels)
                if metric.source == "plan":
                    yield Place(gate, lambda _: None, "", workload, levels, partial(_shapes, subject))
                    continue
                names = (metric.title,) if metric.source == "own" else FIGURES.get(gate.metric, ())
                names = (f"against {spec.baseline}",) if own else names
                missing = _missing(gate, spec, workload, cell)
                yield Place(gate, partial(_figure, subject, names), missing, workload, levels)


def _figure(subject: str, names: tuple[str, ...], run: RunFigures) -> Figure | None:
    found = (run.figure((subject, name)) for name in names)
    # A metric of the file can be 0 or less, which has no ratio to the past.
    return next(
        (figure for figure in found if figure is not None and (figure.scale != "ratio" or figure.value > 0)),
        None,
    )


def _size(subject: str, run: RunFigures) -> Figure | None:
    found = [
        figure for figure in run.figures if figure.subject == subject and figure.name.startswith("size of ")
    ]
    total = sum(figure.value for figure in found)
    return Figure(subject, "size", total, "B", "lower", "exact") if found else None


def _shapes(subject: str, run: RunFigures) -> str | None:
    found = [f"{plan.statement}\n{plan.shape}" for plan in run.plans if plan.subject == subject]
    return "\n".join(found) if found else None


def _missing(gate: Gate, spec: Spec, workload: str, cell: Cell) -> str:
    title, own = metric_of(gate).title, spec.workloads[workload].metric
    if gate.metric in FIGURES and metric_of(gate).source in ("latency", "rate"):
        return f"the workload is compared by {GATE_METRICS[own].title}, so no effect on {title} is stored"
    above = " above 0" if metric_of(gate).source == "own" else ""
    return f"a stored experiment holds no {title}{above} for it{cell.at}"
