"""The time, as manifests store it."""

from __future__ import annotations

from datetime import UTC, datetime


def now_text() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
