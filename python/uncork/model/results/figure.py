"""The metrics of a run, so that runs can be compared, and followed over time.

A *metric* is one number of a run, such as its throughput. Its `subject` is what it describes (a variant on a
workload, a statement), empty for the run as a whole. Subject and name together identify it in every run of
its kind. *Comparable runs* were asked the same on a comparable machine and server; only their time differs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from uncork.model.records import Record

FigureUnit = Literal["ns", "B", "/s", "share", "ratio", ""]
"""Nanoseconds, bytes, a second, a share from 0 to 1, a ratio to a baseline, or a plain number."""
Direction = Literal["lower", "higher", ""]
"""Which direction is better; empty if neither is."""
Scale = Literal["ratio", "share", "exact", "effect"]
"""How two values are compared: by their ratio; by the odds of a share; as equal or not, if there is no noise;
or as effects that were measured side by side within each run."""


class Figure(Record):
    """One metric of a run, in the base unit.

    A share has `count` and `of`; the mean time of a statement has its number of calls as `count`. `within` is
    the standard error of the value's logarithm from variation within the run, None if unknown; `resolution`
    is the relative half-width of the steps to which the value is rounded. An effect has `rounds`, and the
    standard deviation of its log ratios as `std_dev`.
    """

    subject: str
    name: str
    value: float
    unit: FigureUnit
    better: Direction
    scale: Scale = "ratio"
    count: int = 0
    of: int = 0
    within: float | None = None
    resolution: float = 0.0
    rounds: int = 0
    std_dev: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the metric within a run."""
        return (self.subject, self.name)

    @property
    def log_value(self) -> float:
        """The value's logarithm. Raises ValueError unless the value is positive."""
        return math.log(self.value)


class PlanShape(Record):
    """The shape of a statement's plan: nodes, relations and conditions, without numbers."""

    subject: str
    statement: str
    shape: str


class RunFigures(Record):
    """A run as its metrics.

    `asked` is what the run was asked to do, by name: equal in comparable runs. `environment` holds facts of
    machine, server and core by section. `commit` is that of the folder where uncork was started, None if
    there is none. `command` repeats the run. `warnings` are the run's own warnings about its metrics.
    `more` are metrics of further statements, for comparisons with a run where they are among the costliest.
    `note` says in a few words what the run found that is no number, such as the changes that a cure proved.
    """

    id: str
    kind: str
    status: str
    started_at: str
    question: str
    server: str
    commit: str | None
    command: str
    asked: Mapping[str, str]
    environment: Mapping[str, Mapping[str, str]]
    figures: tuple[Figure, ...]
    plans: tuple[PlanShape, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    note: str = ""
    more: tuple[Figure, ...] = ()

    def figure(self, key: tuple[str, str]) -> Figure | None:
        """Return a metric by its key; None if the run has none."""
        return next((figure for figure in self.figures if figure.key == key), None)

    def counterpart(self, figure: Figure) -> Figure | None:
        """Return this run's counterpart of another run's metric; None if there is none.

        The share of a kind of failure that this run never saw is 0, if the run reports shares of failures.
        """
        found = self.figure(figure.key)
        if found is not None or figure.scale != "share":
            return found
        word = figure.name.split()[0]
        # A load counts errors by their kinds among all operations; statuses are known only where one is.
        for start in (word, "failed") if (word, self.kind) == ("error", "load") else (word,):
            for one in self.figures:
                if one.scale == "share" and one.name.split()[0] == start:
                    return replace(figure, value=0.0, count=0, of=one.of)
        return None


class ImportedRun(Record):
    """The contents of another tool's file.

    `started_at` is when it was measured, in ISO form with its zone; None if the file does not say. `asked`
    and `environment` hold what it says about the request, and about machine and server; `commit` and
    `branch` what was measured. These are empty if the file does not say. `series` is the default name of the
    series. `digest` identifies the run if a file holds several.
    """

    tool: str
    question: str
    figures: tuple[Figure, ...]
    asked: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    started_at: str | None = None
    commit: str = ""
    branch: str = ""
    series: str = ""
    digest: str = ""
