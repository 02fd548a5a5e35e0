"""Where each arm's data lives: in a database of its own, or with others of the same set-up."""

from __future__ import annotations

from uncork.experiment.plan.order import arms, cells, texts_for
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.sqltext import substitute
from uncork.model.trial import Arm, Cell

__all__ = ["Placement", "Placements", "database_settings", "session_settings"]

Placement = tuple[Cell, Arm]
"""The first cell and arm that live there: it names the data towards the server."""


class Placements:
    """Answers where the data of an arm in a cell is.

    Without ``[setup] shared`` every arm of every cell is at home with itself. With it, all whose set-up SQL
    comes out the same share one database. The settings of their variants then belong to connections, for a
    database has only one value of each.
    """

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._placements: dict[Placement, Placement] = {}
        first: dict[tuple[str, str, str], Placement] = {}
        for cell in cells(spec):
            for arm in arms(spec):
                own = (cell, arm)
                self._placements[own] = (
                    first.setdefault(self._made(cell, arm), own) if spec.setup.shared else own
                )

    def of(self, cell: Cell, arm: Arm) -> Placement:
        """Return where an arm's data is in a cell."""
        return self._placements[(cell, arm)]

    def in_cell(self, cell: Cell) -> list[Placement]:
        """Return every home of a cell's arms, each once, in the order of the arms."""
        return list(dict.fromkeys(self.of(cell, arm) for arm in arms(self._spec)))

    def templates(self) -> list[tuple[Cell, str]]:
        """Return the cells and variants whose set-up must be run, in the order of the file."""
        return [
            (cell, variant)
            for cell in cells(self._spec)
            for variant in self._spec.variants
            if self.of(cell, Arm(variant)) == (cell, Arm(variant))
        ]

    def script(self, cell: Cell, variant: str) -> str:
        """Return the set-up SQL of a variant in a cell, its extensions before it on the same line."""
        names = self._spec.variants[variant].extensions
        made = "".join(f'CREATE EXTENSION IF NOT EXISTS "{name}"; ' for name in names)
        return made + substitute(self._spec.setup_sql(variant), texts_for(self._spec, cell, variant))

    def _made(self, cell: Cell, arm: Arm) -> tuple[str, str, str]:
        """Return what decides how an arm's data comes out: engine, where it is reached, and set-up."""
        variant = self._spec.variants[arm.variant]
        reached = repr((variant.connect, variant.server))
        return (self._spec.engine(arm.variant), reached, self.script(cell, arm.variant))


def database_settings(spec: Spec, variant: str) -> dict[str, str | int | float | bool]:
    """Return the settings that a variant's database has."""
    return {} if spec.setup.shared else dict(spec.variants[variant].settings)


def session_settings(spec: Spec, variant: str) -> dict[str, str]:
    """Return the settings that a variant's connections have, as text."""
    settings = spec.variants[variant].settings if spec.setup.shared else {}
    return {name: _text(value) for name, value in settings.items()}


def _text(value: str | int | float | bool) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
