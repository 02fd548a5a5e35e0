"""The status of a run, as far as it can be seen from this machine."""

from __future__ import annotations

from uncork.engines import process
from uncork.store.layout import Manifest


def status_of(manifest: Manifest) -> str:
    """Return a run's status; ``killed`` if it is marked as running but its process is gone.

    A process on another machine that shares the disk cannot be seen: its run stays ``running``.
    """
    owner = manifest.owner
    if manifest.status == "running" and not process.is_same(owner) and not process.is_elsewhere(owner):
        return "killed"
    return manifest.status
