"""Read and check the request of a guard of a stored run, before anything is measured; start its own run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import Place
from uncork.errors import UsageError
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.figure import RunFigures
from uncork.model.results.guard import Acknowledgement, Gate, GateCheck, GuardSide
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.requests.guard import GuardRequest, command_text
from uncork.store.layout import find_run, read_manifest
from uncork.store.loads import LoadReader
from uncork.workbench.guard.acknowledged import acknowledge_from, known_file
from uncork.workbench.guard.gate_figures import check_load_gates, default_load_gates, load_places
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
    places = load_places(gates)
    return LoadQuestion(folder, reference, name, places, wanted, drawn_seed(wanted), known_of(wanted), plan)


def drawn_seed(wanted: GuardRequest) -> int:
    """Return the requested seed, or else draw one."""
    return secrets.randbits(31) if wanted.options.seed is None else wanted.options.seed


def known_of(wanted: GuardRequest) -> Path:
    """Return the file of acknowledged changes, and check it before anything is measured.

    Raises:
        UsageError: if the file is wrong.
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


# ---- the run on disk ----


def start_guard(root: Path, asked: Question, question: str) -> RunRecord:
    """Start the run of a guard. If it ends early and holds no turn that counts, it is deleted.

    Raises:
        SetupError: if its folder cannot be written.
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
