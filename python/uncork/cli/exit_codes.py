"""Exit statuses, the same for every command.

A broken gate and missing evidence have different numbers, so that scripts can tell them apart.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitStatus(IntEnum):
    """The exit status of a command."""

    OK = 0
    USAGE = 1
    """Invalid input or setup: nothing was measured, or the role may not see most of what was."""
    RUN_ERROR = 2
    """An error while measuring; partial results are kept."""
    GATE_FAILED = 3
    """An expectation (--expect) or a gate is broken."""
    NOT_ENOUGH_EVIDENCE = 4
    """An expectation or a gate is undecided."""
    INTERRUPTED = 130
    """Ctrl-C or a signal; what was measured is kept."""

    @property
    def meaning(self) -> str:
        """The meaning in the help and in the reference."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    ExitStatus.OK: "success",
    ExitStatus.USAGE: "invalid input or setup",
    ExitStatus.RUN_ERROR: "error while measuring (results are kept)",
    ExitStatus.GATE_FAILED: "a broken gate or expectation",
    ExitStatus.NOT_ENOUGH_EVIDENCE: "an undecided gate or expectation",
    ExitStatus.INTERRUPTED: "interrupted",
}
