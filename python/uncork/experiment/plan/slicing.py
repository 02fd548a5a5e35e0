"""How long the slices of a block are, how many there are, and in which order: pure.

A slice has to be long against what switching to another arm costs (two readings of the server's clocks, some
0.3 ms, and cold processor caches), and short against the noise of the machine, so that the arms of a cycle
meet the same machine. Measured on two virtual processors with A/A pairs: 20 ms keeps 90 % of the time for
measuring, and what lasts longer than a cycle cancels out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from uncork.model.block import SliceSize

__all__ = [
    "BLOCK_NS",
    "CYCLES_TOGETHER",
    "LONG_SLICE_NS",
    "SLICE_NS",
    "Pilot",
    "block_count",
    "changes_allowed",
    "cycle_ns",
    "cycle_order",
    "has_long_slices",
    "lengthened",
    "slice_sizes",
    "warmup_operations",
]

SLICE_NS = 20_000_000
LONG_SLICE_NS = 5 * SLICE_NS
"""Every third round has slices of this length, to see whether short ones disturb each other: what an arm
pays because another one has just worked, such as for a cold cache, weighs a fifth as much in them."""

_LONG_EVERY = 3
SETTLE_NS = 1_000_000
"""An arm works for so long, unmeasured, before each slice: enough to refill the processor's caches."""

_SETTLED_BELOW_NS = 2_000_000
"""Slower operations do not settle: one of them warms the caches within a small part of itself."""

_OPERATIONS_EACH = 10
"""Operations of each client in a slice, where there are several clients and time enough: when the slice ends
they stop one by one, and whoever is last runs alone."""

_LEAST_EACH = 1
"""Operations of each client in a slice where time is short. Every arm has equally few of them."""

_LONGEST_CROWDED_NS = 1_000_000_000
_OPEN_LOOP_NS = 500_000_000
_ARRIVALS = 30
"""An open loop begins each slice with an empty queue: a slice is long enough to fill it again."""

CYCLES_TOGETHER = 2
"""A random order of the arms, then its reverse."""

BLOCK_NS = 400_000_000
"""How long a block is at least, if there is time."""

_MOST_BLOCKS = 4
"""Blocks of one round, if there is time: their median shrugs off one that was disturbed as a whole."""

_DRIFT = 0.05
"""Statements that write may change this part of a table's rows before the data is put back. Every arm changes
the same number, so that it weighs on all of them alike."""

_UNKNOWN_ROWS = 1000
_MOST_CHANGES = 100_000

_WARMUP_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a first, unrecorded block of a workload in a cell showed.

    `operation_ns` is the mean time of an operation of each arm, in the order of the block. `rows_each` counts
    the rows that an operation changes, if it writes; else it is None.
    """

    operation_ns: tuple[float, ...]
    rows_each: float | None = None

    @property
    def writes(self) -> bool:
        """Whether the statements change data that has to be put back."""
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

    Arms that only read have slices of equal time, or of one operation where that takes longer: a slow arm
    then gets fewer operations, but each arm enough of them for its cost. Arms that write all do the same
    number of operations, so that their data changes alike.

    Args:
        pilot: what operations take.
        clients: connections in a closed loop.
        rate: arrivals a second, in an open loop.
        most: operations that may write before the data has to be put back.
        time_ns: how long a block may take: slices of several clients become shorter until a random order of
            the arms and its reverse fit. None if it does not matter.
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
    """Return slices of equal time; of several clients, long enough for `each` operations of each of them."""
    found = []
    for operation_ns in pilot.operation_ns:
        crowded_ns = 0 if clients == 1 else min(int(each * operation_ns), _LONGEST_CROWDED_NS)
        settle_ns = SETTLE_NS if operation_ns < _SETTLED_BELOW_NS else 0
        found.append(SliceSize(duration_ns=max(SLICE_NS, crowded_ns), settle_ns=settle_ns))
    return tuple(found)


def cycle_ns(pilot: Pilot, sizes: Sequence[SliceSize], clients: int = 1) -> float:
    """Return how long one cycle takes."""
    return math.fsum(
        size.settle_ns
        + (
            max(float(size.duration_ns), operation_ns)
            if size.duration_ns is not None
            else operation_ns * (size.operations or 1) / clients
        )
        for size, operation_ns in zip(sizes, pilot.operation_ns, strict=True)
    )


def has_long_slices(round_number: int) -> bool:
    """Say whether a round is one of those that check the short slices: every third."""
    return round_number % _LONG_EVERY == 0


def lengthened(sizes: Sequence[SliceSize], pilot: Pilot, most: int | None) -> tuple[SliceSize, ...] | None:
    """Return sizes of long slices, or None where that is not possible, or where slices are long already.

    Args:
        sizes: the usual ones, see `slice_sizes`.
        pilot: what operations take.
        most: operations that may write before the data has to be put back.
    """
    times = LONG_SLICE_NS // SLICE_NS
    longer = []
    for size, operation_ns in zip(sizes, pilot.operation_ns, strict=True):
        if size.operations is not None:
            longer.append(replace(size, operations=size.operations * times))
        elif operation_ns >= LONG_SLICE_NS:  # a slice holds one operation, and that is long
            longer.append(size)
        else:
            longer.append(replace(size, duration_ns=max(size.duration_ns or 0, LONG_SLICE_NS)))
    if most is not None and CYCLES_TOGETHER * max(one.operations or 0 for one in longer) > most:
        return None
    return tuple(longer) if longer != list(sizes) else None


def changes_allowed(rows_each: float, table_rows: int | None, pool: int | None) -> int:
    """Return how many operations each arm may do before its data has to be put back: at least 2.

    Args:
        rows_each: rows that an operation changes.
        table_rows: rows of the table; None if unknown, and then it is taken for a small one.
        pool: how many different values there are of a parameter that must not come twice; None if any may.
    """
    most = _DRIFT * (_UNKNOWN_ROWS if table_rows is None else table_rows) / max(rows_each, 1.0)
    return int(max(min(most, _MOST_CHANGES if pool is None else pool), CYCLES_TOGETHER))


def block_count(time_ns: float, one_cycle_ns: float, overhead_ns: float = 0.0) -> int:
    """Return into how many blocks a round's time for one comparison is cut: 1 to 4.

    A block measures for at least three times as long as what goes around it.
    """
    least_ns = max(BLOCK_NS, CYCLES_TOGETHER * one_cycle_ns, 4.0 * overhead_ns)
    return int(min(max(time_ns // least_ns, 1), _MOST_BLOCKS))


def warmup_operations(asked: int, operation_ns: float) -> int:
    """Return how many operations warm an arm up in each block: what was asked for, in at most 50 ms."""
    return min(asked, max(1, int(_WARMUP_NS / max(operation_ns, 1.0))))


def cycle_order(arms: int, cycles: int, stream: str) -> tuple[tuple[int, ...], ...]:
    """Return the order of the arms in each cycle: random, then reversed, and so on from a named stream."""
    lot, order = random.Random(stream), []
    for _ in range(-(-cycles // CYCLES_TOGETHER)):
        one = list(range(arms))
        lot.shuffle(one)
        order += [tuple(one), tuple(reversed(one))]
    return tuple(order)
