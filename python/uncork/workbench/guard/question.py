"""What a guard of a stored run is asked, checked before anything is measured; and its own run on disk."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from uncork import __version__
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import Place
from uncork.engines import process
from uncork.engines.checkout import current_commit
from uncork.errors import SetupError, StoreError, UsageError
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.experiment import RunStatus
from uncork.model.results.figure import RunFigures
from uncork.model.results.guard import Acknowledgement, Gate, GateCheck, GuardSide
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.requests.guard import GuardRequest, command_text
from uncork.store.layout import (
    Manifest,
    Sitting,
    find_run,
    new_run_folder,
    read_manifest,
    write_manifest,
)
from uncork.store.loads import LoadReader
from uncork.workbench.guard.acknowledged import acknowledge_from, known_file
from uncork.workbench.guard.gate_figures import check_load_gates, default_load_gates, load_places
from uncork.workbench.signals import uninterrupted

__all__ = [
    "LEGS",
    "GuardRun",
    "Judged",
    "LoadQuestion",
    "Question",
    "drawn_seed",
    "guard_run",
    "known_of",
    "read_question",
    "stored_target",
]

LEGS: Final = "legs"
"""The folder of a guard's run that holds its legs."""
_MOST_TIMES: Final = 100


@dataclass(frozen=True, slots=True)
class Question:
    """A stored run that is guarded: its folder and figures, what is demanded where, and what is known."""

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
        """What is demanded."""
        return tuple(place.gate for place in self.places)

    @property
    def scripts(self) -> tuple[str, ...]:
        """The names of what it sends."""
        return tuple(one["name"] for one in self.plan["scripts"])


@dataclass(frozen=True, slots=True)
class Judged:
    """What a guard found, before it is told."""

    checks: tuple[GateCheck, ...]
    baseline: GuardSide
    candidate: GuardSide
    runs: tuple[str, ...]
    rounds: int = 0
    warnings: tuple[str, ...] = ()
    settings: tuple[EnvironmentDifference, ...] = ()
    unused: tuple[Acknowledgement, ...] = ()


def stored_target(root: Path, wanted: str) -> Path:
    """Return the run that is guarded; of a guard, the run that it guards.

    Raises:
        SetupError: if there is no such run.
        StoreError: if it is damaged.
    """
    folder = find_run(root, wanted)
    manifest = read_manifest(folder)
    if manifest.kind != "guard":
        return folder
    return find_run(root, str(manifest.options.get("of", "")))


def read_question(folder: Path, wanted: GuardRequest) -> LoadQuestion:
    """Read what is asked of a stored load.

    Raises:
        UsageError: if it does not fit the load, or contradicts itself.
        StoreError: if the run is damaged, or has no result.
    """
    _refuse_words(wanted)
    reference = run_figures(folder)
    with closing(LoadReader(folder)) as reader:
        plan, name = reader.plan(), reader.manifest.name
    gates = tuple(dict.fromkeys(map(parse_gate, wanted.gates)))
    check_load_gates(gates, reference, [one["name"] for one in plan["scripts"]])
    gates = gates or default_load_gates(reference, open_loop=plan["arrivals"] is not None)
    if not gates:
        raise UsageError(f"{reference.id} holds nothing to guard: no operation of it succeeded")
    places = load_places(gates)
    return LoadQuestion(folder, reference, name, places, wanted, drawn_seed(wanted), known_of(wanted), plan)


def drawn_seed(wanted: GuardRequest) -> int:
    """Return the seed that was asked for, else one that is drawn."""
    return secrets.randbits(31) if wanted.options.seed is None else wanted.options.seed


def known_of(wanted: GuardRequest) -> Path:
    """Return the file of known changes; what is wrong in it is told before anything is measured.

    Raises:
        UsageError: if it is wrong.
    """
    path = known_file(None, None, wanted.acknowledged)
    acknowledge_from(path, ())
    return path


def _refuse_words(wanted: GuardRequest) -> None:
    for side in (wanted.baseline, wanted.candidate):
        foreign = [kind for kind in side.says if kind not in ("dsn", "url")]
        if foreign:
            raise UsageError(
                f"--{side.role} {foreign[0]}=...: a stored load has targets only, dsn=CONNINFO or url=URL; "
                "guard an experiment file for the rest"
            )
        if len(side.says) > 1:
            raise UsageError(f"--{side.role}: dsn and url are two targets; name one")
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
            raise UsageError(f"--stored judges what is stored, and measures nothing: leave out {option}")
    if sides and wanted.times > 1:
        raise UsageError(
            "--times is for a load beside its history; two targets are measured until the budget ends"
        )
    if sides and wanted.everything:
        raise UsageError("--all is for a load beside its history; two targets have none")
    if sides and target:
        raise UsageError("--dsn and --url say where to load again; with two sides write --candidate dsn=...")


# ---- the run on disk ----


@dataclass(slots=True)
class GuardRun:
    """The run of a guard while it is carried out. `keeps` says that it holds more than legs."""

    folder: Path
    manifest: Manifest
    keeps: bool = False
    rounds: int = 0
    reason: str = ""


@contextmanager
def guard_run(root: Path, asked: Question, question: str) -> Iterator[GuardRun]:
    """Lay out the run of a guard, and close it; one that ends early and holds nothing leaves nothing behind.

    Raises:
        SetupError: if it cannot be written.
    """
    begun = time.monotonic_ns()
    now = datetime.now(UTC)
    try:
        folder = new_run_folder(root, f"guard-{asked.name}", now.strftime("%Y%m%d-%H%M%S"))
        manifest = Manifest(
            id=folder.name,
            name=f"guard-{asked.name}",
            question=question,
            status="running",
            started_at=now.isoformat(timespec="seconds"),
            seed=asked.seed,
            unit="round" if asked.wanted.two_sides else "",
            server=asked.reference.server,
            uncork_version=__version__,
            commit=current_commit(),
            options={"command": command_text(asked.wanted.words), "of": asked.reference.id},
            owner=process.identity(os.getpid()),
            kind="guard",
        )
        write_manifest(folder, manifest)
    except StoreError as error:
        raise SetupError(f"{error}; nothing was measured (--runs names another folder)") from error
    run = GuardRun(folder, manifest)
    status: RunStatus = "failed"
    try:
        yield run
        status = "complete"
        run.keeps = True
    except KeyboardInterrupt:
        status, run.reason = "interrupted", "interrupted"
        raise
    except Exception as error:
        run.reason = str(error)
        raise
    finally:
        with uninterrupted():
            if run.keeps or _has_legs(folder):
                elapsed = time.monotonic_ns() - begun
                sitting = Sitting(manifest.started_at, elapsed, run.rounds, status, run.reason)
                ended = replace(run.manifest, status=status, owner=None, sittings=(sitting,))
                write_manifest(folder, ended)
            else:
                shutil.rmtree(folder, ignore_errors=True)


def _has_legs(folder: Path) -> bool:
    """Say whether a leg was measured that counts."""
    return any(not path.name.startswith("0000-") for path in (folder / LEGS).glob("*"))
