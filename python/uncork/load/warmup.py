"""Send a load for a while before it is measured, and count nothing of that.

In a closed loop, the core warms up on the connections of the load (`warmup_ns` of its plan). The core's
warm-up has no arrivals: an open loop would be sent as fast as the server answers, whatever rate was asked
for. An open loop is therefore warmed up by a load of its own at its rate, on other connections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from uncork.model.http import HttpSpec
from uncork.model.load import (
    HttpTotals,
    LoadMeasurement,
    LoadOutcome,
    LoadProgress,
    LoadSpec,
    LoadTotals,
    RequestTotals,
)

__all__ = ["after_warm_up", "warm_up_of"]

AnySpec = TypeVar("AnySpec", LoadSpec, HttpSpec)
Progress = Callable[[LoadProgress], None]

_OTHER_SEED: Final = 1 << 63
"""Flips the highest bit of a seed: a warm-up that sends the values of the load would cache exactly those."""


def after_warm_up(
    spec: AnySpec, send: Callable[[AnySpec, Progress | None], LoadMeasurement], progress: Progress | None
) -> LoadMeasurement:
    """Send a load with `send`, after the warm-up of an open loop; return what was measured afterwards.

    If the warm-up does not complete (Ctrl-C, a server that refuses connections or goes away, no success),
    the load is not sent: the result has the outcome of the warm-up, and counts nothing.
    """
    warming = warm_up_of(spec)
    if warming is None:
        return send(spec, progress)
    warmed = send(warming, None)
    if warmed.totals.outcome is not LoadOutcome.COMPLETE:
        return _uncounted(warmed)
    return send(replace(spec, warmup_ns=0), progress)


def warm_up_of(spec: AnySpec) -> AnySpec | None:
    """Return the load that warms up an open loop; None without a warm-up, or if the core warms up. Pure."""
    if not spec.warmup_ns or spec.arrivals is None:
        return None
    changes: dict[str, Any] = {"operations": None}
    if isinstance(spec, LoadSpec):
        changes = {"operations_each": None, "log": None}
    part = spec.part
    if part is not None:
        part = replace(part, start_at_ns=None, end_after_ns=None, reservations=None)
    return replace(
        spec,
        duration_ns=spec.warmup_ns,
        warmup_ns=0,
        seed=spec.seed ^ _OTHER_SEED,
        progress_s=None,
        part=part,
        **changes,
    )


def _uncounted(warmed: LoadMeasurement) -> LoadMeasurement:
    """Return a measurement without counts that ended as the warm-up did."""
    totals = warmed.totals
    http = totals.http
    if http is not None:
        http = HttpTotals(requests=tuple(RequestTotals(one.name) for one in http.requests))
    return LoadMeasurement(
        LoadTotals(
            outcome=totals.outcome,
            message=totals.message,
            arrivals=0,
            connect_errors=totals.connect_errors,
            first_error=totals.first_error,
            http=http,
        )
    )
