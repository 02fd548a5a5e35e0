"""The progress of a whole load, from the snapshots of its nodes, which arrive at different times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from uncork.load.merging import merged_progress
from uncork.model.load import LoadProgress

__all__ = ["WholeProgress"]


class WholeProgress:
    """Joins snapshots of the same second, which is complete when every node that still sends reported it.

    `store` gets each complete second, and `show` each `every` seconds.
    """

    def __init__(
        self,
        store: Callable[[LoadProgress], None],
        show: Callable[[LoadProgress], None] | None,
        every: int = 1,
    ) -> None:
        self._store = store
        self._show = show
        self._every = every
        self._by_second: dict[int, dict[int, LoadProgress]] = {}
        self._reached: dict[int, int] = {}
        self._last = 0
        self._unshown: list[LoadProgress] = []

    def add(self, number: int, snapshots: Sequence[LoadProgress]) -> None:
        """Add the new snapshots of a node, one a second."""
        for one in snapshots:
            second = max(1, round(one.elapsed_ns / 1e9))
            self._reached[number] = second
            if second > self._last:
                self._by_second.setdefault(second, {})[number] = one

    def follow(self, sending: Collection[int]) -> None:
        """Store and show the seconds that are complete now; `sending` are the nodes that still send."""
        until = min((self._reached.get(number, 0) for number in sending), default=0)
        for second in sorted(one for one in self._by_second if one <= until):
            found = list(self._by_second.pop(second).values())
            self._last = second
            self._store(merged_progress(found))
            self._unshown += found
            if self._show is not None and second % self._every == 0:
                self._show(merged_progress(self._unshown))
                self._unshown.clear()
