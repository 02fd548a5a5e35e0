"""What is compared, and in which order: cells, arms and trials.

A block holds one trial of each *arm*: each variant once, the baseline twice. The second baseline is the A/A
arm: both do the same, so noise alone explains their difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uncork.model.records import Record


@dataclass(frozen=True, order=True, slots=True)
class Cell:
    """One combination of factor levels.

    `levels` holds (factor, level name) pairs in the order of the experiment file; an experiment without
    factors has one cell with no levels.
    """

    levels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, levels: Mapping[str, str]) -> Cell:
        """Make a cell from factor names and level names."""
        return cls(tuple(levels.items()))

    @property
    def name(self) -> str:
        """Identify the cell in files and messages: ``rows=1000,index=none``; ``all`` without factors."""
        return ",".join(f"{factor}={level}" for factor, level in self.levels) or "all"

    @property
    def at(self) -> str:
        """Return the cell for the end of a phrase: `` at rows=1000,index=none``; empty without factors."""
        return f" at {self.name}" if self.levels else ""

    def level(self, factor: str) -> str:
        """Return the level of a factor; raises KeyError if the cell has no such factor."""
        return dict(self.levels)[factor]

    def matches(self, chosen: Mapping[str, frozenset[str]]) -> bool:
        """Say whether every chosen factor has one of its chosen levels in this cell."""
        return all(level in chosen[factor] for factor, level in self.levels if factor in chosen)


@dataclass(frozen=True, order=True, slots=True)
class Arm:
    """One trial of a block: a variant, or the baseline's second run (`again`)."""

    variant: str
    again: bool = False

    @property
    def name(self) -> str:
        """Identify the arm: the variant's name, with ``#2`` for the baseline's second run."""
        return f"{self.variant}#2" if self.again else self.variant


class Trial(Record):
    """One workload against one arm in one cell, at its place in the run.

    `round` and `block` count from 1; `position` is the trial's place within its block, from 0.
    """

    round: int
    block: int
    position: int
    cell: Cell
    workload: str
    arm: Arm

    @property
    def comparison_key(self) -> tuple[Cell, str]:
        """Return the key of what is judged together: the trials of one cell and one workload."""
        return (self.cell, self.workload)
