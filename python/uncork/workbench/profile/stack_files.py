"""Draw flame graphs of stacks, and export stacks for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from uncork.analysis.stacks.result import of_measure
from uncork.errors import UsageError
from uncork.model.results.stacks import LEAST_SAMPLES, MeasureFacts
from uncork.model.units import count_words
from uncork.profile.stacks import beside, write_profile
from uncork.report.draw.flame import flame_svg, labelled
from uncork.report.stacks.answer import shown_measure
from uncork.store.layout import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

    from uncork.analysis.stacks.result import StackRun


def draw_flame(run: StackRun, path: Path, measure: str | None) -> None:
    """Write a flame graph of a measure to a file; by default of the measure that the answer is about.

    Raises:
        UsageError: if there is no such measure, or it has too few samples to draw.
        StoreError: if the file cannot be written.
    """
    chosen = _chosen(run, measure)
    if chosen.samples is not None and chosen.samples < LEAST_SAMPLES:
        raise UsageError(
            f"--flame: {count_words(chosen.samples, 'sample')} are too few to draw, which "
            f"needs {LEAST_SAMPLES}: record for longer, or under load (run {run.result.run.id} is stored)"
        )
    title = f"{chosen.name} of {run.result.run.target}"
    subtitle = f"compared with {run.result.against}" if run.result.against else ""
    stacks = measured_stacks(run, chosen)
    write_atomically(path, flame_svg(stacks, title=title, subtitle=subtitle, unit=chosen.unit, alone=True))


def export_stacks(
    run: StackRun, path: Path, format: Literal["folded", "speedscope", "pprof"], measure: str | None
) -> None:
    """Write stacks to a file in the format of another tool.

    Raises:
        UsageError: if there is no such measure.
        StoreError: if the file cannot be written.
    """
    chosen = _chosen(run, measure)
    stacks = labelled(of_measure(run.stacks, chosen.name))
    merged = stacks.group_by(["stack"]).aggregate([("value", "sum")]).rename_columns(["stack", "value"])
    title = run.result.run.target
    written = write_profile(merged, format, name=title, measure=chosen.name, unit=chosen.unit)
    write_atomically(path, written)


def measured_stacks(run: StackRun, measure: MeasureFacts) -> pa.Table:
    """Return the labelled stacks of a measure, with the values of the earlier run beside them."""
    before = None if run.before is None else of_measure(run.before, measure.name)
    earlier = None if before is None or not len(before) else labelled(before)
    return beside(labelled(of_measure(run.stacks, measure.name)), earlier)


def _chosen(run: StackRun, name: str | None) -> MeasureFacts:
    if name is None:
        found = shown_measure(run.result)
        if found is None:
            raise UsageError("no process was seen running, so there are no stacks to write")
        return found
    for measure in run.result.measures:
        if measure.name == name:
            return measure
    known = ", ".join(measure.name for measure in run.result.measures) or "none"
    raise UsageError(f'--measure "{name}": unknown measure; this run has {known}')
