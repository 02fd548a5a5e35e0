"""What the words after `--sweep` ask for, or what is wrong with them. The same for SQL and HTTP. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from uncork.errors import UsageError
from uncork.model.sweep import SweepAxis, SweepSpec, parse_objectives
from uncork.model.units import format_duration, parse_duration
from uncork.requests.jobs import SweepRequest

__all__ = ["SweepOptions", "sweep_wanted"]

_VISIT_NS: Final = 2_000_000_000
_SHORTEST_NS: Final = 200_000_000
_BUDGET_NS: Final = 180_000_000_000
_MOST_RATE: Final = 10_000_000.0
_MOST: Final[dict[SweepAxis, float]] = {"clients": 512.0, "streams": 256.0, "rate": _MOST_RATE}
"""Where a sweep ends that is not told where."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What was typed of a sweep, unread, and what the load says that bears on it.

    `axes` are what can be raised. `starts` are where each begins, None where that is to be found.
    `visit_ns` is how long a visit lasts, None if nothing was said, and `visit_option` says it. `excluded` are
    options that were given and do not go with a sweep.
    """

    sweep: str | None
    to: str | None
    objective: str | None
    budget: str | None
    axes: tuple[SweepAxis, ...]
    starts: dict[SweepAxis, float | None]
    visit_ns: int | None
    visit_option: str
    excluded: tuple[str, ...]
    seed: int


def sweep_wanted(asked: SweepOptions) -> SweepRequest | None:
    """Return the sweep that the words ask for; None if they ask for none. Pure.

    Raises:
        UsageError: if something cannot be understood, or contradicts something else.
    """
    if asked.sweep is None:
        for option, value in (
            ("--objective", asked.objective),
            ("--to", asked.to),
            ("--budget", asked.budget),
        ):
            if value is not None:
                choice = " or ".join(f"--sweep {one}" for one in asked.axes)
                raise UsageError(f"{option} belongs to a sweep: add {choice}")
        return None
    axis = next((one for one in asked.axes if one == asked.sweep), None)
    if axis is None:
        choice = f"{', '.join(asked.axes[:-1])} or {asked.axes[-1]}"
        raise UsageError(f'--sweep "{asked.sweep}": what is raised is {choice}')
    for option in asked.excluded:
        raise UsageError(f"{option} does not go with --sweep {axis}: leave it out")
    start, end = asked.starts[axis], _end(asked.to, axis)
    if start is not None and start >= end:
        raise UsageError(f"the sweep ends at {end:g} (--to), which is not above its beginning, {start:g}")
    try:
        objectives = () if asked.objective is None else parse_objectives(asked.objective)
    except ValueError as error:
        raise UsageError(f"--objective: {error}") from error
    try:
        budget = _BUDGET_NS if asked.budget is None else parse_duration(asked.budget)
    except ValueError as error:
        raise UsageError(f"--budget: {error}") from error
    visit = _VISIT_NS if asked.visit_ns is None else asked.visit_ns
    if visit < _SHORTEST_NS:
        raise UsageError(f"{asked.visit_option}: a visit must last {format_duration(_SHORTEST_NS)} at least")
    sweep = SweepSpec(axis, start or 1.0, end, visit, budget, objectives, seed=asked.seed)
    return SweepRequest(sweep, start)


def _end(text: str | None, axis: SweepAxis) -> float:
    if text is None:
        return _MOST[axis]
    whole = axis != "rate"
    try:
        end = float(int(text)) if whole else float(text)
    except ValueError as error:
        raise UsageError(f'--to "{text}": give a {"whole " if whole else ""}number') from error
    if not 1 <= end <= _MOST_RATE:
        raise UsageError(f"--to {text} must lie between 1 and {_MOST_RATE:.0f}")
    return end
