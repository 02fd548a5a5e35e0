"""A result of another tool, as metrics of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from uncork.model.records import Record
from uncork.model.results.figure import Figure


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
