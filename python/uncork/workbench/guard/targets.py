"""Guard two targets: send a stored load to both in turn, and judge each gate."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from uncork.analysis.load.figures import asked_of_load
from uncork.analysis.runs.comparable_runs import unasked_differences
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import POINTS, PRACTICAL
from uncork.errors import ConnectError, LoadError, UsageError
from uncork.experiment.guard.gate_evidence import GateEvidence, gate_evidence
from uncork.experiment.guard.sides import Side
from uncork.experiment.guard.turns import Role, Turn, plan_turns, turn_ns, turn_row
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.records import build_from
from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import Gate, GateCheck, GateOutcome, GuardSide, metric_of
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.server import is_local
from uncork.model.units import format_count, format_duration
from uncork.requests.guard import Tell, command_text
from uncork.requests.jobs import AnyLoad, HttpJob, LoadJob
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.gates.decision import CONFIRMATION, Decision, GateQuestion, decide
from uncork.store.layout import Manifest, closed, write_manifest
from uncork.store.loads import write_environment, write_measurement, write_plan
from uncork.workbench.clock import now_text
from uncork.workbench.guard.acknowledged import acknowledge_from
from uncork.workbench.guard.confirming import Judgement, measure_and_confirm
from uncork.workbench.guard.history import CONFIDENCE
from uncork.workbench.guard.question import NEEDED, TURNS, Judged, LoadQuestion
from uncork.workbench.load.repeating import Target, repeated_job
from uncork.workbench.load.sessions import LoadSession, Notify, checked, load_ending
from uncork.workbench.load.targets import LoadTarget
from uncork.workbench.run_record import RunRecord
from uncork.workbench.signals import uninterrupted

BUDGET_NS = 300 * 10**9
"""The default budget of a guard of two targets; confirming has the same budget again."""
_ENOUGH = 1_000
"""The least number of operations in a turn, whatever the gates are about."""
_NOT_RESTARTED = (
    "the targets were not restarted between rounds, so the interval leaves out variation between restarts"
)

Jobs = Mapping[Role, AnyLoad]


def jobs_of(question: LoadQuestion) -> tuple[Jobs, str]:
    """Return both sides' jobs, and a sentence on what they share. Does not use the network.

    Raises:
        UsageError: if both sides are the same, a target is of the wrong kind, or a secret is missing.
        ConnectError: if a connection string is wrong.
    """
    wanted = question.wanted
    sides: dict[Role, Side] = {"baseline": wanted.baseline, "candidate": wanted.candidate}
    jobs: dict[Role, AnyLoad] = {
        role: repeated_job(
            question.folder,
            Target(side.dsn, side.url),
            headers=wanted.headers,
            command=command_text(wanted.words),
        )
        for role, side in sides.items()
    }
    same, shared = together(jobs["baseline"], jobs["candidate"])
    if same and not wanted.same:
        raise UsageError(
            f"both sides are the same: {place_of_job(jobs['candidate'])}; name another target with "
            "--candidate dsn=... (or url=...), or use --same to test the guard itself"
        )
    return jobs, shared


def judge_targets(run: RunRecord, question: LoadQuestion, jobs: Jobs, shared: str, notify: Tell) -> Judged:
    """Measure both targets in turn until every gate is decided or the budget is used, and judge.

    Gates that look broken are measured once more with another seed, on new embedded servers if
    there are any. Raises UncorkError: see `measure_turns`.
    """

    def measure(broken: Collection[Hashable] | None) -> list[Judgement]:
        if broken is None:
            folder, gates, seed, confidence = run.folder, question.gates, question.seed, CONFIDENCE
        else:
            folder = run.folder / "confirmation"
            gates = tuple(gate for gate in question.gates if gate in broken)
            seed = random.Random(f"{question.seed}/confirmation").getrandbits(31)
            confidence = CONFIRMATION
        turns = _measure(folder, question, jobs, gates, seed, confidence, notify)
        run.rounds, run.reason = run.rounds + turns.rounds, run.reason or turns.reason
        return [
            Judgement(gate, decision, partial(_check, gate, evidence, turns.rounds))
            for gate, evidence, decision in zip(gates, *_judged(gates, turns.rows, confidence), strict=True)
        ]

    acknowledge = partial(acknowledge_from, question.acknowledged)
    known = acknowledge(measure_and_confirm(measure, acknowledge, notify, twice=question.wanted.confirm))
    warnings = (*((shared,) if shared else ()), _NOT_RESTARTED, *_short_turns(question))
    return Judged(
        checks=known.checks,
        baseline=_side("baseline", jobs),
        candidate=_side("candidate", jobs),
        runs=(run.folder.name,),
        rounds=run.rounds,
        warnings=warnings,
        unused=known.unused,
        settings=_settings(run.folder),
    )


def _measure(
    folder: Path,
    question: LoadQuestion,
    jobs: Jobs,
    gates: Sequence[Gate],
    seed: int,
    confidence: float,
    notify: Tell,
) -> Turns:
    def decided(rows: Rows) -> bool:
        _, decisions = _judged(gates, rows, confidence)
        return all(decision.outcome is not GateOutcome.UNDECIDED for decision in decisions)

    return measure_turns(
        folder,
        jobs,
        seed=seed,
        turn_ns=_turn_ns(question),
        budget_ns=_budget_ns(question),
        scripts=sorted({_script(gate, question.scripts) for gate in gates} - {""}),
        decided=decided,
        notify=notify,
    )


def _budget_ns(question: LoadQuestion) -> int:
    return question.wanted.options.budget_ns or BUDGET_NS


def _turn_ns(question: LoadQuestion) -> int:
    """Return the length of a turn: enough operations for the metric of each gate, if the budget allows it."""
    throughput = question.reference.figure(("", "throughput"))
    needed = max([_ENOUGH, *(NEEDED.get(gate.metric, 0) for gate in question.gates)])
    return turn_ns(0.0 if throughput is None else throughput.value, needed, _budget_ns(question))


def _short_turns(question: LoadQuestion) -> Iterator[str]:
    """Yield a warning for each percentile that a turn holds too few operations for."""
    throughput = question.reference.figure(("", "throughput"))
    held = 0.0 if throughput is None else throughput.value * _turn_ns(question) / 1e9
    for metric in dict.fromkeys(gate.metric for gate in question.gates):
        if held < NEEDED.get(metric, 0):
            yield (
                f"a turn holds about {held:.0f} operations, but {GATE_METRICS[metric].title} needs "
                f"{format_count(NEEDED[metric])}: it is close to the maximum"
            )


def _script(gate: Gate, scripts: Sequence[str]) -> str:
    """Return the script whose rows a gate reads; empty for a load of one script, and for all scripts."""
    return gate.workload if len(scripts) > 1 else ""


def _judged(
    gates: Sequence[Gate], rows: Rows, confidence: float
) -> tuple[list[GateEvidence], list[Decision]]:
    scripts = [name for name in rows if name] or [""]
    found = [
        gate_evidence(
            gate,
            rows[_script(gate, scripts) if gate.workload in rows else ""],
            baseline="baseline",
            candidate="candidate",
            confidence=confidence,
        )
        for gate in gates
    ]
    asked = [
        GateQuestion(gate, evidence.evidence, POINTS if metric_of(gate).source == "share" else PRACTICAL)
        for gate, evidence in zip(gates, found, strict=True)
    ]
    return found, decide(asked, confidence=confidence)


def _check(gate: Gate, found: GateEvidence, rounds: int, decision: Decision) -> GateCheck:
    return build_from(
        GateCheck,
        decision,
        gate=gate,
        cell=(),
        workload=gate.workload,
        baseline=found.baseline,
        candidate=found.candidate,
        unit=metric_of(gate).unit,
        rounds=decision.rounds or rounds,
        by_round=found.by_round,
    )


def _side(role: Role, jobs: Jobs) -> GuardSide:
    place = place_of_job(jobs[role])
    return GuardSide(role, place, (place,))


def _settings(folder: Path) -> tuple[EnvironmentDifference, ...]:
    base, own = (run_figures(folder / TURNS / f"0000-{role}") for role in ("baseline", "candidate"))
    return tuple(
        difference
        for difference in unasked_differences(base, own)
        if (difference.section, difference.name) != ("server", "place")
    )


# ---- the turns: one load to two targets ----


Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""By script, one row for each turn; the empty name stands for the load as a whole."""
_ROLES: Final[tuple[Role, Role]] = ("baseline", "candidate")


@dataclass(slots=True)
class Turns:
    """What was measured: rows by script, the number of rounds, and why measuring ended."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    rounds: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Side:
    target: LoadTarget
    session: LoadSession
    environment: Mapping[str, Mapping[str, str]]


def measure_turns(
    folder: Path,
    jobs: Mapping[Role, AnyLoad],
    *,
    seed: int,
    turn_ns: int,
    budget_ns: int,
    scripts: Sequence[str],
    decided: Callable[[Rows], bool],
    notify: Notify,
) -> Turns:
    """Measure rounds until every gate is decided or the budget is used.

    A round that would probably exceed the budget is not started. `scripts` are the scripts that gates name.

    Raises:
        UsageError: if the two sides would be sent different things, or the load cannot be sent.
        ConnectError: if a server cannot be reached, or refuses the connection.
        LoadError: if a target goes away; the turns before that are kept.
        KeyboardInterrupt: the turns before that are kept.
    """
    found, begun = Turns(), time.monotonic_ns()
    with ExitStack() as stack:
        sides = {role: stack.enter_context(_opened(folder, role, jobs[role], notify)) for role in _ROLES}
        _refuse_unlike(sides)
        for role in _ROLES:
            _carry_out(folder, sides[role], Turn(0, 0, 0, role), turn_ns)
        longest = 0
        while True:
            before = time.monotonic_ns()
            for turn in plan_turns(seed, found.rounds + 1):
                measured = _carry_out(folder, sides[turn.role], turn, turn_ns)
                for script in ("", *scripts):
                    found.rows[script].append(turn_row(turn, measured, script))
            found.rounds += 1
            now = time.monotonic_ns()
            longest = max(longest, now - before)
            if found.rounds >= MINIMUM_ROUNDS and decided(found.rows):
                found.reason = "every gate is decided"
                return found
            spent = now - begun
            notify(
                f"round {found.rounds} done: {format_duration(spent)} of {format_duration(budget_ns)} spent"
            )
            if spent + longest > budget_ns:
                found.reason = f"the budget of {format_duration(budget_ns)} is spent"
                return found


@contextmanager
def _opened(folder: Path, role: Role, job: AnyLoad, notify: Notify) -> Iterator[_Side]:
    """Prepare one target; stop its server afterwards if uncork started it."""
    place = folder / role
    place.mkdir(parents=True, exist_ok=True)
    session = checked(job)
    manifest = session.manifest("load", role, f"the {role}'s turn in a guard")
    session.begin(RunRecord(place, manifest))
    with session.driven(lambda text: notify(f"{role}: {text}")) as target:
        yield _Side(target, session, json.loads((place / "environment.json").read_text()))


def _refuse_unlike(sides: Mapping[Role, _Side]) -> None:
    """Refuse sides that would be sent different things, such as pgbench's scripts at different scales."""
    base, own = (asked_of_load(sides[role].target.plan()) for role in _ROLES)
    for name in dict.fromkeys((*base, *own)):
        if base.get(name) != own.get(name):
            raise UsageError(
                f"the two sides would not be sent the same: {name} is {base.get(name)} for the baseline and "
                f"{own.get(name)} for the candidate; give both the same tables (uncork load sql -i -s)"
            )


def _carry_out(folder: Path, side: _Side, turn: Turn, turn_ns: int) -> LoadMeasurement:
    started, draft = now_text(), side.session.record.manifest
    begun = time.monotonic_ns()
    target = side.target.turn(turn.number, turn_ns)
    measured = target.carry_out()
    with uninterrupted():
        place = folder / TURNS / f"{turn.number:04d}-{turn.role}"
        manifest = replace(
            draft,
            id=place.name,
            name=place.name,
            seed=draft.seed + turn.number,
            started_at=started,
        )
        _keep(place, manifest, target, side.environment, measured, time.monotonic_ns() - begun)
    _refuse_failure(turn, measured)
    return measured


def _keep(
    place: Path,
    manifest: Manifest,
    target: LoadTarget,
    environment: Mapping[str, Mapping[str, str]],
    measured: LoadMeasurement,
    elapsed_ns: int,
) -> None:
    place.mkdir(parents=True)
    write_plan(place, target.plan())
    write_environment(place, environment)
    write_measurement(place, measured)
    write_manifest(place, closed(manifest, *load_ending(measured.totals), elapsed_ns))


def _refuse_failure(turn: Turn, measured: LoadMeasurement) -> None:
    totals = measured.totals
    if totals.outcome is LoadOutcome.INTERRUPTED:
        raise KeyboardInterrupt
    if totals.outcome is not LoadOutcome.COMPLETE:
        reason = totals.message or totals.first_error or totals.outcome
        if turn.number == 0:
            raise ConnectError(f"the {turn.role} cannot be reached, or refuses the connection: {reason}")
        raise LoadError(f"the {turn.role} went away in round {turn.round} (earlier turns are kept): {reason}")


# ---- where they are ----


def place_of_job(job: AnyLoad) -> str:
    """Return where a job sends its load, without secrets."""
    if isinstance(job, HttpJob):
        return job.spec.server.place
    return "an embedded server" if job.server.embedded else job.server.address().place


def together(base: AnyLoad, own: AnyLoad) -> tuple[bool, str]:
    """Return whether two jobs have the same target, and else a sentence on what the targets share, if any."""
    if isinstance(base, HttpJob) and isinstance(own, HttpJob):
        one, other = base.spec.server, own.spec.server
        if (one.host, one.port, one.tls) == (other.host, other.port, other.tls):
            return True, ""
        return False, _sharing("services", one.host, other.host)
    addresses = [
        None if job.server.embedded else job.server.address()
        for job in (base, own)
        if isinstance(job, LoadJob)
    ]
    first, last = addresses
    if first is None or last is None:
        hosts = [
            "localhost" if address is None else address.hostaddr or address.host for address in addresses
        ]
        return first is last, _sharing("servers", *hosts)
    hosts = [address.hostaddr or address.host for address in (first, last)]
    if (hosts[0], first.port) == (hosts[1], last.port):
        same = (first.database, first.user, first.options) == (last.database, last.user, last.options)
        shared = (
            "both sides are on one server and share its settings, buffers, WAL and background work: only "
            "what differs between the databases is compared"
        )
        return same, "" if same else shared
    return False, _sharing("servers", *hosts)


def _sharing(what: str, one: str, other: str) -> str:
    if is_local(one) and is_local(other):
        return (
            f"both {what} share this machine with the generator: only one is loaded at a time, but the "
            "background work of each affects both"
        )
    if one == other:
        return f"both {what} share the machine {one}: the background work of each affects both"
    return ""
