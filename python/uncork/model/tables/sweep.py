"""The stored table of a sweep; `uncork.model.sweep` defines the terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from uncork.model.tables.table import StoredRow, Table, column, columns_of

if TYPE_CHECKING:
    from uncork.model.sweep import Quantity

BROKEN: Final = 0.01
"""A level is broken if more than this fraction of its operations fail or are never sent."""


class LoadStep(StoredRow):
    """One load step: the load at one level; `round` is 0 while exploring.

    Times are nanoseconds, of successes; None if there are none. Counts are those of
    `uncork.model.load.LoadTotals`: ``started = succeeded + failed``; `unsent` includes arrivals that were
    skipped. `refused` counts connections that could not be opened. `message` says why the load ended, if it
    ended early, or is the first error's.
    """

    number: int = column("load step, from 1, in the order of the sweep")
    round: int = column("round, from 1; 0 while levels were explored")
    level: float = column("clients, or arrivals a second")
    elapsed_ns: int = column("wall-clock time of the measured part", "ns")
    started: int = column("operations started = succeeded + failed")
    succeeded: int = column("operations that succeeded")
    failed: int = column("operations that failed")
    unsent: int = column("arrivals that were skipped or never sent", default=0)
    refused: int = column("connections that could not be opened", default=0)
    complete: bool = column("false if the load ended early", default=True)
    message: str | None = column("why it ended early, or the first error", default=None)
    errors: Mapping[str, int] = column(
        "errors and refused connections by SQLSTATE, as JSON", default_factory=dict
    )
    mean_ns: float | None = column(
        "mean latency of successes, from the intended start, like all below", "ns", default=None
    )
    p50_ns: int | None = column("median latency", "ns", default=None)
    p90_ns: int | None = column("0.9 quantile", "ns", default=None)
    p95_ns: int | None = column("0.95 quantile", "ns", default=None)
    p99_ns: int | None = column("0.99 quantile", "ns", default=None)
    p999_ns: int | None = column("0.999 quantile", "ns", default=None)
    max_ns: int | None = column("greatest latency", "ns", default=None)
    client_ns: int = column("processor time of the generator", "ns", default=0)
    busiest_thread: float = column(
        "processor time of the generator's busiest thread, as a fraction of the time", default=0.0
    )
    server_user_ns: int | None = column(
        "processor time of the server's processes in user mode", "ns", default=None
    )
    server_system_ns: int | None = column(
        "processor time of the server's processes in the kernel", "ns", default=None
    )
    steal_ns: int = column("processor time that the hypervisor took away", "ns", default=0)

    @property
    def throughput(self) -> float:
        """Return successes a second."""
        return self.succeeded / (self.elapsed_ns / 1e9) if self.elapsed_ns else 0.0

    @property
    def wrong(self) -> int:
        """Count operations that failed or were never sent, and connections refused."""
        return self.failed + self.unsent + self.refused

    @property
    def asked(self) -> int:
        """Count all operations that should have been sent."""
        return self.started + self.unsent + self.refused

    @property
    def works(self) -> bool:
        """Say whether enough succeeded for its metrics to describe the level rather than its failures."""
        return self.complete and bool(self.succeeded) and self.wrong <= BROKEN * self.asked

    def measured(self, quantity: Quantity) -> float | None:
        """Return a quantity of an objective: nanoseconds, or a fraction; None if nothing succeeded."""
        if quantity == "errors":
            return self.wrong / self.asked if self.asked else None
        name = {"mean": "mean_ns", "max": "max_ns", "p99.9": "p999_ns"}.get(quantity, f"{quantity}_ns")
        value: float | None = getattr(self, name)
        return value


SWEEP_VISITS = Table(
    "sweep_visits", "One load step: a load at one level of a sweep.", ("number",), columns_of(LoadStep)
)
