"""Sweeps of systems whose truth is known, without a server: what visits of them see."""

import math
from collections.abc import Callable

import numpy as np

from uncork.experiment.plan.sweep import next_step
from uncork.model.sweep import SweepSpec
from uncork.model.tables.sweep import LoadStep
from uncork.stats.load.scalability import scalable_throughput

SECOND = 1_000_000_000


def law(load: float) -> float:
    """Contention and coherency: a flat top at 44 clients, power greatest at 13.6."""
    return scalable_throughput(load, 1000.0, 0.05, 0.0005)


def processors(count: float, sharpness: float = 12.0) -> Callable[[float], float]:
    """A hard limit: throughput rises with clients up to `count`, and is flat from there on."""
    return lambda load: 1000.0 / (load**-sharpness + count**-sharpness) ** (1.0 / sharpness)


def strongest(throughput: Callable[[float], float]) -> float:
    """The true knee: where throughput over latency, of clients in a closed loop, is greatest."""
    loads = np.geomspace(1, 4096, 20_000)
    return float(loads[np.argmax([2 * math.log(throughput(load)) - math.log(load) for load in loads])])


def step(number: int, round_: int, level: float, throughput: float, *, failed: float = 0.0) -> LoadStep:
    """A visit of two seconds; latency as Little's law has it, p99 two and a half times the mean."""
    started = round(2 * throughput)
    mean = level / throughput * SECOND
    return LoadStep(
        number=number, round=round_, level=level, elapsed_ns=2 * SECOND, started=started,
        succeeded=started - round(failed * started), failed=round(failed * started), mean_ns=mean,
        p50_ns=round(0.9 * mean), p90_ns=round(1.5 * mean), p95_ns=round(1.8 * mean),
        p99_ns=round(2.5 * mean), p999_ns=round(3.0 * mean), max_ns=round(4.0 * mean),
    )  # fmt: skip


def spec(**changes: object) -> SweepSpec:
    """A sweep of clients from 1 to 1024."""
    return SweepSpec(
        **{
            "axis": "clients",
            "start": 1.0,
            "end": 1024.0,
            "step_ns": 2 * SECOND,
            "budget_ns": 900 * SECOND,
            **changes,
        }
    )


def swept(
    throughput: Callable[[float], float],
    wanted: SweepSpec,
    generator: np.random.Generator,
    *,
    noise: float = 0.0,
    drift: float = 0.0,
    breaks_at: float = math.inf,
) -> list[LoadStep]:
    """Sweep a system to the end. `drift` wanders from visit to visit; from `breaks_at` on a half fails."""
    steps: list[LoadStep] = []
    wander = 0.0
    while (place := next_step(steps, wanted)) is not None:
        round_, level = place
        wander = 0.9 * wander + generator.normal(0.0, drift)
        seen = throughput(level) * math.exp(generator.normal(0.0, noise) + wander)
        failed = 0.5 if level >= breaks_at else 0.0
        steps.append(step(len(steps) + 1, round_, level, seen, failed=failed))
    return steps
