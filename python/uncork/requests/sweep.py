"""Turn the options of a load sweep into a request, or refuse them: shared by SQL and HTTP. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from uncork.errors import UsageError
from uncork.model.sweep import SweepAxis, SweepSpec, parse_objectives
from uncork.model.units import format_duration
from uncork.requests.jobs import SweepRequest

_STEP_NS: Final = 2_000_000_000
_SHORTEST_NS: Final = 200_000_000
_BUDGET_NS: Final = 180_000_000_000
_MOST_RATE: Final = 10_000_000.0
_MOST: Final[dict[SweepAxis, float]] = {"clients": 512.0, "streams": 256.0, "rate": _MOST_RATE}
"""Default end of a sweep."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of a sweep, and the values it takes from the load.

    `axes` are the quantities that can be raised. `starts` holds the first level of each; None means that the
    sweep finds it. `step_ns` is the length of a load step, None if not given, and `step_option` the option
    that sets it. `excluded` are given options that cannot be combined with a sweep.
    """

    sweep: str | None
    to: float | None
    objective: str | None
    budget: int | None
    axes: tuple[SweepAxis, ...]
    starts: dict[SweepAxis, float | None]
    step_ns: int | None
    step_option: str
    excluded: tuple[str, ...]
    seed: int
    verify: bool = False


def sweep_request(options: SweepOptions) -> SweepRequest | None:
    """Return the requested sweep, or None without --sweep. Pure.

    Raises UsageError if an option is invalid or contradicts another.
    """
    if options.sweep is None:
        for option, value in (
            ("--objective", options.objective),
            ("--to", options.to),
            ("--budget", options.budget),
            ("--verify", options.verify or None),
        ):
            if value is not None:
                choice = " or ".join(f"--sweep {axis}" for axis in options.axes)
                raise UsageError(f"{option} requires a sweep: add {choice}")
        return None
    axis = next((axis for axis in options.axes if axis == options.sweep), None)
    if axis is None:
        choice = f"{', '.join(options.axes[:-1])} or {options.axes[-1]}"
        raise UsageError(f'--sweep "{options.sweep}": expecting {choice}')
    for option in options.excluded:
        raise UsageError(f"{option} cannot be combined with --sweep {axis}: leave it out")
    start, end = options.starts[axis], _end(options.to, axis)
    if start is not None and start >= end:
        raise UsageError(f"--to {end:g} must be above the first level, {start:g}")
    try:
        objectives = () if options.objective is None else parse_objectives(options.objective)
    except ValueError as error:
        raise UsageError(f"--objective: {error}") from error
    budget = _BUDGET_NS if options.budget is None else options.budget
    step = _STEP_NS if options.step_ns is None else options.step_ns
    if step < _SHORTEST_NS:
        raise UsageError(
            f"{options.step_option}: a load step must last at least {format_duration(_SHORTEST_NS)}"
        )
    sweep = SweepSpec(axis, start or 1.0, end, step, budget, objectives, seed=options.seed)
    return SweepRequest(sweep, start, options.verify)


def most_clients(sweep: SweepRequest, clients: int) -> int:
    """Return how many clients the largest step of a sweep has; `clients` are those of the load."""
    return int(sweep.spec.end) if sweep.spec.axis == "clients" else clients


def _end(to: float | None, axis: SweepAxis) -> float:
    if to is None:
        return _MOST[axis]
    if axis != "rate" and not to.is_integer():
        raise UsageError(f"--to {to:g}: give a whole number of {axis}")
    if not 1 <= to <= _MOST_RATE:
        raise UsageError(f"--to {to:.10g} must be between 1 and {_MOST_RATE:.0f}")
    return to
