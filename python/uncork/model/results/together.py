"""Loads that started at the same instant, as in the report and the JSON document; times are nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uncork.model.results.load import LoadResult

__all__ = ["TOGETHER_VERSION", "LoadOfTogether", "TogetherResult", "TogetherRunFacts"]

TOGETHER_VERSION = 1
"""Raised whenever a field of the JSON document changes its meaning or is removed."""


@dataclass(frozen=True, slots=True)
class TogetherRunFacts:
    """Which run this is and how it went; `reproduce` is the command that repeats it."""

    id: str
    status: str
    started_at: str
    reproduce: str
    uncork_version: str


@dataclass(frozen=True, slots=True)
class LoadOfTogether:
    """One of the loads, with the report that it would have alone. `name` is ``sql``, ``http-2``, ..."""

    name: str
    load: LoadResult


@dataclass(frozen=True, slots=True)
class TogetherResult:
    """Everything in a report on loads that started together.

    All seconds count from the same instant. `apart_ns` is how long after the first load the last one started.
    `answer` is the first sentence a reader sees; `warnings` are one sentence each.
    """

    run: TogetherRunFacts
    answer: str
    warnings: tuple[str, ...]
    apart_ns: int
    loads: tuple[LoadOfTogether, ...]
    kind: Literal["together"] = "together"
    version: int = TOGETHER_VERSION
