"""How a run is, as far as can be seen from here."""

from __future__ import annotations

from uncork.engines import process
from uncork.store.layout import Manifest

__all__ = ["status_of"]


def status_of(manifest: Manifest) -> str:
    """Return a run's status; ``killed`` for one that says it is running though its process is gone.

    Whether a process on another machine that shares the disk still lives cannot be seen: its run stays
    ``running``.
    """
    owner = manifest.owner
    if manifest.status == "running" and not process.is_same(owner) and not process.is_elsewhere(owner):
        return "killed"
    return manifest.status
