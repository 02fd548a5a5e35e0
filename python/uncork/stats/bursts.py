"""Cycles of a block that other programs disturbed, recognised by how long our processes waited.

Other programs come in bursts. While one runs, the measured processes are ready to run and have no processor;
the kernel counts that time for each of them (the run-queue delay in ``/proc/<pid>/schedstat``), and the
hypervisor counts steal. A cycle, which holds one slice of every arm, is set aside when its delay, as a share
of the block's median cycle, exceeds both::

    median + WIDTH · 1.4826 · MAD        (of all cycles of the block)
    median + FLOOR

The rule sees delays and lengths of whole cycles, no arm and no latency, and among the cycles of a block only
their delay tells them apart. A cycle leaves as a whole, so that arms that are alike lose alike. Limits:

* at most `MOST` of a block's cycles leave, the most delayed first;
* none leave when the median delay itself is above `CROWDED`: then there are more clients than processors, and
  waiting for a processor is a property of the load;
* none leave where the cycles' own times (length less delay) are uneven, the longest more than `EVEN` times
  the median: a long cycle meets more bursts, so that a variant's own slow operations would leave more often
  than quick ones, and flatter it;
* none leave from fewer than `FEWEST` cycles;
* what a variant waits for itself (locks, reads, writes, a checkpoint) is no run-queue delay: the process
  sleeps. Such cycles are never set aside, however long they take.

Not seen: a variant that starts other processes of its own (an autovacuum worker, parallel workers) and waits
for a processor behind them, in some cycles only. Do not apply the rule to blocks with such processes.

Not taken: trimming by latency (it removes a variant's own slow operations, the very thing to measure), and
weights between 0 and 1 (a cycle is disturbed or it is not, and 0 and 1 can be counted and reported).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["CROWDED", "EVEN", "FEWEST", "FLOOR", "MOST", "WIDTH", "cycle_weights"]

WIDTH = 5.0
"""How many scaled MADs above the median a cycle's share of delay must lie."""
FLOOR = 0.02
"""How far above the median it must lie in any case: 2 % of a cycle, where quiet cycles are all alike."""
MOST = 1.0 / 3.0
"""The largest share of a block's cycles that may be set aside."""
CROWDED = 0.05
"""Above this median share of delay the load itself waits for processors."""
EVEN = 1.5
"""The longest cycle's own time over the median's, at most, for the rule to apply to a block."""
FEWEST = 6
"""With fewer cycles a median and its MAD say little."""

_NORMAL = 1.4826  # a normal's standard deviation over its MAD


def cycle_weights(delay_ns: Sequence[float], elapsed_ns: Sequence[float]) -> NDArray[np.int8]:
    """Return 1 for each cycle of a block that counts, and 0 for each that other programs disturbed.

    Args:
        delay_ns: for each cycle how long the measured processes waited for a processor, steal included.
        elapsed_ns: for each cycle how long it took.

    Raises:
        ValueError: The lengths differ, or a time is negative or not a number.
    """
    delay, elapsed = (np.asarray(times, dtype=np.float64) for times in (delay_ns, elapsed_ns))
    if delay.shape != elapsed.shape or delay.ndim != 1:
        raise ValueError(f"{delay.size} delays but {elapsed.size} lengths of cycles")
    if not (np.all(delay >= 0.0) and np.all(elapsed >= 0.0)):
        raise ValueError("delays and lengths of cycles are numbers of zero or more")
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
