"""Guard an experiment: two sides side by side, each gate judged, what is broken measured once more."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from uncork import __version__
from uncork.analysis.experiment.result import build_result
from uncork.analysis.guard.evidence import explained
from uncork.analysis.guard.gates import GateJudge, Judged, Place, check_of
from uncork.errors import UncorkError, UsageError
from uncork.experiment.guard.experiment import guarded
from uncork.experiment.spec.gates import default_gates, parse_gate
from uncork.experiment.spec.guard import check_gates
from uncork.experiment.spec.schema import Spec
from uncork.model.results.guard import Gate, GateCheck, GateOutcome, GuardResult, guard_status
from uncork.model.trial import Cell
from uncork.model.units import format_duration
from uncork.report.guard.answer import answer_guard
from uncork.report.words import count_words
from uncork.requests.guard import GuardRequest, Tell, command_text
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source, made_source
from uncork.stats.gates.decision import CONFIRMATION, confirm
from uncork.stats.sample import UnitKind
from uncork.store.query import RunReader
from uncork.workbench.experiment.session import RunSession, new_run, resume_run
from uncork.workbench.guard.acknowledged import acknowledge_from, known_file
from uncork.workbench.guard.asked import GuardAsked, write_asked
from uncork.workbench.guard.sides import Sides, asked_sides, server_choice
from uncork.workbench.guard.store import write_guard

__all__ = ["BUDGET_NS", "Guard", "Measure", "carry_on", "guard_experiment", "unhurried"]

BUDGET_NS: Final = 300 * 10**9
"""The longest that either measurement takes where neither the file nor the command line says: by then a
planted regression of 5 % is found by both in 9 of 10 guards (simulated; `bench/guard_pairs.py` tries)."""
_ROUNDS: Final = 400
"""The most rounds, where the file says nothing: the budget ends a guard before."""

Measure = Callable[[RunSession], None]
"""Runs a session to its end, showing how it goes."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What is measured, where, and how it was asked.

    A gate that is not decided is given up when its interval is as narrow as `precise`; never if None.
    `called` is what messages call the experiment. `begun` is the monotonic clock when it began, in seconds.
    """

    root: Path
    source: Source
    gates: tuple[Gate, ...]
    choice: ServerChoice
    asked: GuardAsked
    precise: float | None
    called: str
    begun: float

    @property
    def spec(self) -> Spec:
        """The derived experiment."""
        return self.source.spec


def guard_experiment(root: Path, wanted: GuardRequest, measure: Measure, tell: Tell) -> GuardResult:
    """Measure both sides of an experiment, judge the gates, confirm what is broken, and keep what was found.

    What was measured until an interruption is judged and kept, too: nothing in it is an alarm.

    Raises:
        UsageError: if a side, a gate or an option is wrong, or both sides are the same.
        SpecError: if a side's file is wrong.
        SetupError: if a commit cannot be checked out or built, or the data not be made.
        RunError, KeyboardInterrupt: what broke the measurement off.
    """
    begun = time.monotonic()
    choice = server_choice(wanted)
    cli_gates = tuple(map(parse_gate, wanted.gates))
    with asked_sides(wanted) as sides:
        guard = _prepare(root, wanted, sides, choice, cli_gates, begun)
        for sentence in guard.asked.told:
            tell(sentence)
        sides.build(tell)
        return carry_on(guard, measure, tell)


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
            f"both sides are the same: {made.baseline.title}; say what the candidate is (--candidate "
            "setting=work_mem:4MB, --baseline commit=HEAD, ...), or --same to guard nothing at all"
        )
    options = replace(wanted.options, workloads=())
    spec = made_source(made.text, made.files, options, _called(wanted)).spec
    gates = tuple(dict.fromkeys((*demanded, *_file_gates(sides.candidate.spec, spec)))) or default_gates(spec)
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
    asked = GuardAsked(
        baseline=made.baseline,
        candidate=made.candidate,
        told=made.told,
        command=command_text(wanted.words),
        confirm=wanted.confirm,
        acknowledged=str(known.absolute()),
        own=choice.own,
        checkouts=_needs_checkouts(wanted, sides, made.text, known),
    )
    source = unhurried(source)
    return Guard(root, source, gates, choice, asked, wanted.options.precision, _called(wanted), begun)


def _needs_checkouts(wanted: GuardRequest, sides: Sides, text: str, known: Path) -> bool:
    """Say whether a guard needs more of checkouts or of a working tree than what its run keeps."""
    ran = any(side.checkout and side.checkout in text for side in (sides.baseline, sides.candidate))
    away = wanted.acknowledged is None and sides.folder != Path(wanted.target).parent
    return ran or (away and known.is_file())


def _called(wanted: GuardRequest) -> str:
    """Return what messages call the experiment that was made: lines in it are not those of the file."""
    return f"{wanted.target}, as guarded"


def _file_gates(asked: Spec, spec: Spec) -> tuple[Gate, ...]:
    """Return the gates of the candidate's file, without those of workloads that are not measured."""
    return tuple(gate for gate in asked.guard.parsed if not gate.workload or gate.workload in spec.workloads)


def _budgeted(options: Options, text: str) -> Options:
    if options.budget_ns is not None or "budget" in tomllib.loads(text).get("stop", {}):
        return options
    return replace(options, budget_ns=BUDGET_NS)


def unhurried(source: Source) -> Source:
    """Let the budget end a guard, not a number of rounds that nobody chose."""
    stop = source.spec.stop
    if "maximum_rounds" in tomllib.loads(source.text).get("stop", {}):
        return source
    changed = source.spec.model_copy(update={"stop": stop.model_copy(update={"maximum_rounds": _ROUNDS})})
    return replace(source, spec=changed)


# ---- measuring ----


def carry_on(
    guard: Guard, measure: Measure, tell: Tell, folder: Path | None = None, spent_ns: int = 0
) -> GuardResult:
    """Measure, judge, measure again what is broken, and keep what was found.

    A guard that was interrupted goes on in its `folder`, with what is left of its budget after `spent_ns`.

    Raises:
        UncorkError, KeyboardInterrupt: as `guard_experiment`.
    """
    spec = guard.spec
    session, judge = _session(guard, guard.source, guard.gates, None, folder=folder, spent_ns=spent_ns)
    first: list[Judged] = []
    try:
        measure(session)
        first = judge.judged()
    except (UncorkError, KeyboardInterrupt):
        if session.measured():
            _keep(guard, session.folder, _unconfirmed(judge.judged(), "the guard was interrupted"), ())
            if not guard.asked.checkouts:
                tell(f"go on with: uncork guard --resume {session.folder.name}")
        raise
    checks = [check_of(one) for one in first]
    told = acknowledge_from(_known(guard), tuple(checks)).checks
    broken = [one for one, check in zip(first, told, strict=True) if check.outcome is GateOutcome.BROKEN]
    if not broken or not guard.asked.confirm:
        return _keep(guard, session.folder, checks, ())
    places = count_words(len(broken), "gate")
    tell(
        f"{places} broken: measured once more, with another seed, for at most "
        f"{format_duration(spec.stop.budget)}"
    )
    again, second_judge = _confirming(guard, session.folder.name, broken)
    try:
        measure(again)
    except (UncorkError, KeyboardInterrupt):
        runs = (again.folder.name,) if again.measured() else ()
        unsure = _unconfirmed(first, "the second measurement was interrupted")
        _keep(guard, session.folder, unsure, runs)
        raise
    second = {one.place: one for one in second_judge.judged()}
    checks = _confirmed(first, second, {one.place for one in broken})
    return _keep(guard, session.folder, checks, (again.folder.name,))


def _session(
    guard: Guard,
    source: Source,
    gates: Sequence[Gate],
    only: frozenset[Place] | None,
    *,
    confirms: str = "",
    folder: Path | None = None,
    spent_ns: int = 0,
) -> tuple[RunSession, GateJudge]:
    """Lay out a run that goes on until its gates are decided, and return it with its judge.

    It is the guard's first, or `confirms` that; or it goes on in a `folder`.
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
    session = new_run(guard.root, source, guard.choice, until)
    write_asked(session.folder, replace(guard.asked, confirms=confirms))
    return session, made[0]


def _confirming(guard: Guard, first: str, broken: Sequence[Judged]) -> tuple[RunSession, GateJudge]:
    """Lay out the second measurement: a new seed and server, only workloads and cells in question."""
    spec = guard.spec
    workloads = [name for name in spec.workloads if name in {one.place.workload for one in broken}]
    levels = {
        factor: [
            level
            for level in spec.levels(factor)
            if level in {dict(one.place.cell.levels)[factor] for one in broken}
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
    gates = tuple(dict.fromkeys(one.place.gate for one in broken))
    only = frozenset(one.place for one in broken)
    return _session(guard, source, gates, only, confirms=first)


def _confirmed(
    first: Sequence[Judged], second: Mapping[Place, Judged], asked: Collection[Place]
) -> list[GateCheck]:
    """Return what was found, where it was `asked` for again with what the second measurement says of it."""
    found = []
    for one in first:
        again = second.get(one.place)
        if one.place not in asked:
            found.append(check_of(one))
        elif again is None:
            # What was refused before and is answered now has its gates back, and no refusal.
            reason = f"it looked broken ({one.decision.reason}), but a second measurement did not find it"
            undecided = replace(one.decision, outcome=GateOutcome.UNDECIDED, reason=reason)
            found.append(check_of(one, undecided, confirmed=False))
        else:
            decision, sure = confirm(one.decision, again.decision)
            found.append(check_of(again, decision, confirmed=sure))
    return found


def _unconfirmed(judged: Sequence[Judged], why: str) -> list[GateCheck]:
    """Return what was found, with nothing broken in it: an alarm needs a second measurement."""
    found = []
    for one in judged:
        if one.decision.outcome is not GateOutcome.BROKEN:
            found.append(check_of(one))
            continue
        reason = f"it looks broken ({one.decision.reason}), but {why}"
        decision = replace(one.decision, outcome=GateOutcome.UNDECIDED, reason=reason)
        found.append(check_of(one, decision, confirmed=False))
    return found


# ---- what is kept ----


def _keep(guard: Guard, folder: Path, checks: Sequence[GateCheck], more: tuple[str, ...]) -> GuardResult:
    """Put together what was found, and store it beside each of its runs."""
    with closing(RunReader(folder)) as reader:
        manifest = reader.manifest
    result = build_result(folder)
    order = {Cell(place): number for number, place in enumerate(dict.fromkeys(one.cell for one in checks))}
    known = acknowledge_from(_known(guard), tuple(sorted(checks, key=lambda one: order[Cell(one.cell)])))
    found = known.checks
    made = GuardResult(
        id=manifest.id,
        question=guard.spec.experiment.question,
        against="side by side",
        baseline=guard.asked.baseline,
        candidate=guard.asked.candidate,
        status=guard_status(found),
        answer="",
        reasons=(),
        checks=found,
        plans=(),
        runs=(manifest.id, *more),
        confidence=guard.spec.stop.confidence,
        elapsed_ns=round((time.monotonic() - guard.begun) * 1e9),
        reproduce=guard.asked.command,
        uncork_version=__version__,
        started_at=manifest.started_at,
        warnings=(*guard.asked.told, *result.doubts),
        unused=known.unused,
        name=guard.spec.experiment.name.removeprefix("guard-"),
    )
    made = answer_guard(explained(made, folder, result))
    for name in made.runs:
        write_guard(folder.with_name(name), made)
    return made


def _known(guard: Guard) -> Path:
    return Path(guard.asked.acknowledged)
