"""The wait classes of sessions that PostgreSQL has no class for."""

from __future__ import annotations

from typing import Final

CPU: Final = "CPU"
"""The class of sessions that are active and wait for nothing."""
IDLE: Final = "idle in transaction"
"""The class of sessions that hold a transaction open and wait for their client."""
