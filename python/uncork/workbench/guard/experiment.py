"""Guard an experiment: measure two sides side by side, judge each gate, and confirm what looks broken."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from uncork import __version__
from uncork.analysis.experiment.result import build_result
from uncork.analysis.guard.explanations import explained
from uncork.analysis.guard.gates import GateJudge, Judged, Place, check_of
from uncork.errors import UncorkError, UsageError
from uncork.experiment.guard.experiment import guarded
from uncork.experiment.spec.gates import check_gates, default_gates, parse_gate
from uncork.experiment.spec.schema import Spec
from uncork.model.results.guard import Gate, GateCheck, GuardResult, guard_status
from uncork.model.trial import Cell
from uncork.model.units import format_duration
from uncork.report.experiment.conduct import lost_words
from uncork.report.guard.answer import answer_guard
from uncork.requests.guard import GuardRequest, Tell, command_text
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source, made_source
from uncork.stats.gates.decision import CONFIRMATION
from uncork.stats.sample import UnitKind
from uncork.store.query import RunReader
from uncork.store.run_documents import read_hosts
from uncork.workbench.experiment.session import ExperimentSession, Start, new_run, resume_run
from uncork.workbench.guard.acknowledged import acknowledge_from, known_file
from uncork.workbench.guard.confirming import Judgement, measure_and_confirm, unconfirmed
from uncork.workbench.guard.sides import Sides, opened_sides, server_choice
from uncork.workbench.guard.store import StoredRequest, write_guard, write_request

BUDGET_NS: Final = 300 * 10**9
"""The default budget of each of the two measurements. With it, 9 of 10 guards find a planted
regression of 5 % in both (simulated; `bench/guard_pairs.py` measures it)."""
_ROUNDS: Final = 400
"""The default maximum of rounds; the budget ends a guard earlier."""

Measure = Callable[[ExperimentSession], None]
"""Runs a session to its end and shows its progress."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What a guard measures, where, and its request.

    An undecided gate is given up when its interval is as narrow as `precise`; never if None. `called` is the
    name of the experiment in messages. `begun` is the monotonic clock at the start, in seconds.
    """

    root: Path
    source: Source
    gates: tuple[Gate, ...]
    choice: ServerChoice
    request: StoredRequest
    precise: float | None
    called: str
    begun: float
    start: Start = new_run

    @property
    def spec(self) -> Spec:
        """The derived experiment."""
        return self.source.spec


def guard_experiment(
    root: Path, wanted: GuardRequest, measure: Measure, notify: Tell, start: Start = new_run
) -> GuardResult:
    """Measure both sides of an experiment, judge the gates, confirm broken ones, and store the result.

    `start` starts the runs: on this machine, or on several hosts. If the guard is interrupted, what
    was measured is judged and stored, but no gate is reported broken.

    Raises:
        UsageError: if a side, a gate or an option is wrong, or both sides are the same.
        SpecError: if a side's file is wrong.
        SetupError: if a commit cannot be checked out or built, or the data cannot be created.
        RunError, KeyboardInterrupt: if the measurement failed or was interrupted.
    """
    begun = time.monotonic()
    choice = server_choice(wanted)
    cli_gates = tuple(map(parse_gate, wanted.gates))
    with opened_sides(wanted) as sides:
        guard = replace(_prepare(root, wanted, sides, choice, cli_gates, begun), start=start)
        for sentence in guard.request.overridden:
            notify(sentence)
        sides.build(notify)
        return carry_on(guard, measure, notify)


# ---- before ----


def _prepare(
    root: Path,
    wanted: GuardRequest,
    sides: Sides,
    choice: ServerChoice,
    demanded: tuple[Gate, ...],
    begun: float,
) -> Guard:
    made = guarded(sides.baseline, sides.candidate, wanted.variant, {})
    if made.same and not wanted.same:
        raise UsageError(
            f"both sides are the same: {made.baseline.title}; name a difference (--candidate "
            "setting=work_mem:4MB, --baseline commit=HEAD, ...), or use --same to test the guard itself"
        )
    options = replace(wanted.options, workloads=())
    spec = made_source(made.text, made.files, options, _called(wanted)).spec
    # Gates on workloads that are not measured are left out.
    in_file = (gate for gate in sides.candidate.spec.guard.parsed if gate.workload in ("", *spec.workloads))
    gates = tuple(dict.fromkeys((*demanded, *in_file))) or default_gates(spec)
    troubles = list(check_gates(spec, gates))
    if troubles:
        raise UsageError("; ".join(troubles))
    changes: dict[str, Any] = {"guard": {"gates": [gate.text for gate in gates]}}
    if wanted.evidence:
        changes["experiment"] = {"evidence": list(wanted.evidence)}
    made = guarded(sides.baseline, sides.candidate, wanted.variant, changes)
    source = made_source(made.text, made.files, _budgeted(options, made.text), _called(wanted))
    known = known_file(sides.folder / "_", sides.candidate.spec.guard.acknowledged, wanted.acknowledged)
    acknowledge_from(known, ())
    request = StoredRequest(
        baseline=made.baseline,
        candidate=made.candidate,
        overridden=made.told,
        command=command_text(wanted.words),
        confirm=wanted.confirm,
        acknowledged=str(known.absolute()),
        checkouts=_needs_checkouts(wanted, sides, made.text, known),
    )
    if request.checkouts and wanted.on_hosts:
        raise UsageError(
            "services of this experiment run from files of this machine, which other hosts do not have: "
            "leave out --hosts"
        )
    source = unhurried(source)
    return Guard(root, source, gates, choice, request, wanted.options.precision, _called(wanted), begun)


def _needs_checkouts(wanted: GuardRequest, sides: Sides, text: str, known: Path) -> bool:
    """Return whether a guard needs files of checkouts or a working tree that its run does not store."""
    ran = any(side.checkout and side.checkout in text for side in (sides.baseline, sides.candidate))
    away = wanted.acknowledged is None and sides.folder != Path(wanted.target).parent
    return ran or (away and known.is_file())


def _called(wanted: GuardRequest) -> str:
    """Return the name of the derived experiment in messages; its line numbers are not those of the file."""
    return f"{wanted.target}, as guarded"


def _budgeted(options: Options, text: str) -> Options:
    if options.budget_ns is not None or "budget" in tomllib.loads(text).get("stop", {}):
        return options
    return replace(options, budget_ns=BUDGET_NS)


def unhurried(source: Source) -> Source:
    """Raise the default maximum of rounds, so that the budget ends a guard."""
    stop = source.spec.stop
    if "maximum_rounds" in tomllib.loads(source.text).get("stop", {}):
        return source
    changed = source.spec.model_copy(update={"stop": stop.model_copy(update={"maximum_rounds": _ROUNDS})})
    return replace(source, spec=changed)


# ---- measuring ----


def carry_on(
    guard: Guard, measure: Measure, notify: Tell, folder: Path | None = None, spent_ns: int = 0
) -> GuardResult:
    """Measure, judge, measure again what looks broken, and store what was found.

    A guard that was interrupted goes on in its `folder`, with what is left of its budget after
    `spent_ns`. Raises UncorkError or KeyboardInterrupt: see `guard_experiment`.
    """
    session, judge = _session(guard, guard.source, guard.gates, None, folder=folder, spent_ns=spent_ns)
    sides = _SideBySide(guard, measure, session, judge)
    try:
        checks = measure_and_confirm(
            sides.measure,
            partial(acknowledge_from, Path(guard.request.acknowledged)),
            notify,
            twice=guard.request.confirm,
            length=f" with another seed (at most {format_duration(guard.spec.stop.budget)})",
        )
    except (UncorkError, KeyboardInterrupt):
        if session.measured():
            _keep(guard, session.folder, sides.unconfirmed(), sides.confirmations())
            if sides.first is None and not guard.request.checkouts and not session.then:
                notify(f"resume with: uncork guard --resume {session.folder.name}")
        raise
    return _keep(guard, session.folder, checks, sides.confirmations())


@dataclass(slots=True)
class _SideBySide:
    """Measures and judges both sides: in the run of `session`, then in a second one what looked broken."""

    guard: Guard
    run: Measure
    session: ExperimentSession
    judge: GateJudge
    first: list[Judged] | None = None
    second: ExperimentSession | None = None

    def measure(self, broken: Collection[Hashable] | None) -> list[Judgement]:
        """Measure and judge: see `measure_and_confirm`."""
        if broken is None or self.first is None:
            self.run(self.session)
            self.first = self.judge.judged()
            return list(map(_judgement, self.first))
        again = [judged for judged in self.first if judged.place in broken]
        self.second, judge = _confirming(self.guard, self.session.folder.name, again)
        self.run(self.second)
        return list(map(_judgement, judge.judged()))

    def unconfirmed(self) -> tuple[GateCheck, ...]:
        """Return what was found until an interruption; nothing in it is broken."""
        if self.first is None:
            return unconfirmed(list(map(_judgement, self.judge.judged())), "the guard was interrupted")
        return unconfirmed(list(map(_judgement, self.first)), "the second measurement was interrupted")

    def confirmations(self) -> tuple[str, ...]:
        """Return the id of the run that measured again, unless there is none or it left nothing."""
        return (self.second.folder.name,) if self.second is not None and self.second.folder.is_dir() else ()


def _judgement(judged: Judged) -> Judgement:
    return Judgement(judged.place, judged.decision, partial(check_of, judged))


def _session(
    guard: Guard,
    source: Source,
    gates: Sequence[Gate],
    only: frozenset[Place] | None,
    *,
    confirms: str = "",
    folder: Path | None = None,
    spent_ns: int = 0,
) -> tuple[ExperimentSession, GateJudge]:
    """Start a run that measures until its gates are decided, and return it with its judge.

    `confirms` is the id of the guard's first run, if this is the second. With `folder`, that run is resumed.
    """
    made: list[GateJudge] = []

    def until(folder: Path) -> GateJudge:
        with closing(RunReader(folder)) as reader:
            unit: UnitKind = "block" if reader.manifest.unit == "block" else "round"
        judge = GateJudge(
            folder,
            source.spec,
            gates,
            unit=unit,
            confidence=CONFIRMATION if confirms else guard.spec.stop.confidence,
            only=only,
            precise=guard.precise,
        )
        made.append(judge)
        return judge

    if folder is not None:
        return resume_run(folder, source, guard.choice, until, spent_ns=spent_ns), made[0]
    session = guard.start(guard.root, source, guard.choice, until)
    write_request(session.folder, replace(guard.request, confirms=confirms))
    return session, made[0]


def _confirming(guard: Guard, first: str, broken: Sequence[Judged]) -> tuple[ExperimentSession, GateJudge]:
    """Start the second measurement: a new seed, a new server, only workloads and cells of broken gates."""
    spec = guard.spec
    workloads = [name for name in spec.workloads if name in {judged.place.workload for judged in broken}]
    levels = {
        factor: [
            level
            for level in spec.levels(factor)
            if level in {dict(judged.place.cell.levels)[factor] for judged in broken}
        ]
        for factor in spec.factors
    }
    options = replace(
        guard.source.options,
        workloads=tuple(workloads or spec.workloads),
        levels=levels,
        seed=spec.experiment.seed + 1,
    )
    source = unhurried(made_source(guard.source.text, guard.source.files, options, guard.called))
    gates = tuple(dict.fromkeys(judged.place.gate for judged in broken))
    only = frozenset(judged.place for judged in broken)
    return _session(guard, source, gates, only, confirms=first)


# ---- what is kept ----


def _keep(guard: Guard, folder: Path, checks: Sequence[GateCheck], more: tuple[str, ...]) -> GuardResult:
    with closing(RunReader(folder)) as reader:
        manifest = reader.manifest
    result = build_result(folder)
    order = {
        Cell(place): number for number, place in enumerate(dict.fromkeys(check.cell for check in checks))
    }
    ordered = tuple(sorted(checks, key=lambda check: order[Cell(check.cell)]))
    known = acknowledge_from(Path(guard.request.acknowledged), ordered)
    found = known.checks
    measured = [read_hosts(folder.with_name(name)) for name in (manifest.id, *more)]
    made = GuardResult(
        id=manifest.id,
        question=guard.spec.experiment.question,
        against="side by side",
        baseline=guard.request.baseline,
        candidate=guard.request.candidate,
        status=guard_status(found),
        answer="",
        reasons=(),
        checks=found,
        plans=(),
        runs=(manifest.id, *more),
        confidence=guard.spec.stop.confidence,
        elapsed_ns=round((time.monotonic() - guard.begun) * 1e9),
        reproduce=guard.request.command,
        uncork_version=__version__,
        started_at=manifest.started_at,
        warnings=(*guard.request.overridden, *lost_words(result.hosts), *result.warnings),
        unused=known.unused,
        name=guard.spec.experiment.name.removeprefix("guard-"),
        hosts=min(map(len, measured)),
        waves=min(len({wave for host in hosts for wave in host.waves}) for hosts in measured),
    )
    made = answer_guard(explained(made, folder, result))
    for name in made.runs:
        write_guard(folder.with_name(name), made)
    return made
