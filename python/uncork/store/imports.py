"""Store and read the metrics of an imported result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Final

from uncork.errors import StoreError
from uncork.model.results.figure import Figure
from uncork.store.query import RunReader
from uncork.store.tables import append_rows

_KEPT: Final = ("subject", "name", "value", "unit", "better", "scale", "count", "of", "within")


def write_figures(folder: Path, figures: Sequence[Figure]) -> None:
    """Write the metrics. Raises StoreError if the disk is full or the folder cannot be written."""
    rows = [
        {"position": place, **{name: getattr(figure, name) for name in _KEPT}}
        for place, figure in enumerate(figures)
    ]
    append_rows(folder, "figures", rows)


def read_figures(folder: Path) -> tuple[Figure, ...]:
    """Return the metrics of an imported result, in order.

    Raises StoreError if the run is damaged, or has no metrics.
    """
    with closing(RunReader(folder)) as reader:
        rows = reader.figure_rows()
    known = {item.name for item in fields(Figure)}
    figures = tuple(Figure(**{name: row[name] for name in known & row.keys()}) for row in rows)
    if not figures:
        raise StoreError(f"run {folder.name} has no metrics")
    return figures
