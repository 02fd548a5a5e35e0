"""The application names (application_name) of uncork's own connections to a server."""

from __future__ import annotations

from typing import Final

__all__ = ["LOAD_APPLICATION", "WATCH_APPLICATION"]

LOAD_APPLICATION: Final = "uncork"
"""A connection that sends load or prepares data. This work is the user's own, so every report shows it."""
WATCH_APPLICATION: Final = "uncork watch"
"""A connection that only observes: samples, snapshots, short queries. Reports on the server leave it out."""
