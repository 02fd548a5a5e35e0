"""A block in one call of the load engine: slices of several arms in turn, over connections that stay open."""

from __future__ import annotations

from uncork.model.http_trial import TrialRequest
from uncork.model.measurement import Measurement, Slice
from uncork.model.records import Record


class SliceSize(Record):
    """The length of one slice of an arm. Exactly one of `duration_ns` and `operations` is given.

    Before the measured part, the engine sends operations for `settle_ns` without counting them, so that
    processor caches and clock frequency adapt to this arm again.
    """

    duration_ns: int | None = None
    operations: int | None = None
    settle_ns: int = 0


class BlockRequest(Record):
    """One block: the load of each arm, the size of its slices, and the order of the arms in each cycle.

    A cycle holds one slice of each arm. Cycles come in groups of `together`, which balance the order; the
    block ends after the first group that reaches `limit_ns`.
    """

    arms: tuple[TrialRequest, ...]
    sizes: tuple[SliceSize, ...]
    cycles: tuple[tuple[int, ...], ...]
    together: int = 2
    limit_ns: int | None = None


class BlockMeasurement(Record):
    """The measurement of a block: all slices of each arm together, and the slices in order of time."""

    arms: tuple[Measurement, ...]
    slices: tuple[Slice, ...]
