"""A result of another tool, as figures of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from uncork.model.results.figure import Figure

__all__ = ["ImportedRun"]


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """What a file of another tool tells.

    `started_at` is when it was measured, in ISO form with its zone; None where the file does not say.
    `asked` and `environment` are what it tells of what was to be done, and of machine and server.
    """

    tool: str
    question: str
    figures: tuple[Figure, ...]
    asked: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    started_at: str | None = None
