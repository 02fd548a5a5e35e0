"""Decide whether a variant can be measured: its engine must be available, and it must fit the budget."""

from __future__ import annotations

from uncork.experiment.run.request import trial_operations
from uncork.experiment.spec.schema import Spec
from uncork.model.measurement import Measurement, Outcome
from uncork.model.trial import Cell
from uncork.model.units import format_duration

TOO_SLOW = "too slow for this budget"
"""The beginning of the reason when a comparison is skipped as too slow."""

NOT_HERE = "cannot be run here"
"""The beginning of the reason when a comparison is skipped because the variant's engine is unavailable."""

SKIPPING = (TOO_SLOW, NOT_HERE)
"""The beginnings of the reasons of skipped comparisons; all other reasons are refusals."""

_LARGEST_SHARE = 4
"""One variant in one cell may take a quarter of the budget, because the others must fit too."""

_ANSWER_SHARE = 8
"""The answer check of a variant may take an eighth of the budget."""


def answer_deadline_ns(spec: Spec, workload: str, variant: str) -> int | None:
    """Return how long a variant's answer check may take, or None if it may take as long as any trial.

    Only batches have a limit: their strategies may differ a hundredfold in time, and the slowest would
    otherwise leave no time for the rest. The baseline has no limit, because without it nothing can be
    compared.
    """
    if spec.workloads[workload].batch is None or variant == spec.baseline:
        return None
    return spec.stop.budget // _ANSWER_SHARE


def too_slow(
    spec: Spec, cell: Cell, workload: str, variant: str, found: Measurement, baseline: Measurement
) -> str | None:
    """Return why a variant is skipped, if its trials would take more than their share of the budget.

    `found` and `baseline` are the answer checks of the variant and the baseline, with batches as in a trial.
    """
    if answer_deadline_ns(spec, workload, variant) is None:
        return None
    cut = found.outcome is Outcome.DEADLINE
    one_ns = found.elapsed_ns / max(found.started, 1)
    theirs_ns = baseline.elapsed_ns / max(baseline.started, 1)
    trials = spec.stop.verdict_rounds  # a round has at least one block, and more if there is time
    needed_ns = one_ns * trials * trial_operations(spec, cell, workload)
    if not cut and needed_ns * _LARGEST_SHARE <= spec.stop.budget:
        return None
    more = "more than " if cut else ""
    times = f", {more}{one_ns / theirs_ns:.3g} times as long as with {spec.baseline}" if theirs_ns else ""
    return (
        f"{TOO_SLOW}: one batch took {more}{format_duration(one_ns)}{times}; the {trials} trials that a "
        f"verdict needs would take {more}{format_duration(needed_ns)} of {format_duration(spec.stop.budget)}"
        " (a --budget of four times that would be enough)"
    )
