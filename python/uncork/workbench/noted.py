"""Keep how a load goes while it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from uncork.model.load import LoadProgress
from uncork.store.glances import add_glance

__all__ = ["noted"]


def noted(folder: Path, told: Callable[[LoadProgress], None] | None) -> Callable[[LoadProgress], None]:
    """Return what keeps each glance at a load in its run's folder, then tells `told`."""

    def note(progress: LoadProgress) -> None:
        add_glance(folder, asdict(progress))
        if told is not None:
            told(progress)

    return note
