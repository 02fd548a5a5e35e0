"""Evidence trials: after the timed ones, one for each variant, never judged. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from uncork.experiment.plan.evidence_time import LOADED_BEFORE_NS
from uncork.experiment.plan.order import cells
from uncork.experiment.spec.schema import Spec
from uncork.model.http_trial import HttpTrial, TrialRequest
from uncork.model.trial import Cell

_DEADLINE_NS: Final = 60_000_000_000


def evidence_places(
    spec: Spec, refused: Collection[tuple[Cell, str, str]] = ()
) -> list[tuple[Cell, str, str]]:
    """Return where evidence is collected: each variant and workload, in the cell with the highest levels."""
    if not set(spec.experiment.evidence) - {"plans"}:
        return []
    last = cells(spec)[-1]
    places = [(last, workload, variant) for workload in spec.workloads for variant in spec.compared(workload)]
    return [place for place in places if place not in refused]


def evidence_request(request: TrialRequest, watched_ns: int) -> TrialRequest:
    """Return a trial's load for the time of sampling, placed by the kernel and without warm-up."""
    length = watched_ns + LOADED_BEFORE_NS
    if isinstance(request, HttpTrial):
        spec = replace(request.spec, operations=None, duration_ns=length)
        return replace(request, spec=spec, deadline_ns=length + _DEADLINE_NS, warmup_operations=0)
    return replace(
        request,
        operations=None,
        duration_ns=length,
        deadline_ns=length + _DEADLINE_NS,
        warmup_operations=0,
        pin_cpu=None,
        digest="none",
    )
