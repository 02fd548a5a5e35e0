"""Which figure of a stored run a gate speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from uncork.analysis.runs.past import Place
from uncork.errors import UsageError
from uncork.experiment.spec.gates import parse_gate
from uncork.experiment.spec.problems import hint
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import Gate
from uncork.model.units import format_count

__all__ = [
    "FIGURES",
    "NEEDED",
    "check_load_gates",
    "default_load_gates",
    "gate_figure",
    "lacking",
    "load_places",
]

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
"""The names of figures that a gate's metric has in runs; success is what did not fail."""
NEEDED: Final[Mapping[str, int]] = {"latency_p99": 1_000, "latency_p999": 10_000}
"""Operations that a percentile needs so that at least ten lie beyond it."""
_DEFAULTS: Final = ("throughput > -5%", "p50 < +5%", "p99 < +10%", "success >= baseline")


def gate_figure(gate: Gate, run: RunFigures) -> Figure | None:
    """Return the figure of a load that a gate speaks of; None if it has none."""
    told = any(one.subject == gate.workload for one in run.figures)
    # A load of one script tells its times of the load as a whole.
    subject = gate.workload if told else ""
    return next(
        (one for name in FIGURES.get(gate.metric, ()) if (one := run.figure((subject, name))) is not None),
        None,
    )


def lacking(gate: Gate) -> str:
    """Say why a load has no figure for a gate, as a reason without a full stop."""
    title = GATE_METRICS[gate.metric].title
    if gate.metric in NEEDED:
        return f"{title} needs {format_count(NEEDED[gate.metric])} operations, and fewer succeeded"
    if gate.metric in ("server_cpu", "service_cpu"):
        return f"{title} was not seen: the processes are not on this machine, or belong to others"
    if gate.metric in FIGURES:
        return f"the load has no {title}"
    return f"a load by itself has no {title}; guard an experiment for that"


def load_places(gates: Sequence[Gate]) -> tuple[Place, ...]:
    """Return where each gate is asked of a load."""
    return tuple(Place(gate, partial(gate_figure, gate), lacking(gate), gate.workload) for gate in gates)


def check_load_gates(gates: Sequence[Gate], run: RunFigures, names: Sequence[str]) -> None:
    """Refuse gates on scripts (or requests) that a load does not have; `names` are those that it has.

    Raises:
        UsageError: naming the gate, and what there is.
    """
    for gate in gates:
        if not gate.workload:
            continue
        if gate.workload not in names:
            near = hint(gate.workload, set(names))
            raise UsageError(f'gate "{gate.text}": {run.id} sends nothing called "{gate.workload}"{near}')
        if len(names) > 1 and not gate.metric.startswith("latency_"):
            raise UsageError(
                f'gate "{gate.text}": of one of several scripts a load tells times only; leave out '
                f'"on {gate.workload}"'
            )


def default_load_gates(run: RunFigures, *, open_loop: bool) -> tuple[Gate, ...]:
    """Return the gates of a load that was told none: throughput (in an open loop p50), p99, and success."""
    left_out = "throughput" if open_loop else "latency_p50"
    gates = [parse_gate(text) for text in _DEFAULTS]
    return tuple(gate for gate in gates if gate.metric != left_out and gate_figure(gate, run) is not None)
