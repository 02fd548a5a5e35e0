"""Whether a variant can be judged here at all: its engine is there, and it is quick enough for the budget."""

from __future__ import annotations

from uncork.experiment.run.request import trial_operations
from uncork.experiment.spec.schema import Spec
from uncork.model.measurement import Measurement, Outcome
from uncork.model.trial import Cell
from uncork.model.units import format_duration

__all__ = ["NOT_HERE", "SKIPPING", "TOO_SLOW", "answer_deadline_ns", "too_slow"]

TOO_SLOW = "too slow for this budget"
"""Begins the reason of every comparison that is skipped for it."""

NOT_HERE = "cannot be run here"
"""Begins the reason of every comparison that is skipped because the variant's engine is not to be had."""

SKIPPING = (TOO_SLOW, NOT_HERE)
"""What the reasons of skipped comparisons begin with; the others were refused."""

_LARGEST_SHARE = 4
"""One variant in one cell may take a quarter of the budget; the others have to fit in as well."""

_ANSWER_SHARE = 8
"""The answer check of a variant may take an eighth of it."""


def answer_deadline_ns(spec: Spec, workload: str, variant: str) -> int | None:
    """Return how long a variant's answer check may take, or None for as long as any trial.

    Only batches have a bound: their rows may come by ways that differ a hundredfold, and the slowest would
    otherwise leave no time for the rest. The baseline has none, for without it nothing is compared.
    """
    if spec.workloads[workload].batch is None or variant == spec.baseline:
        return None
    return spec.stop.budget // _ANSWER_SHARE


def too_slow(
    spec: Spec, cell: Cell, workload: str, variant: str, found: Measurement, baseline: Measurement
) -> str | None:
    """Say why a variant is skipped, if its trials would take more than their share of the budget.

    `found` and `baseline` are the answer checks of the variant and the baseline: batches as in a trial.
    """
    if answer_deadline_ns(spec, workload, variant) is None:
        return None
    cut = found.outcome is Outcome.DEADLINE
    one_ns = found.elapsed_ns / max(found.started, 1)
    theirs_ns = baseline.elapsed_ns / max(baseline.started, 1)
    trials = spec.stop.minimum_rounds  # a round has one block at least, and more where there is time
    needed_ns = one_ns * trials * trial_operations(spec, cell, workload)
    if not cut and needed_ns * _LARGEST_SHARE <= spec.stop.budget:
        return None
    more = "more than " if cut else ""
    times = f", {more}{one_ns / theirs_ns:.3g} times as long as with {spec.baseline}" if theirs_ns else ""
    return (
        f"{TOO_SLOW}: one batch took {more}{format_duration(one_ns)}{times}; the {trials} trials that a "
        f"verdict needs would take {more}{format_duration(needed_ns)} of {format_duration(spec.stop.budget)}"
        " (a --budget of four times that would hold them)"
    )
