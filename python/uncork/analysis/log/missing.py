"""The evidence that a log lacks, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator

from uncork.model.database.missing import Missing
from uncork.model.results.log import LogResult
from uncork.model.results.statuses import plan_settings

__all__ = ["missing_of_log"]


def missing_of_log(result: LogResult) -> tuple[Missing, ...]:
    """Return what could not be judged. Pure."""
    return tuple(_missing(result)) if result.executions.count else ()


def _missing(result: LogResult) -> Iterator[Missing]:
    if not any(example.kind == "plan" for one in result.templates for example in one.examples):
        yield Missing(
            "plans in the log",
            "missing indexes, sorts on disk, and other faults of plans",
            plan_settings(result.templates[0].mean_ns),
        )
    if result.withheld:
        names = ", ".join(one for one in result.withheld if one)
        yield Missing(
            f"files of {names or 'one server'} that do not overlap in time",
            "transactions, repeated statements, loops, lock waits and open sessions",
            "name the server of each file: --servers by-folder, or --server NAME=FILES",
        )
    yield Missing(
        "a connection to the server",
        "existing indexes, statistics, settings and waits",
        f"uncork advise {result.run.id} DSN",
    )
