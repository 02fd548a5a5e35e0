"""How a run goes while it is measured: a line a glance, for whoever follows it, and for a run that is killed.

Loads and watches keep their figures in memory until they end. A line is added to a file without waiting for
the disk, so that the load is not disturbed; a power cut may take the last ones. Whole tables take its place
at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["GLANCES", "add_glance", "forget_glances", "read_glances"]

GLANCES: Final = "glances.jsonl"
_MOST_BYTES: Final = 4 << 20
"""What is read of the end of the file: four hours of a glance a second."""


def add_glance(folder: Path, glance: Mapping[str, Any]) -> None:
    """Add a line. A disk that is full, or a folder that is gone, is no reason to end what is measured."""
    line = json.dumps(glance, separators=(",", ":")) + "\n"
    with contextlib.suppress(OSError):
        place = os.open(folder / GLANCES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(place, line.encode())
        finally:
            os.close(place)


def read_glances(folder: Path) -> list[dict[str, Any]]:
    """Return the glances in their order; none if there are none. A line that is not whole is left out."""
    try:
        with (folder / GLANCES).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                found.append(value)
    return found


def forget_glances(folder: Path) -> None:
    """Take the file away: the run's tables hold more."""
    with contextlib.suppress(OSError):
        (folder / GLANCES).unlink()
