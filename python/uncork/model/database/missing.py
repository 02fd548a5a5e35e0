"""What a profile could not observe."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Missing"]


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that could not be observed: what is lost without it, and how to get it."""

    what: str
    lost: str
    remedy: str
