"""Published investigations as data: an experiment file, its SQL, and the published figures."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Return the names of the cases, in alphabetical order."""
    return sorted(found.parent.name for found in _FOLDER.glob("*/case.toml"))


def path(name: str) -> Path:
    """Return the folder of a case. Raises KeyError if there is no such case."""
    if name not in names():
        raise KeyError(name)
    return _FOLDER / name
