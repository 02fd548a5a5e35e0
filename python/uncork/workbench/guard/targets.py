"""Guard two targets: send a stored load to both in turn, and judge each gate."""

from __future__ import annotations

import random
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from uncork.analysis.runs.environments import unasked_differences
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import POINTS, PRACTICAL
from uncork.errors import UsageError
from uncork.experiment.guard.gate_evidence import GateEvidence, gate_evidence
from uncork.experiment.guard.sides import Side
from uncork.experiment.guard.turns import Role, turn_ns
from uncork.model.records import build_from
from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import Gate, GateCheck, GateOutcome, GuardSide, metric_of
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.units import format_count
from uncork.requests.guard import Tell, command_text, headers_of
from uncork.stats.gates.decision import CONFIRMATION, Decision, GateQuestion, decide
from uncork.workbench.guard.acknowledged import acknowledge_from
from uncork.workbench.guard.confirming import Judgement, measure_and_confirm
from uncork.workbench.guard.gate_figures import NEEDED
from uncork.workbench.guard.history import CONFIDENCE
from uncork.workbench.guard.question import TURNS, Judged, LoadQuestion
from uncork.workbench.guard.turns import Rows, Turns, measure_turns, place_of_job, together
from uncork.workbench.load.repeating import Job, Target, repeated_job
from uncork.workbench.run_record import RunRecord

BUDGET_NS = 300 * 10**9
"""The default budget of a guard of two targets; confirming has the same budget again."""
_ENOUGH = 1_000
"""The least number of operations in a turn, whatever the gates are about."""
_NOT_RESTARTED = (
    "the targets were not restarted between rounds, so the interval leaves out variation between restarts"
)

Jobs = Mapping[Role, Job]


def jobs_of(question: LoadQuestion) -> tuple[Jobs, str]:
    """Return both sides' jobs, and a sentence on what they share. Does not use the network.

    Raises:
        UsageError: if both sides are the same, a target is of the wrong kind, or a secret is missing.
        ConnectError: if a connection string is wrong.
    """
    wanted = question.wanted
    sides: dict[Role, Side] = {"baseline": wanted.baseline, "candidate": wanted.candidate}
    jobs: dict[Role, Job] = {
        role: repeated_job(
            question.folder,
            Target(side.dsn, side.url),
            headers=headers_of(wanted),
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

    Gates that look broken are measured once more with another seed, on new embedded servers if there are any.

    Raises:
        UncorkError: see `measure_turns`.
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
    """Return the differences between the two servers' facts and settings."""
    base, own = (run_figures(folder / TURNS / f"0000-{role}") for role in ("baseline", "candidate"))
    return tuple(
        difference
        for difference in unasked_differences(base, own)
        if (difference.section, difference.name) != ("server", "place")
    )
