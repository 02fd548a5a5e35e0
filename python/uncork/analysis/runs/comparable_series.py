"""The series of comparable runs in a store, over which a metric has a history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncork.analysis.runs.figures import FIGURED, asked_of, remembered_figures
from uncork.errors import UncorkError
from uncork.store.layout import Manifest

_COMPLETE: Final = "complete"


@dataclass(frozen=True, slots=True)
class ComparableSeries:
    """A series of comparable runs: the newest of them, how many there are, and when the first began."""

    newest: str
    kind: str
    question: str
    runs: int
    first_at: str
    last_at: str


@dataclass(frozen=True, slots=True)
class FigureEntry:
    """A metric of a run with its value, in the base unit `unit`."""

    name: str
    subject: str
    value: float
    unit: str


def comparable_series(root: Path, manifests: Iterable[Manifest]) -> tuple[ComparableSeries, ...]:
    """Return the series of complete runs that have metrics, the one with the newest run first.

    `manifests` are those of the runs, oldest first. Unreadable runs are skipped.
    """
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[Manifest]] = {}
    for manifest in manifests:
        if manifest.kind not in FIGURED or manifest.status != _COMPLETE:
            continue
        try:
            asked = asked_of(root / manifest.id, manifest)
        except UncorkError:
            continue
        found.setdefault((manifest.kind, tuple(sorted(asked.items()))), []).append(manifest)
    series = [
        ComparableSeries(
            newest=runs[-1].id,
            kind=runs[-1].kind,
            question=runs[-1].question,
            runs=len(runs),
            first_at=runs[0].started_at,
            last_at=runs[-1].started_at,
        )
        for runs in found.values()
    ]
    return tuple(sorted(series, key=lambda one: one.last_at, reverse=True))


def figure_entries(folder: Path) -> tuple[FigureEntry, ...]:
    """Return the metrics of a stored run, those of the run as a whole first.

    Raises:
        UncorkError: if runs of its kind have none, or it is damaged.
    """
    ordered = sorted(
        remembered_figures(folder).figures,
        key=lambda figure: (figure.scale != "effect", bool(figure.subject)),
    )
    return tuple(FigureEntry(figure.name, figure.subject, figure.value, figure.unit) for figure in ordered)
