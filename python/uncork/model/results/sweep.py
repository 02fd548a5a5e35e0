"""A finished sweep, as in the report and the JSON document; times are nanoseconds.

`uncork.model.sweep` defines the terms.
"""

from __future__ import annotations

from typing import Literal

from uncork.model.bottleneck import Resource
from uncork.model.database.finding import Finding
from uncork.model.records import Record
from uncork.model.stored_run import RunRecord
from uncork.model.sweep import SweepAxis

SWEEP_RESULT_VERSION = 1

FEWEST_ROUNDS = 5
"""Fewer rounds than this cannot exclude any level (`uncork.stats.interval`)."""


class SweepRunFacts(RunRecord):
    """Which run this is, how it went, and the command that repeats the sweep."""

    server: str
    reproduce: str
    uncork_version: str


class LevelFacts(Record):
    """One level: means over its load steps.

    `low` and `high` bound the throughput of a typical step, from rounds; None if there are too few.
    Percentiles are medians over steps. `wrong` is the share of operations that failed or were never sent.
    `server_cpus` is the average number of processors that the server kept busy (for HTTP: the service and its
    database), None if its processes are not visible. `works` means that at most one in a hundred failed.
    """

    level: float
    steps: int
    rounds: int
    throughput: float
    low: float | None
    high: float | None
    mean_ns: float | None
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    max_ns: int | None
    wrong: float
    busiest_thread: float
    client_cpus: float
    server_cpus: float | None
    works: bool
    message: str | None


class KneeFacts(Record):
    """The knee: its level, and the levels between which it lies.

    None if it may lie beyond the levels that were measured.
    """

    level: float
    low: float | None
    high: float | None
    rounds: int


class SaturationFacts(Record):
    """The lowest level from which on more clients only wait: see `uncork.stats.load.knee.Saturation`."""

    level: float
    top: float
    growth: float


class LawFacts(Record):
    """The Universal Scalability Law fitted to clients, with intervals: see `uncork.stats.load.scalability`.

    `peak` is None if throughput never falls; its bounds are None if infinite. `describes` says whether the
    curve passes near all levels, `misfit` how far it is from the worst one, as a fraction.
    """

    alone: float
    contention: float
    contention_low: float
    contention_high: float
    coherency: float
    coherency_low: float
    coherency_high: float
    peak: float | None
    peak_low: float | None
    peak_high: float | None
    misfit: float
    describes: bool


class ObjectiveFacts(Record):
    """An objective: the highest level that met it, with all levels below, and the lowest that missed it.

    None if there is no such level. `open` are levels in rounds that decide neither.
    """

    text: str
    holds: float | None
    fails: float | None
    open: tuple[float, ...]


class CliffFacts(Record):
    """Where the server breaks: the last level that works, the first that does not, and the error message."""

    works: float | None
    breaks: float
    reason: str


class BottleneckFacts(Record):
    """A resource that became the bottleneck at a level: see `uncork.model.bottleneck`."""

    level: float
    resource: Resource
    sentence: str
    remedy: str
    weight: float


class VerifiedObjective(Record):
    """An objective during the verification: the measured quantity, None if nothing succeeded."""

    text: str
    value: float | None
    holds: bool


class VerifiedFacts(Record):
    """A load after the sweep, with arrivals that do not wait, at `share` of the throughput at `knee`.

    `rate` is in arrivals a second. Latency counts from the intended start. `wrong` is the share of arrivals
    that failed or were never sent, and `works` means that it is at most one in a hundred. `refused` counts
    additional connections that the server refused.
    """

    knee: float
    share: float
    rate: float
    elapsed_ns: int
    throughput: float
    p50_ns: float | None
    p99_ns: float | None
    max_ns: int | None
    wrong: float
    works: bool
    refused: int
    message: str | None
    objectives: tuple[VerifiedObjective, ...]

    @property
    def sustained(self) -> bool:
        """Return whether the load worked, and held all objectives."""
        return self.works and all(objective.holds for objective in self.objectives)


class SweepResult(Record):
    """Everything in a report on a sweep.

    `answer` is the first sentence a reader sees; `warnings` are one sentence each. `levels` are in ascending
    order. `most` is the level of highest throughput. `knee` is None if nothing worked, or no round was
    finished. `saturation` is None unless it is proven. `bottlenecks` begin with the gravest. `operation` is
    what was sent. `missing` lists the components that could not be observed. `findings` are about the
    database, past the knee. `verified` is the load with `--verify`.
    """

    run: SweepRunFacts
    answer: str
    warnings: tuple[str, ...]
    axis: SweepAxis
    start: float
    end: float
    step_ns: int
    budget_ns: int
    confidence: float
    seed: int
    scripts: tuple[str, ...]
    levels: tuple[LevelFacts, ...]
    knee: KneeFacts | None
    most: float | None
    law: LawFacts | None
    objectives: tuple[ObjectiveFacts, ...]
    cliff: CliffFacts | None
    bottlenecks: tuple[BottleneckFacts, ...]
    processors: int
    environment: dict[str, dict[str, str]]
    operation: Literal["transaction", "request"] = "transaction"
    missing: tuple[str, ...] = ()
    saturation: SaturationFacts | None = None
    findings: tuple[Finding, ...] = ()
    verified: VerifiedFacts | None = None
    kind: Literal["sweep"] = "sweep"
    version: int = SWEEP_RESULT_VERSION
