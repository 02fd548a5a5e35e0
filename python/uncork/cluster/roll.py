"""Who takes part in a load: which nodes to ask next, and which do not answer in time. Pure.

A node is *open* until its part ends or the node is given up. At most one question to it is under way. Times
are seconds of the coordinator's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

OVERDUE_S: Final = 8.0
"""A node that has not answered for so long is lost. Its lease is over by then."""
UNREACHABLE_S: Final = 0.75
"""A node that refuses every connection for so long is lost, long before its lease ends: the process of its
agent has ended."""


@dataclass(slots=True)
class _Entry:
    heard_s: float
    failing_s: float | None = None
    asked_s: float | None = None
    due_s: float = 0.0
    ended: bool = False


class Roll:
    """The nodes of a load, and what is known about each."""

    def __init__(self, numbers: Iterable[int], now_s: float) -> None:
        self._entries = {number: _Entry(now_s) for number in numbers}

    @property
    def open(self) -> list[int]:
        """The nodes that have not ended."""
        return [number for number, entry in self._entries.items() if not entry.ended]

    def due(self, now_s: float) -> list[int]:
        """Return the open nodes to ask now."""
        return [
            number
            for number in self.open
            if self._entries[number].asked_s is None and self._entries[number].due_s <= now_s
        ]

    def asked(self, number: int, now_s: float) -> None:
        """Note that a node was asked."""
        self._entries[number].asked_s = now_s

    def answered(self, number: int, now_s: float, next_s: float) -> None:
        """Note that a node answered; it is asked again after `next_s` seconds, counted from the question."""
        entry = self._entries[number]
        entry.heard_s, entry.failing_s = now_s, None
        entry.due_s = (now_s if entry.asked_s is None else entry.asked_s) + next_s
        entry.asked_s = None

    def failed(self, number: int, now_s: float, next_s: float) -> None:
        """Note that a node could not be reached this time; it is asked again after `next_s` seconds."""
        entry = self._entries[number]
        if entry.failing_s is None:  # since the question: Ray tries for up to two seconds
            entry.failing_s = now_s if entry.asked_s is None else entry.asked_s
        entry.asked_s, entry.due_s = None, now_s + next_s

    def end(self, number: int) -> None:
        """Note that the part of a node has ended, or that the node is given up: it is not asked again."""
        self._entries[number].ended = True

    def overdue(self, now_s: float) -> list[int]:
        """Return the open nodes that were silent for `OVERDUE_S`, or not reached for `UNREACHABLE_S`."""
        return [number for number in self.open if self._is_overdue(self._entries[number], now_s)]

    @staticmethod
    def _is_overdue(entry: _Entry, now_s: float) -> bool:
        failing_s = 0.0 if entry.failing_s is None else now_s - entry.failing_s
        return failing_s > UNREACHABLE_S or now_s - entry.heard_s > OVERDUE_S

    def resume(self, now_s: float) -> None:
        """Begin to ask, or continue after a while: all open nodes are due now, and none is overdue."""
        for number in self.open:
            self._entries[number].due_s = self._entries[number].heard_s = now_s
