"""The progress of a whole load, from the snapshots of its nodes, which arrive at different times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from uncork.load.merging import merged_progress
from uncork.model.load import LoadProgress

Snapshots = defaultdict[int, list[LoadProgress]]
"""Each node's snapshots, in order."""


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
        self._by_second: defaultdict[int, Snapshots] = defaultdict(_no_snapshots)
        self._reached: dict[int, LoadProgress] = {}
        self._followed: dict[int, LoadProgress] = {}
        self._last = 0
        self._unshown = _no_snapshots()

    def add(self, number: int, snapshots: Sequence[LoadProgress]) -> None:
        """Add the new snapshots of a node, about one a second."""
        for snapshot in snapshots:
            self._reached[number] = snapshot
            if _second(snapshot) > self._last:
                self._by_second[_second(snapshot)][number].append(snapshot)

    def follow(self, sending: Collection[int]) -> None:
        """Store and show the seconds that are complete now; `sending` are the nodes that still send."""
        reached = [self._reached.get(number) for number in sending]
        until = min((0 if one is None else _second(one) for one in reached), default=0)
        for second in sorted(one for one in self._by_second if one <= until):
            found = self._by_second.pop(second)
            self._last = second
            self._store(self._joined(found, sending))
            for number, several in found.items():
                self._unshown[number] += several
                self._followed[number] = several[-1]
            if self._show is not None and second % self._every == 0:
                self._show(self._joined(self._unshown, sending))
                self._unshown.clear()

    def _joined(self, found: Snapshots, sending: Collection[int]) -> LoadProgress:
        """Add up snapshots. A node that sends but has none, since its snapshot was late, has its clients."""
        whole = merged_progress(list(found.values()))
        late = [self._followed[one] for one in sending if one not in found and one in self._followed]
        return replace(
            whole,
            clients=whole.clients + sum(one.clients for one in late),
            backlog=whole.backlog + sum(one.backlog for one in late),
        )


def _second(one: LoadProgress) -> int:
    return max(1, round(one.elapsed_ns / 1e9))


def _no_snapshots() -> Snapshots:
    return defaultdict(list)
