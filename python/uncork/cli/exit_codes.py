"""Exit statuses, the same for every command.

Distinct numbers for a failed gate and for missing evidence, because a script must tell them apart.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitStatus"]


class ExitStatus(IntEnum):
    """What a command's exit status means."""

    OK = 0
    USAGE = 1
    """Usage or set-up: nothing was measured."""
    RUN_ERROR = 2
    """Something broke while measuring; partial results are kept."""
    GATE_FAILED = 3
    """An expectation given with --expect, or a gate of a guard, is broken."""
    NOT_ENOUGH_EVIDENCE = 4
    """An expectation, or a gate, could not be decided."""
    INTERRUPTED = 130
    """Ctrl-C or a signal; what was measured is kept."""
