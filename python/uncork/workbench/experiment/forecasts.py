"""Plan an experiment with the variation that an earlier stored run of it showed."""

from __future__ import annotations

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from uncork.errors import UncorkError
from uncork.experiment.plan.feasibility import LARGE_SETUP
from uncork.experiment.plan.forecast import TYPICAL, Seen
from uncork.experiment.plan.order import PlanDocument, arms, plan_document
from uncork.experiment.plan.slicing import SLICE_NS
from uncork.experiment.spec.schema import Spec
from uncork.model.units import format_duration
from uncork.requests.source import Source
from uncork.stats.power import StdDevs, cautious_scatter
from uncork.store.layout import Manifest, list_runs
from uncork.store.query import RunReader

_LEAST_ROUNDS = 3
"""A run with fewer rounds does not show how much rounds vary."""

_COMPLETE = "complete"

Rows = Iterable[Mapping[str, Any]]


def plan_with_forecast(root: Path, source: Source) -> PlanDocument:
    """Plan an experiment; its forecast uses the newest complete run of the same text, except for `[stop]`.

    Damaged and too short runs are ignored.
    """
    if not any(workload.fitted for workload in source.spec.workloads.values()):
        return plan_document(source.spec)
    for manifest in reversed(list(list_runs(root))):
        if not isinstance(manifest, Manifest) or manifest.kind != "experiment":
            continue
        if manifest.status != _COMPLETE or manifest.name != source.spec.experiment.name:
            continue
        try:
            with closing(RunReader(root / manifest.id, manifest)) as reader:
                if not _same(reader, source):
                    continue
                seen = cells_seen(source.spec, reader.figures(), reader.times())
                setup_ns = _setup_ns(manifest, reader.first_trial_us())
        except (UncorkError, OSError, tomllib.TOMLDecodeError):
            continue
        if seen:
            basis = f"the variation and operation times of run {manifest.id}"
            return _with_setup(plan_document(source.spec, seen, basis, setup_ns), manifest.id)
    return plan_document(source.spec)


def _setup_ns(manifest: Manifest, first_trial_us: int | None) -> int | None:
    """Return how long a run took until its first trial; None if it is unknown, or the run was resumed."""
    if first_trial_us is None or len(manifest.attempts) != 1:
        return None
    started = datetime.fromisoformat(manifest.attempts[0].started_at)
    return max(0, first_trial_us * 1000 - round(started.timestamp() * 1e9))


def _with_setup(document: PlanDocument, run: str) -> PlanDocument:
    """Add a warning to a plan if set-up takes a large part of its budget."""
    if document.setup_ns is None or document.setup_ns < LARGE_SETUP * document.worst_ns:
        return document
    took, budget = map(format_duration, (document.setup_ns, document.worst_ns))
    warning = (
        f"set-up took {took} in run {run}, which leaves little of the budget of {budget}: raise it with "
        "--budget, or measure fewer levels with --set"
    )
    return replace(document, warnings=(*document.warnings, warning))


def _same(reader: RunReader, source: Source) -> bool:
    """Return whether a stored run measured the same experiment, apart from its stopping rule."""
    stored, wanted = tomllib.loads(reader.specification()), tomllib.loads(source.text)
    stored.pop("stop", None)
    wanted.pop("stop", None)
    return stored == wanted and all(reader.read_file(name) == text for name, text in source.files.items())


def cells_seen(spec: Spec, figures: Rows, times: Rows) -> dict[str, list[Seen]]:
    """Return the variation of each fitted workload in each cell of a run, from its stored rows.

    For `figures` and `times`, see `RunReader`.
    """
    means: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in times:
        means[row["cell"], row["workload"], row["variant"]].append(row["mean_ns"])
    blocks: dict[tuple[str, str], dict[tuple[int, int], list[Mapping[str, Any]]]]
    blocks = defaultdict(lambda: defaultdict(list))
    for row in figures:
        if row["value"] is not None and row["value"] > 0.0:
            blocks[row["cell"], row["workload"]][row["round"], row["block"]].append(row)
    found: dict[str, list[Seen]] = defaultdict(list)
    for (cell, workload), trials in sorted(blocks.items()):
        if workload not in spec.workloads or not spec.workloads[workload].fitted:
            continue
        scatters = [
            std_dev
            for variant in spec.compared(workload)
            if variant != spec.baseline and (std_dev := _std_dev(trials, spec.baseline, variant)) is not None
        ]
        times_of = [means.get((cell, workload, arm.variant)) for arm in arms(spec, workload)]
        known = [fmean(one) for one in times_of if one]
        if scatters and known:
            widest = max(scatters, key=lambda one: one.of_unit(4, 1))
            usual = fmean(known)
            operation_ns = tuple(fmean(one) if one else usual for one in times_of)
            found[workload].append(Seen(operation_ns, widest))
    return dict(found)


def _std_dev(
    blocks: Mapping[tuple[int, int], Sequence[Mapping[str, Any]]], baseline: str, variant: str
) -> StdDevs | None:
    """Estimate the standard deviations of one comparison; None if there are too few rounds.

    A block is stored as one value. The part of its variation that cycles explain is assumed to be typical,
    but at most all of it.
    """
    rounds: dict[int, list[list[float]]] = defaultdict(list)
    cycles = []
    for (number, _), rows in blocks.items():
        logs = {(row["variant"], row["again"]): math.log(row["value"]) for row in rows}
        wanted = [(variant, False), (baseline, False), (baseline, True)]
        if not all(one in logs for one in wanted):
            continue
        above, below, again = (logs[one] for one in wanted)
        rounds[number].append([above - (below + again) / 2.0])
        cycles.append(max(min(row["elapsed_ns"] for row in rows) / SLICE_NS, 1.0))
    if len(rounds) < _LEAST_ROUNDS:
        return None
    seen = cautious_scatter(list(rounds.values()), TYPICAL)
    several = fmean(cycles)
    cycle = min(TYPICAL.cycle, seen.block * math.sqrt(several))
    block = math.sqrt(max(seen.block**2 - cycle**2 / several, 0.0))
    return StdDevs(cycle, block, seen.round)
