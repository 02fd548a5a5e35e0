"""Detect cycles of a block that other programs disturbed, by how long our processes waited for a processor.

Other programs come in bursts. While one runs, the measured processes are ready to run but have no processor.
The kernel counts that time for each process (the run-queue delay in ``/proc/<pid>/schedstat``), and the
hypervisor counts steal. A cycle holds one slice of every arm. It is set aside when its delay, as a share of
the block's median cycle length, exceeds both::

    median + WIDTH · 1.4826 · MAD        (over all cycles of the block)
    median + FLOOR

The rule sees only the delay and the length of whole cycles. It never sees an arm or a latency. A cycle leaves
as a whole, so identical arms lose the same cycles.

Limits:

* At most `MOST` of a block's cycles are set aside, the most delayed first.
* No cycle is set aside if the median delay itself exceeds `CROWDED`. Then there are more clients than
  processors, and waiting for a processor is a property of the load.
* No cycle is set aside if the cycles' own times (length minus delay) are uneven: the longest more than `EVEN`
  times the median. A long cycle meets more bursts, so a variant's own slow operations would be set aside more
  often than quick ones, which would flatter the variant.
* No cycle is set aside if the block has fewer than `FEWEST` cycles.
* A variant's own waits (locks, reads, writes, a checkpoint) are not run-queue delay, because the process
  sleeps. Such cycles are never set aside, however long they take.

Known gap: a variant may start other processes of its own (an autovacuum worker, parallel workers) and wait
for a processor behind them in some cycles only. Do not apply the rule to blocks with such processes.

Alternatives not taken: trimming by latency (it removes a variant's own slow operations, which are what we
measure), and weights between 0 and 1 (0 and 1 can be counted and reported).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WIDTH = 5.0
"""How many scaled MADs above the median a cycle's share of delay must be."""
FLOOR = 0.02
"""How far above the median it must be in any case: 2 % of a cycle. This matters when quiet cycles are all
equal."""
MOST = 1.0 / 3.0
"""The largest fraction of a block's cycles that may be set aside."""
CROWDED = 0.05
"""If the median share of delay exceeds this, the load itself waits for processors and the rule is off."""
EVEN = 1.5
"""The rule is off if the longest cycle's own time exceeds the median's by more than this factor."""
FEWEST = 6
"""The rule needs this many cycles; a median and MAD of fewer mean little."""

_NORMAL = 1.4826  # a normal's standard deviation over its MAD


def cycle_weights(delay_ns: Sequence[float], elapsed_ns: Sequence[float]) -> NDArray[np.int8]:
    """Return 1 for each cycle of a block to keep, and 0 for each that other programs disturbed.

    Args:
        delay_ns: for each cycle, how long the measured processes waited for a processor, including steal.
        elapsed_ns: for each cycle, how long it took.

    Raises:
        ValueError: The lengths differ, or a time is negative or not a number.
    """
    delay, elapsed = (np.asarray(times, dtype=np.float64) for times in (delay_ns, elapsed_ns))
    if delay.shape != elapsed.shape or delay.ndim != 1:
        raise ValueError(f"delay_ns has {delay.size} cycles but elapsed_ns has {elapsed.size}")
    if not (np.all(delay >= 0.0) and np.all(elapsed >= 0.0)):
        raise ValueError("delays and lengths of cycles must be numbers of zero or more")
    weights = np.ones(delay.size, dtype=np.int8)
    length = float(np.median(elapsed)) if elapsed.size else 0.0
    if delay.size < FEWEST or length <= 0.0:
        return weights
    share = delay / length
    median = float(np.median(share))
    own = np.maximum(elapsed - delay, 0.0)
    if median > CROWDED or float(own.max()) > EVEN * float(np.median(own)):
        return weights
    scale = _NORMAL * float(np.median(np.abs(share - median)))
    disturbed = np.flatnonzero(share > median + max(WIDTH * scale, FLOOR))
    worst = disturbed[np.argsort(-share[disturbed], kind="stable")]
    weights[worst[: int(MOST * delay.size)]] = 0
    return weights
