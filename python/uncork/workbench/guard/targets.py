"""Send a stored load to two targets side by side, and judge each gate."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from uncork.analysis.runs.environments import unasked_differences
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import POINTS, PRACTICAL
from uncork.errors import UsageError
from uncork.experiment.guard.gate_evidence import GateEvidence, gate_evidence
from uncork.experiment.guard.legs import Role, leg_ns
from uncork.experiment.guard.sides import Side
from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import Gate, GateCheck, GateOutcome, GuardSide
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.units import format_count
from uncork.requests.guard import Tell, command_text, headers_of
from uncork.stats.gates.decision import CONFIRMATION, Asked, Decision, confirm, decide
from uncork.workbench.guard.acknowledged import acknowledge_from
from uncork.workbench.guard.gate_figures import NEEDED
from uncork.workbench.guard.history import CONFIDENCE
from uncork.workbench.guard.legs import Legs, Rows, measure_legs, place_of_job, together
from uncork.workbench.guard.question import LEGS, GuardRun, Judged, LoadQuestion
from uncork.workbench.load.repeating import Job, Target, repeated_job

__all__ = ["BUDGET_NS", "Jobs", "jobs_of", "judge_targets"]

BUDGET_NS = 300 * 10**9
"""What two targets side by side may take by default, and their confirmation once more."""
_ENOUGH = 1_000
"""Operations that a leg is to hold at least, whatever the gates speak of."""
_NOT_RESTARTED = (
    "neither target was restarted between rounds, so what varies between its lives is not in the interval"
)

Jobs = Mapping[Role, Job]


def jobs_of(asked: LoadQuestion) -> tuple[Jobs, str]:
    """Return both sides' jobs, and what they share; nothing is asked over the network.

    Raises:
        UsageError: if both sides are the same, a target is of another kind, or a secret is missing.
        ConnectError: if the words that name a server are wrong.
    """
    wanted = asked.wanted
    sides: dict[Role, Side] = {"baseline": wanted.baseline, "candidate": wanted.candidate}
    jobs: dict[Role, Job] = {
        role: repeated_job(
            asked.folder,
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
            "--candidate dsn=... (or url=...), or let it through with --same to test the guard itself"
        )
    return jobs, shared


def judge_targets(run: GuardRun, asked: LoadQuestion, jobs: Jobs, shared: str, tell: Tell) -> Judged:
    """Measure both targets in turn until every gate is decided or the budget is spent, and judge.

    What is broken is measured once more, with another seed; servers of our own are new ones then.

    Raises:
        UncorkError: as `measure_legs`.
    """
    gates = asked.gates
    first = _measure(run.folder, asked, jobs, gates, asked.seed, CONFIDENCE, tell)
    run.rounds, run.reason = first.rounds, first.reason
    found, decisions = _judged(gates, first.rows, CONFIDENCE)
    known = acknowledge_from(
        asked.acknowledged,
        tuple(
            _check(gate, one, decision, first)
            for gate, one, decision in zip(gates, found, decisions, strict=True)
        ),
    )
    checks = list(known.checks)
    again = [place for place, one in enumerate(checks) if one.outcome is GateOutcome.BROKEN]
    if again and asked.wanted.confirm:
        wanted = tuple(gates[place] for place in again)
        told = ", ".join(f'"{gate.text}"' for gate in wanted)
        tell(f"broken: {told}; measured once more before that is believed")
        seed = random.Random(f"{asked.seed}/confirmation").getrandbits(31)
        folder = run.folder / "confirmation"
        second = _measure(folder, asked, jobs, wanted, seed, CONFIRMATION, tell)
        run.rounds += second.rounds
        found, judged = _judged(wanted, second.rows, CONFIRMATION)
        for place, one, decision in zip(again, found, judged, strict=True):
            merged, holds = confirm(decisions[place], decision)
            checks[place] = replace(_check(gates[place], one, merged, second), confirmed=holds)
    warnings = (*((shared,) if shared else ()), _NOT_RESTARTED, *_short_legs(asked))
    return Judged(
        checks=tuple(checks),
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
    asked: LoadQuestion,
    jobs: Jobs,
    gates: Sequence[Gate],
    seed: int,
    confidence: float,
    tell: Tell,
) -> Legs:
    def decided(rows: Rows) -> bool:
        _, decisions = _judged(gates, rows, confidence)
        return all(one.outcome is not GateOutcome.UNDECIDED for one in decisions)

    return measure_legs(
        folder,
        jobs,
        seed=seed,
        leg_ns=_leg_ns(asked),
        budget_ns=asked.wanted.options.budget_ns or BUDGET_NS,
        scripts=sorted({_script(gate, asked.scripts) for gate in gates} - {""}),
        decided=decided,
        tell=tell,
    )


def _leg_ns(asked: LoadQuestion) -> int:
    """Return how long a leg is: enough operations for each gate's figure."""
    throughput = asked.reference.figure(("", "throughput"))
    needed = max([_ENOUGH, *(NEEDED.get(gate.metric, 0) for gate in asked.gates)])
    return leg_ns(0.0 if throughput is None else throughput.value, needed)


def _short_legs(asked: LoadQuestion) -> Iterator[str]:
    """Say of which percentiles a leg holds too few operations."""
    throughput = asked.reference.figure(("", "throughput"))
    held = 0.0 if throughput is None else throughput.value * _leg_ns(asked) / 1e9
    for metric in dict.fromkeys(gate.metric for gate in asked.gates):
        if held < NEEDED.get(metric, 0):
            yield (
                f"a leg holds some {held:.0f} operations, and {GATE_METRICS[metric].title} needs "
                f"{format_count(NEEDED[metric])}: it is nearly the slowest one"
            )


def _script(gate: Gate, scripts: Sequence[str]) -> str:
    """Return whose rows a gate reads; a load of one script is that as a whole."""
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
        Asked(gate, one.evidence, POINTS if GATE_METRICS[gate.metric].source == "share" else PRACTICAL)
        for gate, one in zip(gates, found, strict=True)
    ]
    return found, decide(asked, confidence=confidence)


def _check(gate: Gate, found: GateEvidence, decision: Decision, legs: Legs) -> GateCheck:
    return GateCheck(
        gate=gate,
        cell=(),
        workload=gate.workload,
        outcome=decision.outcome,
        reason=decision.reason,
        baseline=found.baseline,
        candidate=found.candidate,
        unit=GATE_METRICS[gate.metric].unit,
        ratio=decision.ratio,
        low=decision.low,
        high=decision.high,
        rounds=decision.rounds or legs.rounds,
        doubts=decision.doubts,
        by_round=found.by_round,
    )


def _side(role: Role, jobs: Jobs) -> GuardSide:
    place = place_of_job(jobs[role])
    return GuardSide(role, place, (place,))


def _settings(folder: Path) -> tuple[EnvironmentDifference, ...]:
    """Return what of the servers' facts and settings differs between the sides."""
    base, own = (run_figures(folder / LEGS / f"0000-{role}") for role in ("baseline", "candidate"))
    return tuple(
        one for one in unasked_differences(base, own) if (one.section, one.name) != ("server", "place")
    )
