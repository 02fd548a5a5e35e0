"""The names (application_name) that uncork's own connections to a server carry."""

from __future__ import annotations

from typing import Final

__all__ = ["LOAD_APPLICATION", "WATCH_APPLICATION"]

LOAD_APPLICATION: Final = "uncork"
"""A connection that sends a load or prepares data: its work is the user's own, and every report shows it."""
WATCH_APPLICATION: Final = "uncork watch"
"""A connection that only looks: samples, snapshots, short questions. Reports on the server leave it out."""
