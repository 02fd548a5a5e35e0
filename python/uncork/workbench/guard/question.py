"""Read and check the request of a guard of a stored run, before anything is measured; start its own run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import Place
from uncork.errors import UsageError
from uncork.experiment.spec.gates import parse_gate
from uncork.experiment.spec.problems import hint
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.guard import Acknowledgement, Gate, GateCheck, GuardSide, metric_of
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.units import format_count
from uncork.requests.guard import GuardRequest, command_text
from uncork.store.layout import find_run, read_manifest
from uncork.store.loads import LoadReader
from uncork.workbench.guard.acknowledged import acknowledge_from, known_file
from uncork.workbench.run_record import RunRecord, draft, start_run

TURNS: Final = "legs"
"""The folder in a guard's run that holds its turns, each as a load."""
_MOST_TIMES: Final = 100


@dataclass(frozen=True, slots=True)
class Question:
    """A stored run that is guarded: its folder, metrics and gates, and the file of acknowledged changes."""

    folder: Path
    reference: RunFigures
    name: str
    places: tuple[Place, ...]
    wanted: GuardRequest
    seed: int
    acknowledged: Path


@dataclass(frozen=True, slots=True)
class LoadQuestion(Question):
    """A stored load that is guarded, with its plan."""

    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates."""
        return tuple(place.gate for place in self.places)

    @property
    def scripts(self) -> tuple[str, ...]:
        """The names of its scripts or requests."""
        return tuple(script["name"] for script in self.plan["scripts"])


@dataclass(frozen=True, slots=True)
class Judged:
    """What a guard found."""

    checks: tuple[GateCheck, ...]
    baseline: GuardSide
    candidate: GuardSide
    runs: tuple[str, ...]
    rounds: int = 0
    warnings: tuple[str, ...] = ()
    settings: tuple[EnvironmentDifference, ...] = ()
    unused: tuple[Acknowledgement, ...] = ()


def stored_target(root: Path, wanted: str) -> Path:
    """Return the folder of the run to guard; if `wanted` is a guard, the run that it guarded.

    Raises:
        SetupError: if there is no such run.
        StoreError: if the run is damaged.
    """
    folder = find_run(root, wanted)
    manifest = read_manifest(folder)
    if manifest.kind != "guard":
        return folder
    return find_run(root, str(manifest.options.get("of", "")))


def read_question(folder: Path, wanted: GuardRequest) -> LoadQuestion:
    """Read a stored load and the request to guard it.

    Raises:
        UsageError: if the request does not fit the load, or contradicts itself.
        StoreError: if the run is damaged, or has no result.
    """
    _refuse_words(wanted)
    reference = run_figures(folder)
    with closing(LoadReader(folder)) as reader:
        plan, name = reader.plan(), reader.manifest.name
    gates = tuple(dict.fromkeys(map(parse_gate, wanted.gates)))
    check_load_gates(gates, reference, [script["name"] for script in plan["scripts"]])
    gates = gates or default_load_gates(reference, open_loop=plan["arrivals"] is not None)
    if not gates:
        raise UsageError(f"{reference.id} cannot be guarded: none of its operations succeeded")
    places = tuple(Place(gate, partial(gate_figure, gate), lacking(gate), gate.workload) for gate in gates)
    return LoadQuestion(folder, reference, name, places, wanted, drawn_seed(wanted), known_of(wanted), plan)


def drawn_seed(wanted: GuardRequest) -> int:
    """Return the requested seed, or else draw one."""
    return secrets.randbits(31) if wanted.options.seed is None else wanted.options.seed


def known_of(wanted: GuardRequest) -> Path:
    """Return the file of acknowledged changes, and check it before anything is measured.

    Raises UsageError if the file is wrong.
    """
    path = known_file(None, None, wanted.acknowledged)
    acknowledge_from(path, ())
    return path


def _refuse_words(wanted: GuardRequest) -> None:
    for side in (wanted.baseline, wanted.candidate):
        foreign = [kind for kind in side.says if kind not in ("dsn", "url")]
        if foreign:
            raise UsageError(
                f"--{side.role} {foreign[0]}=...: a side of a stored load is a target, dsn=CONNINFO or "
                "url=URL; guard an experiment file for anything else"
            )
        if len(side.says) > 1:
            raise UsageError(f"--{side.role}: dsn and url are two targets; give one of them")
    of_experiments = {
        "--precision": wanted.options.precision,
        "--pg-bin": wanted.choice.binaries,
        "--port": wanted.choice.port,
    }
    for option, given in of_experiments.items():
        if given is not None:
            raise UsageError(f"{option} is for experiments; {wanted.target} is a load")
    if not 1 <= wanted.times <= _MOST_TIMES:
        raise UsageError(f"--times must be from 1 to {_MOST_TIMES}, not {wanted.times}")
    sides = wanted.two_sides
    target = wanted.choice.dsn is not None or wanted.url is not None
    measuring = [
        ("--baseline or --candidate", sides),
        ("--times", wanted.times > 1),
        ("--dsn or --url", target),
    ]
    for option, given in measuring if wanted.stored else ():
        if given:
            raise UsageError(f"--stored measures nothing: leave out {option}")
    if sides and wanted.times > 1:
        raise UsageError(
            "--times is for a guard against history; two targets are measured until the budget is used"
        )
    if sides and wanted.everything:
        raise UsageError("--all is for a guard against history; leave it out for two targets")
    if sides and target:
        raise UsageError(
            "--dsn and --url are for a guard against history; with two sides, write --candidate dsn=..."
        )


def start_guard(root: Path, asked: Question, question: str) -> RunRecord:
    """Start the run of a guard. If it ends early and holds no turn that counts, it is deleted.

    Raises SetupError if its folder cannot be written.
    """
    manifest = draft(
        kind="guard",
        name=f"guard-{asked.name}",
        question=question,
        seed=asked.seed,
        unit="round" if asked.wanted.two_sides else "",
        server=asked.reference.server,
        options={"command": command_text(asked.wanted.words), "of": asked.reference.id},
    )
    return start_run(root, manifest)


FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "latency_mean": ("mean",),
    "latency_p50": ("p50",),
    "latency_p90": ("p90",),
    "latency_p95": ("p95",),
    "latency_p99": ("p99",),
    "latency_p999": ("p99.9",),
    "throughput": ("throughput",),
    "success": ("failed",),
    "errors": ("failed",),
    "buffers": ("buffers each",),
    "temp_bytes": ("temporary files each",),
    "wal_bytes": ("WAL each",),
    "server_cpu": ("server processor time each",),
    "service_cpu": ("service processor time each",),
    "client_cpu": ("generator processor time each", "client processor time each"),
    "sent_bytes": ("sent each",),
    "received_bytes": ("received each",),
}
"""The names that a gate's metric has in runs; success is computed from failures."""
NEEDED: Final[Mapping[str, int]] = {"latency_p99": 1_000, "latency_p999": 10_000}
"""The operations a percentile needs so that at least ten lie beyond it."""
_DEFAULTS: Final = ("throughput > -5%", "p50 < +5%", "p99 < +10%", "success >= baseline")


def gate_figure(gate: Gate, run: RunFigures) -> Figure | None:
    """Return the metric of a load that a gate is about; None if the load does not have it."""
    own = any(figure.subject == gate.workload for figure in run.figures)
    # A load of one script has metrics of the load as a whole only.
    subject = gate.workload if own else ""
    return next(
        (one for name in FIGURES.get(gate.metric, ()) if (one := run.figure((subject, name))) is not None),
        None,
    )


def lacking(gate: Gate) -> str:
    """Return why a load has no metric for a gate, as a clause without a full stop."""
    title = metric_of(gate).title
    if gate.metric in NEEDED:
        return f"{title} needs {format_count(NEEDED[gate.metric])} operations, but fewer succeeded"
    if gate.metric in ("server_cpu", "service_cpu"):
        return f"{title} is unknown: the processes run on another machine or as another user"
    if gate.metric in FIGURES:
        return f"the load has no {title}"
    return f"a load has no {title}; guard an experiment instead"


def check_load_gates(gates: Sequence[Gate], run: RunFigures, names: Sequence[str]) -> None:
    """Refuse gates on scripts (or requests) that a load does not have; `names` are the ones it has.

    Raises UsageError if a gate names another script; the message suggests a similar name.
    """
    for gate in gates:
        if not gate.workload:
            continue
        if gate.workload not in names:
            near = hint(gate.workload, set(names))
            raise UsageError(f'gate "{gate.text}": {run.id} sends nothing called "{gate.workload}"{near}')
        if len(names) > 1 and not gate.metric.startswith("latency_"):
            raise UsageError(
                f'gate "{gate.text}": a load of several scripts has only latencies by script; leave out '
                f'"on {gate.workload}"'
            )


def default_load_gates(run: RunFigures, *, open_loop: bool) -> tuple[Gate, ...]:
    """Return the default gates of a load: throughput (in an open loop p50), p99, and success."""
    left_out = "throughput" if open_loop else "latency_p50"
    gates = [parse_gate(text) for text in _DEFAULTS]
    return tuple(gate for gate in gates if gate.metric != left_out and gate_figure(gate, run) is not None)
