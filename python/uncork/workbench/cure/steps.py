"""Store the steps of a cure in its run while it works, so that the dashboard can follow it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from uncork.store.snapshots import add_snapshot


class CureSteps:
    """Passes messages on to `told`, and stores each as a snapshot of the run, with the step it belongs to.

    `begun` is when the cure began, by the monotonic clock, in seconds.
    """

    def __init__(self, folder: Path, budget_s: float, begun: float, told: Callable[[str], None]) -> None:
        self._folder, self._budget_s, self._begun, self._told = folder, budget_s, begun, told
        self._step = "choosing what to try"

    def begin(self, step: str, message: str = "") -> None:
        """Begin a step; the next messages belong to it. `message` is passed on."""
        self._step = step
        self.note("")
        if message:
            self._told(message)

    def __call__(self, message: str) -> None:
        """Store a message, and pass it on."""
        self.note(message)
        self._told(message)

    def note(self, message: str) -> None:
        """Store a message without passing it on."""
        elapsed_ns = int((time.monotonic() - self._begun) * 1e9)
        snapshot = {"elapsed_ns": elapsed_ns, "budget_ns": int(self._budget_s * 1e9)}
        add_snapshot(self._folder, {**snapshot, "step": self._step, "text": message})
