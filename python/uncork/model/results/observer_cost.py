"""The costs of observing, as in a report: ratios to a server that nothing observes."""

from __future__ import annotations

from typing import Final, Literal

from uncork.model.records import Record

COST_VERSION: Final = 1

CostVerdict = Literal["costs less", "costs more", "costs something", "not enough evidence"]
"""The cost against the share that matters: certainly less, certainly more, certainly some, or unknown."""


class Ratio(Record):
    """An effect as a ratio to no observer, with its interval; an infinite bound is None."""

    ratio: float
    low: float | None
    high: float | None
    rounds: int


class IdleCost(Record):
    """What an observer uses while nothing runs, in nanoseconds of processor time a second, with intervals.

    The server's is the difference to no observer, in windows close in time; None if its processes are not
    visible here. `windows` counts them.
    """

    windows: int
    observer_ns: float
    observer_spread_ns: float | None
    server_ns: float | None
    server_spread_ns: float | None


class Slice(Record):
    """A short part of a steady load during which each observer was on (listed in `on`) or off throughout.

    `work_ns` is the processor time of the server and of this process: load, observer and all. `others_ns` is
    what other programs took of the machine, `stolen_ns` what the host took.
    """

    quadruple: int
    on: tuple[str, ...]
    length_ns: int
    operations: float
    work_ns: int
    others_ns: int
    stolen_ns: int


class Switched(Record):
    """The cost of an observer that was switched on and off within one load; ratios of on to off.

    `plain` compares all slices with it on to all with it off. `adjusted` removes the noise of other programs
    and of other observers; the verdict rests on its wider interval, `sure`. `processor` is processor time an
    operation, of load, server and observer together, with its wider interval `processor_sure`. `bound` is
    what throughput would lose by that if the load had all processors: the observer uses as much a second
    there, since it reads at fixed times. `work` is what load, server and observer used, `others` and `stolen`
    what others and the host took, in processors: 0.5 is half of one. `slice_ns` is the length of a slice.
    `apart` means that plain and adjusted differ by more than chance. `quadruples` may be too few for any
    ratio.
    """

    quadruples: int
    slice_ns: int
    plain: Ratio | None
    adjusted: Ratio | None
    sure: Ratio | None
    processor: Ratio | None
    processor_sure: Ratio | None
    others: float
    stolen: float
    work: float
    bound: Ratio | None
    apart: bool


class ObserverCost(Record):
    """One observer under one workload in one cell. A metric that was not measured is None.

    `throughput`, `p50`, `p99`, `server_cpu` and `service_cpu` (processor time an operation, of the server and
    of the service that an agent runs in) are ratios; `observer_share` is the observer's own processor time
    under load, as a fraction of one processor. The verdict rests on `sure`, the interval of throughput at a
    lower error rate, which all observers share. `processor` is the ratio of processor time an operation, with
    the observer's own added to the server's (or the service's), and `processor_verdict` the verdict on it. If
    there is `switched`, both verdicts rest on it alone.
    """

    name: str
    title: str
    workload: str
    cell: str
    throughput: Ratio | None
    sure: Ratio | None
    verdict: CostVerdict
    p50: Ratio | None
    p99: Ratio | None
    server_cpu: Ratio | None
    observer_share: float | None
    service_cpu: Ratio | None = None
    processor: Ratio | None = None
    processor_verdict: CostVerdict = "not enough evidence"
    switched: Switched | None = None


class Pushes(Record):
    """What an agent in a service pushed to its receiver during the measurement."""

    count: int
    size_bytes: int


class CatalogueCost(Record):
    """What one reading of the catalogue costs, on average over `readings`.

    A watch of `watch_ns` makes one: snapshots of all counters, details of the `tables` that statements use,
    and plans. `observer_ns` and `server_ns` are the processor time of uncork and of the server's process that
    answers it; the latter is None if that is on another machine. `lock_ns` is the longest time for which a
    lock on a table was held, as seen by `lock_looks`; 0 if none saw a lock.
    """

    readings: int
    tables: int
    elapsed_ns: float
    observer_ns: float
    server_ns: float | None
    lock_ns: int
    lock_looks: int
    watch_ns: int

    @property
    def share(self) -> float:
        """The processor time of uncork and of the server, as a fraction of one processor over a watch."""
        return (self.observer_ns + (self.server_ns or 0.0)) / self.watch_ns


class ObserverCosts(Record):
    """The result of `uncork observe-cost`. `practical` is the share that matters (0.01 is 1 %).

    `pushes` describes an agent in a service: costs and idle metrics are then the service's, not the server's.
    """

    run: str
    answer: str
    practical: float
    confidence: float
    noise: str
    costs: tuple[ObserverCost, ...]
    idle: dict[str, IdleCost]
    skipped: dict[str, str]
    pushes: Pushes | None = None
    catalogue: CatalogueCost | None = None
    version: int = COST_VERSION


def cost_verdict(sure: Ratio | None, practical: float, *, enough: bool) -> CostVerdict:
    """Return the verdict on a cost from a ratio's interval: less than `practical` only if that is shown.

    An observer that seems to cost nothing is no evidence: the whole interval must lie within the share.
    """
    if sure is None or not enough:
        return "not enough evidence"
    if sure.low is not None and sure.low > 1 - practical:
        return "costs less"
    if sure.high is not None and sure.high < 1 - practical:
        return "costs more"
    if sure.high is not None and sure.high < 1:
        return "costs something"
    return "not enough evidence"


def processor_verdict(total: Ratio | None, practical: float, *, enough: bool) -> CostVerdict:
    """Return the verdict on processor time an operation, which costs if it grows."""
    if total is None or not enough:
        return "not enough evidence"
    if total.high is not None and total.high < 1 + practical:
        return "costs less"
    if total.low is not None and total.low > 1 + practical:
        return "costs more"
    if total.low is not None and total.low > 1:
        return "costs something"
    return "not enough evidence"
