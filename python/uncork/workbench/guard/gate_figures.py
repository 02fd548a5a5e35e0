"""Find the metric of a stored run that a gate is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from uncork.analysis.runs.past import Place
from uncork.errors import UsageError
from uncork.experiment.spec.gates import parse_gate
from uncork.experiment.spec.problems import hint
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.guard import Gate, metric_of
from uncork.model.units import format_count

FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "latency_mean": ("mean",),
    "latency_p50": ("p50",),
    "latency_p90": ("p90",),
    "latency_p95": ("p95",),
    "latency_p99": ("p99",),
    "latency_p999": ("p99.9",),
    "throughput": ("throughput",),
    "success": ("failed",),
    "errors": ("failed",),
    "buffers": ("buffers each",),
    "temp_bytes": ("temporary files each",),
    "wal_bytes": ("WAL each",),
    "server_cpu": ("server processor time each",),
    "service_cpu": ("service processor time each",),
    "client_cpu": ("generator processor time each", "client processor time each"),
    "sent_bytes": ("sent each",),
    "received_bytes": ("received each",),
}
"""The names that a gate's metric has in runs; success is computed from failures."""
NEEDED: Final[Mapping[str, int]] = {"latency_p99": 1_000, "latency_p999": 10_000}
"""The operations a percentile needs so that at least ten lie beyond it."""
_DEFAULTS: Final = ("throughput > -5%", "p50 < +5%", "p99 < +10%", "success >= baseline")


def gate_figure(gate: Gate, run: RunFigures) -> Figure | None:
    """Return the metric of a load that a gate is about; None if the load does not have it."""
    own = any(figure.subject == gate.workload for figure in run.figures)
    # A load of one script has metrics of the load as a whole only.
    subject = gate.workload if own else ""
    return next(
        (one for name in FIGURES.get(gate.metric, ()) if (one := run.figure((subject, name))) is not None),
        None,
    )


def lacking(gate: Gate) -> str:
    """Return why a load has no metric for a gate, as a clause without a full stop."""
    title = metric_of(gate).title
    if gate.metric in NEEDED:
        return f"{title} needs {format_count(NEEDED[gate.metric])} operations, but fewer succeeded"
    if gate.metric in ("server_cpu", "service_cpu"):
        return f"{title} is unknown: the processes run on another machine or as another user"
    if gate.metric in FIGURES:
        return f"the load has no {title}"
    return f"a load has no {title}; guard an experiment instead"


def load_places(gates: Sequence[Gate]) -> tuple[Place, ...]:
    """Return the place of each gate in a load."""
    return tuple(Place(gate, partial(gate_figure, gate), lacking(gate), gate.workload) for gate in gates)


def check_load_gates(gates: Sequence[Gate], run: RunFigures, names: Sequence[str]) -> None:
    """Refuse gates on scripts (or requests) that a load does not have; `names` are the ones it has.

    Raises:
        UsageError: if a gate names another script; the message suggests a similar name.
    """
    for gate in gates:
        if not gate.workload:
            continue
        if gate.workload not in names:
            near = hint(gate.workload, set(names))
            raise UsageError(f'gate "{gate.text}": {run.id} sends nothing called "{gate.workload}"{near}')
        if len(names) > 1 and not gate.metric.startswith("latency_"):
            raise UsageError(
                f'gate "{gate.text}": a load of several scripts has only latencies by script; leave out '
                f'"on {gate.workload}"'
            )


def default_load_gates(run: RunFigures, *, open_loop: bool) -> tuple[Gate, ...]:
    """Return the default gates of a load: throughput (in an open loop p50), p99, and success."""
    left_out = "throughput" if open_loop else "latency_p50"
    gates = [parse_gate(text) for text in _DEFAULTS]
    return tuple(gate for gate in gates if gate.metric != left_out and gate_figure(gate, run) is not None)
