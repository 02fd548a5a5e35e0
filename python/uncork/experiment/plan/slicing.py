"""Choose the length, number and order of a block's slices. Pure.

A slice must be long compared with the cost of switching to another arm (two readings of the server's clocks,
about 0.3 ms, and cold processor caches). It must be short compared with the noise of the machine, so that the
arms of a cycle see the same conditions. On two virtual processors, with A/A pairs, slices of 20 ms keep 90 %
of the time for measuring, and any disturbance longer than a cycle cancels out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from uncork.model.block import SliceSize
from uncork.stats.compare import MINIMUM_ROUNDS

SLICE_NS = 20_000_000
LONG_SLICE_NS = 5 * SLICE_NS
"""Every third round has slices of this length, to check whether short ones disturb each other. The cost to an
arm of another arm's work just before, such as a cold cache, has a fifth of the weight in them."""

_LONG_EVERY = 3
SETTLE_NS = 1_000_000
"""An arm runs this long, unmeasured, before each slice: enough to refill the processor's caches."""

_SETTLED_BELOW_NS = 2_000_000
"""Slower operations do not settle: one operation warms the caches in a small part of its time."""

_OPERATIONS_EACH = 10
"""Operations per client in a slice, if there are several clients and enough time. At the end of a slice the
clients stop one by one, and the last one runs alone."""

_LEAST_EACH = 1
"""Operations per client in a slice if time is short. Every arm has equally few."""

_LONGEST_CROWDED_NS = 1_000_000_000
_OPEN_LOOP_NS = 500_000_000
_ARRIVALS = 30
"""An open loop begins each slice with an empty queue; a slice is long enough to fill it again."""

CYCLES_TOGETHER = 2
"""A random order of the arms, followed by its reverse."""

BLOCK_NS = 400_000_000
"""Minimum length of a block, if there is time."""

_MOST_BLOCKS = 4
"""Maximum number of blocks per round: their median tolerates one that was disturbed as a whole."""

_DRIFT = 0.05
"""Statements that write may change this fraction of a table's rows before the data is restored. Every arm
changes the same number, so the effect is equal for all."""

_UNKNOWN_ROWS = 1000
_MOST_CHANGES = 100_000

_WARMUP_NS = 20_000_000


@dataclass(frozen=True, slots=True)
class Pilot:
    """The result of a first, unrecorded block of a workload in a cell.

    `operation_ns` is the mean time of an operation of each arm, in the order of the block. `rows_each` is the
    number of rows that an operation changes, or None if it does not write.
    """

    operation_ns: tuple[float, ...]
    rows_each: float | None = None

    @property
    def writes(self) -> bool:
        """Return whether the statements change data that must be restored."""
        return self.rows_each is not None


def slice_sizes(
    pilot: Pilot,
    *,
    clients: int = 1,
    rate: float | None = None,
    most: int | None = None,
    time_ns: float | None = None,
) -> tuple[SliceSize, ...]:
    """Return the size of each arm's slices.

    Arms that only read have slices of equal time, or of one operation if that takes longer. A slow arm then
    runs fewer operations, but enough for its cost. Arms that write all run the same number of operations, so
    that their data changes equally.

    Args:
        pilot: the time of operations.
        clients: connections in a closed loop.
        rate: arrivals per second, in an open loop.
        most: maximum number of writing operations before the data must be restored.
        time_ns: how long a block may take. With several clients, slices become shorter until a random order
            of the arms and its reverse fit. None means no limit.
    """
    if pilot.writes:
        usual_ns = math.exp(math.fsum(map(math.log, pilot.operation_ns)) / len(pilot.operation_ns))
        operations = max(clients, round(SLICE_NS * clients / usual_ns))
        if most is not None:
            operations = max(min(operations, most // CYCLES_TOGETHER), 1)
        return tuple(SliceSize(operations=operations) for _ in pilot.operation_ns)
    if rate is not None:
        long_ns = max(_OPEN_LOOP_NS, int(_ARRIVALS / rate * 1e9))
        return tuple(SliceSize(duration_ns=long_ns) for _ in pilot.operation_ns)
    each = _OPERATIONS_EACH
    sizes = _closed(pilot, clients, each)
    while (
        clients > 1
        and time_ns is not None
        and each > _LEAST_EACH
        and CYCLES_TOGETHER * cycle_ns(pilot, sizes, clients) > time_ns
    ):
        each -= 1
        sizes = _closed(pilot, clients, each)
    return sizes


def _closed(pilot: Pilot, clients: int, each: int) -> tuple[SliceSize, ...]:
    """Return slices of equal time; with several clients, long enough for `each` operations per client."""
    found = []
    for operation_ns in pilot.operation_ns:
        crowded_ns = 0 if clients == 1 else min(int(each * operation_ns), _LONGEST_CROWDED_NS)
        settle_ns = SETTLE_NS if operation_ns < _SETTLED_BELOW_NS else 0
        found.append(SliceSize(duration_ns=max(SLICE_NS, crowded_ns), settle_ns=settle_ns))
    return tuple(found)


def cycle_ns(pilot: Pilot, sizes: Sequence[SliceSize], clients: int = 1) -> float:
    """Return the length of one cycle."""
    return math.fsum(
        size.settle_ns
        + (
            max(float(size.duration_ns), operation_ns)
            if size.duration_ns is not None
            else operation_ns * (size.operations or 1) / clients
        )
        for size, operation_ns in zip(sizes, pilot.operation_ns, strict=True)
    )


def has_long_slices(round_number: int, rounds: int) -> bool:
    """Return whether a round checks the short slices by using long ones: every third round does.

    None does if fewer than 15 rounds are planned: they hold fewer checks than a result needs (see
    `stats.lengths.is_disturbed`), and a round of few long slices is less precise.
    """
    return rounds >= _LONG_EVERY * MINIMUM_ROUNDS and round_number % _LONG_EVERY == 0


def lengthened(sizes: Sequence[SliceSize], pilot: Pilot, most: int | None) -> tuple[SliceSize, ...] | None:
    """Return sizes of long slices; None if that is impossible, or if slices are long already.

    Args:
        sizes: the normal sizes, see `slice_sizes`.
        pilot: the time of operations.
        most: maximum number of writing operations before the data must be restored.
    """
    times = LONG_SLICE_NS // SLICE_NS
    longer = []
    for size, operation_ns in zip(sizes, pilot.operation_ns, strict=True):
        if size.operations is not None:
            longer.append(replace(size, operations=size.operations * times))
        elif operation_ns >= LONG_SLICE_NS:  # one operation fills a long slice
            longer.append(size)
        else:
            longer.append(replace(size, duration_ns=max(size.duration_ns or 0, LONG_SLICE_NS)))
    if most is not None and CYCLES_TOGETHER * max(size.operations or 0 for size in longer) > most:
        return None
    return tuple(longer) if longer != list(sizes) else None


def changes_allowed(rows_each: float, table_rows: int | None, pool: int | None) -> int:
    """Return how many operations each arm may run before its data must be restored: at least 2.

    Args:
        rows_each: rows that an operation changes.
        table_rows: rows of the table; None if unknown, in which case a small table is assumed.
        pool: number of different values of a parameter that must not repeat; None if values may repeat.
    """
    most = _DRIFT * (_UNKNOWN_ROWS if table_rows is None else table_rows) / max(rows_each, 1.0)
    return int(max(min(most, _MOST_CHANGES if pool is None else pool), CYCLES_TOGETHER))


def block_count(time_ns: float, one_cycle_ns: float, overhead_ns: float = 0.0) -> int:
    """Return the number of blocks, 1 to 4, for a round's time for one comparison.

    A block measures for at least three times as long as its overhead.
    """
    least_ns = max(BLOCK_NS, CYCLES_TOGETHER * one_cycle_ns, 4.0 * overhead_ns)
    return int(min(max(time_ns // least_ns, 1), _MOST_BLOCKS))


def warmup_operations(asked: int, operation_ns: float) -> int:
    """Return how many operations warm up an arm in each block: as many as requested, but at most 20 ms."""
    return min(asked, max(1, int(_WARMUP_NS / max(operation_ns, 1.0))))


def cycle_order(arms: int, cycles: int, stream: str) -> tuple[tuple[int, ...], ...]:
    """Return the order of the arms in each cycle: random, then reversed, and so on, from a named stream."""
    lot, order = random.Random(stream), []
    for _ in range(-(-cycles // CYCLES_TOGETHER)):
        one = list(range(arms))
        lot.shuffle(one)
        order += [tuple(one), tuple(reversed(one))]
    return tuple(order)
