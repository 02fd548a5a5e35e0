"""Cache the metrics of a run in its folder, because a history reads hundreds of runs."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from uncork import __version__
from uncork.errors import StoreError
from uncork.model.results.figure import RunFigures
from uncork.store.documents import decoded
from uncork.store.remote.mirror import put_copy

_NAME: Final = "figures.json"
_VERSION: Final = 1
"""Increase this whenever the metrics computed from a run change."""


def remember_figures(folder: Path, run: RunFigures) -> None:
    """Cache a run's metrics until its manifest changes; do nothing if the folder is read-only."""
    key = _key(folder)
    with contextlib.suppress(StoreError):
        if key is not None:
            text = json.dumps({"key": key, "run": asdict(run)}, ensure_ascii=False, allow_nan=False)
            put_copy(folder / _NAME, (text + "\n").encode())  # after a power cut, it is computed again


def recall_figures(folder: Path) -> RunFigures | None:
    """Return a run's cached metrics; None if there are none, or if the run has changed since."""
    try:
        data = json.loads((folder / _NAME).read_text())
        return decoded(RunFigures, data["run"]) if data["key"] == _key(folder) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _key(folder: Path) -> list[Any] | None:
    try:
        facts = (folder / "manifest.json").stat()
    except OSError:
        return None
    return [_VERSION, __version__, facts.st_mtime_ns, facts.st_size]
