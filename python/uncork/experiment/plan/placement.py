"""Decide in which database each arm's data lives: its own, or one shared with others of the same set-up."""

from __future__ import annotations

from uncork.experiment.plan.order import arms, cells, texts_for
from uncork.experiment.plan.server_settings import server_settings
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.sqltext import substitute
from uncork.model.trial import Arm, Cell

Placement = tuple[Cell, Arm]
"""The first cell and arm whose data is in a database; it identifies that data to the server."""


class Placements:
    """Maps each arm of each cell to the placement of its data.

    Without ``[setup] shared``, every arm of every cell has its own data. With it, all arms with the same
    server and set-up SQL share one database. The settings of their variants then apply to connections,
    because a database has only one value of each setting.
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
        """Return the placement of an arm's data in a cell."""
        return self._placements[(cell, arm)]

    def in_cell(self, cell: Cell) -> list[Placement]:
        """Return the placements of a cell's arms without duplicates, in the order of the arms."""
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
        """Return the set-up SQL of a variant in a cell, preceded by its extensions on the same line."""
        names = self._spec.variants[variant].extensions
        made = "".join(f'CREATE EXTENSION IF NOT EXISTS "{name}"; ' for name in names)
        return made + substitute(self._spec.setup_sql(variant), texts_for(self._spec, cell, variant))

    def _made(self, cell: Cell, arm: Arm) -> tuple[str, str, str]:
        """Return everything that determines an arm's data: engine, connection, and set-up."""
        variant = self._spec.variants[arm.variant]
        reached = repr((variant.connect, variant.server, server_settings(self._spec, arm.variant)))
        return (self._spec.engine(arm.variant), reached, self.script(cell, arm.variant))


def database_settings(spec: Spec, variant: str) -> dict[str, str | int | float | bool]:
    """Return the settings of a variant's database."""
    return {} if spec.setup.shared else _not_of_the_server(spec, variant)


def session_settings(spec: Spec, variant: str, workload: str | None = None) -> dict[str, str]:
    """Return the settings of a variant's connections, as text; with those of a workload that it sends."""
    chosen = {name.lower() for name in spec.variants[variant].settings}
    of_workload = {} if workload is None else spec.workloads[workload].settings
    settings = {name: value for name, value in of_workload.items() if name.lower() not in chosen}
    if spec.setup.shared:
        settings |= _not_of_the_server(spec, variant)
    return {name: _text(value) for name, value in settings.items()}


def _not_of_the_server(spec: Spec, variant: str) -> dict[str, str | int | float | bool]:
    own = server_settings(spec, variant)
    return {name: value for name, value in spec.variants[variant].settings.items() if name not in own}


def _text(value: str | int | float | bool) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
