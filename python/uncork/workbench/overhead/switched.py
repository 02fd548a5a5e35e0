"""Measure observers that are switched on and off within one load: see `stats.ab_switching`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from uncork.engines.tpcb import initialise
from uncork.engines.watch.observing import create_extension
from uncork.model.load import LoadScript, LoadSpec
from uncork.model.results.observer_cost import CatalogueCost, Ratio, Slice, Switched
from uncork.model.server import Target
from uncork.stats.ab_switching import SwitchedEstimate, adjusted_estimate, disagree, plain_estimate
from uncork.store.layout import write_atomically
from uncork.workbench.overhead.catalogue import CATALOGUE
from uncork.workbench.overhead.switches import Switch, switches
from uncork.workbench.overhead.switching import Steady, cost_under_load, switch_under_load

SLICES_FILE: Final = "observer_slices.json"
STATEMENTS_COUNTED: Final = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "compute_query_id": "auto",
}
"""Settings that let a watch read plans. Statements are counted whether an observer is on or off."""
_LOAD_NS: Final = 20 * 10**9

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SwitchedLoad:
    """The load: a pgbench script on pgbench's tables, for `seconds` in total."""

    name: str
    text: str
    scale: int
    clients: int
    seed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Switching:
    """The measured slices, whether Ctrl-C ended them early, and what reading the catalogue costs."""

    slices: tuple[Slice, ...]
    interrupted: bool = False
    catalogue: CatalogueCost | None = None


def measure_switched(
    load: SwitchedLoad,
    target: Target,
    conninfo: str,
    names: Sequence[str],
    notify: Notify,
    others: Mapping[str, Switch] | None = None,
) -> Switching:
    """Create pgbench's tables, send the load, and meanwhile switch the observers `names` and `others`.

    Raises:
        SetupError, ConnectError: if the tables cannot be created, or an observer cannot be started.
        RunError: if the load stopped early.
    """
    initialise(conninfo, scale=load.scale)
    spec = LoadSpec(
        scripts=(LoadScript(load.name, 1, load.text),),
        clients=load.clients,
        protocol="prepared",
        variables={"scale": str(load.scale)},
        seed=load.seed,
        duration_ns=_LOAD_NS,
    )
    catalogue = None
    if CATALOGUE in names:
        create_extension(conninfo, "pg_stat_statements")
        catalogue = cost_under_load(Steady(spec, target))
    with switches(tuple(names), target) as found:
        observers = {**found, **(others or {})}
        slices, interrupted = switch_under_load(
            Steady(spec, target), observers, load.seconds, load.seed, notify
        )
    return Switching(tuple(slices), interrupted, catalogue)


def judge_switched(
    slices: Sequence[Slice], observer: str, confidence: float, sure: float, processors: int | None = None
) -> Switched | None:
    """Return what one observer costs; None if it was not switched. Pure.

    `confidence` is for the intervals shown, and `sure` for the intervals behind verdicts.
    `processors` is how many the load may use; without it there is no bound.
    """
    all_of_them = sorted({name for piece in slices for name in piece.on})
    if observer not in all_of_them:
        return None

    def rows(values: Sequence[float]) -> np.ndarray:
        return np.array(values, dtype=np.float64).reshape(-1, 4)

    on = rows([observer in piece.on for piece in slices]).astype(bool)
    beside = [rows([name in piece.on for piece in slices]) for name in all_of_them if name != observer]
    length, done = rows([piece.length_ns for piece in slices]), rows([piece.operations for piece in slices])
    work = rows([piece.work_ns for piece in slices])
    others = rows([piece.others_ns for piece in slices]) / length
    stolen = rows([piece.stolen_ns for piece in slices]) / length
    # A slice without operations counts as half an operation, because zero has no logarithm.
    some = np.maximum(done, 0.5)
    covariates = np.stack([others, others**2, stolen, *beside], axis=-1)
    plain = plain_estimate(done / length, on)
    adjusted = adjusted_estimate(np.log(some / length), on, covariates)
    processor = adjusted_estimate(np.log(np.maximum(work, 1.0) / some), on, covariates)
    had = float(work.sum() / length.sum())
    return Switched(
        quadruples=len(on),
        slice_ns=round(float(np.median(length))),
        plain=_ratio(plain, confidence),
        adjusted=_ratio(adjusted, confidence),
        sure=_ratio(adjusted, sure),
        processor=_ratio(processor, confidence),
        processor_sure=_ratio(processor, sure),
        others=float(others.mean()),
        stolen=float(stolen.mean()),
        work=had,
        bound=None if processors is None else _scaled(_ratio(processor, sure), had / processors),
        apart=plain is not None and adjusted is not None and disagree(plain, adjusted),
    )


def _ratio(found: SwitchedEstimate | None, confidence: float) -> Ratio | None:
    return None if found is None else Ratio(*found.interval(confidence), found.units)


def _scaled(ratio: Ratio | None, part: float) -> Ratio | None:
    """Scale a ratio of a part to the whole; `part` is the fraction of the whole that changed."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    changed, low, high = (1 + (value - 1) * part for value in (ratio.ratio, ratio.low, ratio.high))
    return Ratio(changed, low, high, ratio.rounds)


def write_slices(folder: Path, slices: Sequence[Slice]) -> None:
    """Store the slices with the run, as one list per field.

    Raises StoreError if they cannot be written.
    """
    rows = [asdict(piece) for piece in slices]
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
    write_atomically(folder / SLICES_FILE, json.dumps(columns) + "\n")
