"""Plan trials for two targets of one load side by side, and return a trial as a table row. Pure.

A *leg* is one such trial: the load sent to one target for a short while. A block holds three, the baseline,
the baseline again and the candidate, in random order. Blocks come in pairs: the second is in the reverse
order of the first, so that steady drift during a round affects all equally. A round is one pair.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from uncork.model.load import LoadMeasurement
from uncork.model.tables.load import LoadTimes
from uncork.stats.compare import MINIMUM_ROUNDS

TURN_NS: Final = 2_000_000_000
"""Minimum length of a trial: connecting and warming a connection then take a few percent of it."""
LONGEST_TURN_NS: Final = 10_000_000_000
SHORTEST_TURN_NS: Final = 250_000_000
"""Trials are never shorter, however small the budget is."""
_ENOUGH: Final = 2.0
"""A trial should have this many times the operations that a metric needs."""

_LEAST_TURNS: Final = 6 * MINIMUM_ROUNDS + 2
"""The trials that a verdict needs: six in each round, and one per side to warm up."""
_MEASURED: Final = 0.9
"""The fraction of the budget in which trials run. Connecting and storing take the rest."""

Role = Literal["baseline", "candidate"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One trial; `number` counts from 1; `again`: the baseline's second trial in a block."""

    number: int
    round: int
    block: int
    role: Role
    again: bool = False


def plan_turns(seed: int, round_: int) -> tuple[Turn, ...]:
    """Return the trials of a round (from 1) in order. The same seed and round give the same order."""
    arms: list[tuple[Role, bool]] = [("baseline", False), ("baseline", True), ("candidate", False)]
    random.Random(f"{seed}/legs/{round_}").shuffle(arms)
    places = [(block, arm) for block, order in ((1, arms), (2, arms[::-1])) for arm in order]
    first = (round_ - 1) * len(places) + 1
    return tuple(
        Turn(first + place, round_, block, role, again) for place, (block, (role, again)) in enumerate(places)
    )


def turn_ns(operations_a_second: float, needed: int, budget_ns: int) -> int:
    """Return how long a trial must be for a metric that needs this many operations, within the limits.

    It is shorter if the budget would otherwise not hold the rounds that a verdict needs.
    """
    longest_ns = LONGEST_TURN_NS
    if operations_a_second > 0:
        longest_ns = min(longest_ns, max(TURN_NS, round(_ENOUGH * needed / operations_a_second * 1e9)))
    return min(longest_ns, max(SHORTEST_TURN_NS, round(_MEASURED * budget_ns / _LEAST_TURNS)))


def turn_row(turn: Turn, measured: LoadMeasurement, script: str = "") -> dict[str, Any]:
    """Return a trial, or the times of a script in it, as a row of the table `trials`, for gates."""
    totals = measured.totals
    row: dict[str, Any] = {
        "round": turn.round,
        "block": turn.block,
        "variant": turn.role,
        "again": turn.again,
        "outcome": str(totals.outcome),
        "counted_operations": None,
        **{name: getattr(totals, name) for name in _COUNTED},
    }
    times = _times(measured.times, script)
    if times is not None and times.p50_ns is not None:
        found = asdict(times)
        row |= {name: found[name] for name in _TIMED} | {"executions": times.executions - times.errors}
    return row


_COUNTED: Final = (
    *("started", "succeeded", "failed", "elapsed_ns", "client_user_ns", "client_system_ns"),
    *("server_user_ns", "server_system_ns", "sent_bytes", "received_bytes"),
)
_TIMED: Final = ("sum_ns", "p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns")


def _times(rows: Sequence[LoadTimes], script: str) -> LoadTimes | None:
    kind = "script" if script else "operation"
    return next((row for row in rows if row.kind == kind and row.script == script), None)
