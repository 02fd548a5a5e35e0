"""Keep how a run goes while it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from uncork.store.glances import add_glance

if TYPE_CHECKING:
    from uncork.model.load import LoadProgress
    from uncork.workbench.profile.database_watch import Glance

__all__ = ["noted"]

Seen = TypeVar("Seen", "LoadProgress", "Glance")


def noted(folder: Path, told: Callable[[Seen], None] | None) -> Callable[[Seen], None]:
    """Return what keeps each glance at a load or a server in its run's folder, then tells `told`."""

    def note(glance: Seen) -> None:
        add_glance(folder, asdict(glance))
        if told is not None:
            told(glance)

    return note
