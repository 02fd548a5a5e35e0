"""A block in one call of the load engine: slices of several arms in turn, over connections that stay open."""

from __future__ import annotations

from dataclasses import dataclass

from uncork.model.http_trial import TrialRequest
from uncork.model.measurement import Measurement, Slice

__all__ = ["BlockMeasurement", "BlockRequest", "SliceSize"]


@dataclass(frozen=True, slots=True)
class SliceSize:
    """How long one slice of an arm is. Exactly one of `duration_ns` and `operations` is given.

    Before the measured part, operations are sent for `settle_ns` and not counted, so that processor caches
    and clock frequency suit this arm again.
    """

    duration_ns: int | None = None
    operations: int | None = None
    settle_ns: int = 0


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """One block: the load of each arm, the size of its slices, and the order of the arms in each cycle.

    A cycle holds one slice of each arm. Cycles come in groups of `together`, which balance the order; the
    block ends after the first group that reaches `limit_ns`.
    """

    arms: tuple[TrialRequest, ...]
    sizes: tuple[SliceSize, ...]
    cycles: tuple[tuple[int, ...], ...]
    together: int = 2
    limit_ns: int | None = None


@dataclass(frozen=True, slots=True)
class BlockMeasurement:
    """What a block measured: for each arm all its slices together, and the slices in the order of time."""

    arms: tuple[Measurement, ...]
    slices: tuple[Slice, ...]
