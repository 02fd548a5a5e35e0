"""Flame graphs for pages: of a profile, of an experiment's variants, and of several experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uncork.analysis.experiment.stored import best_variant, processor_stacks
from uncork.model.results.experiment import RunResult
from uncork.model.results.stacks import LEAST_SAMPLES
from uncork.profile.stacks import beside
from uncork.report.blocks import Flame
from uncork.report.draw.flame import flame_svg, labelled
from uncork.report.stacks.answer import amount_text
from uncork.store.layout import read_manifest
from uncork.workbench.profile.stack_files import measured_stacks

if TYPE_CHECKING:
    import pyarrow as pa

    from uncork.analysis.stacks.result import StackRun

_MOST: Final = 6
"""Flame graphs of a page."""
_KEYS: Final = "Click a frame to zoom into it, Esc to zoom out; type to search."
_COLOURS: Final = "callers below what they call; orange is the kernel"


def stack_flames(run: StackRun) -> tuple[Flame, ...]:
    """Draw each measure of a profile of stacks."""
    drawn = []
    for measure in run.result.measures[:_MOST]:
        if measure.samples is not None and measure.samples < LEAST_SAMPLES:
            continue
        stacks = measured_stacks(run, measure)
        note = f"Width is share, {_COLOURS}."
        if "before" in stacks.column_names:
            note = f"Width is share now; red has grown since {run.result.against}, blue has shrunk."
        title = f"{measure.name}: {amount_text(measure.total, measure.unit)}"
        drawn.append(_flame(measure.name, title, stacks, note, measure.unit))
    return tuple(drawn)


def evidence_flames(folder: Path, result: RunResult) -> tuple[Flame, ...]:
    """Draw where the baseline's processor time goes, and what the best variant changed, for each workload.

    Raises StoreError if files are damaged.
    """
    return tuple(_of_variants(dict(processor_stacks(folder)), result))


def compared_flames(before: Path, others: Sequence[Path]) -> tuple[Flame, ...]:
    """Draw what changed in the processor time of variants of which several experiments kept stacks.

    Raises StoreError if files are damaged.
    """
    if any(read_manifest(folder).kind != "experiment" for folder in (before, *others)):
        return ()
    return tuple(islice(_of_runs(before, others), _MOST))


def _of_variants(stacks: Mapping[tuple[str, str], pa.Table], result: RunResult) -> Iterator[Flame]:
    baseline = next(variant.name for variant in result.variants if variant.baseline)
    for workload in dict.fromkeys(name for name, _ in stacks):
        first = stacks.get((workload, baseline))
        if first is None:
            continue
        title = f"{baseline} on {workload}"
        note = f"Width is share of the server's CPU, {_COLOURS}."
        yield _flame(title, title, labelled(first), note)
        best = best_variant(result, workload, {variant for name, variant in stacks if name == workload})
        if best is not None:
            title = f"{best} against {baseline} on {workload}"
            note = f"red has grown from {baseline} to {best}, blue has shrunk."
            yield _flame(title, title, beside(labelled(stacks[workload, best]), labelled(first)), note)


def _of_runs(before: Path, others: Sequence[Path]) -> Iterator[Flame]:
    old = dict(processor_stacks(before))
    for folder in others if old else ():
        for (workload, variant), stacks in processor_stacks(folder):
            earlier = old.get((workload, variant))
            if earlier is not None:
                title = f"{variant} on {workload}: {folder.name} beside {before.name}"
                note = (
                    f"Width is share of the server's CPU in {folder.name}; red has grown since "
                    f"{before.name}, blue has shrunk."
                )
                yield _flame(title, title, beside(labelled(stacks), labelled(earlier)), note)


def _flame(name: str, title: str, stacks: pa.Table, note: str, unit: str = "samples") -> Flame:
    svg = flame_svg(stacks, title="", subtitle="", unit=unit, alone=False)
    return Flame(name, title, f"{note} {_KEYS}", svg)
