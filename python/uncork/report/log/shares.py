"""Shares of time for the findings of a report on a log.

The whole is the time of all statements plus the time the server waited for clients: between the executions of
a sequence or a loop, and between the statements of a transaction.
"""

from __future__ import annotations

from typing import Final

from uncork.model.results.log import LogResult, Repetition, TransactionFacts
from uncork.model.results.log_loop import LogLoop

__all__ = [
    "LEAST_SHARE",
    "between_statements_ns",
    "files_share",
    "has_durations",
    "locks_share",
    "loop_share",
    "repetition_share",
    "transactions_share",
]

LEAST_SHARE: Final = 0.05
"""Smallest share of time of a finding. Anything smaller appears only in the tables."""


def repetition_share(result: LogResult, one: Repetition) -> float:
    """Return the share of time of executions sent one by one, including the waits between them."""
    return _share(one.sum_ns + one.waiting_ns, _accounted_ns(result))


def loop_share(result: LogResult, one: LogLoop) -> float:
    """Return the share of time of the templates that a loop repeats, including the waits before them."""
    return _share(sum(each.sum_ns + each.waiting_ns for each in one.templates), _accounted_ns(result))


def transactions_share(result: LogResult, one: TransactionFacts) -> float:
    """Return the share of time for which transactions waited for the client.

    Waits within sequences and loops do not count.
    """
    return _share(between_statements_ns(one), _accounted_ns(result))


def between_statements_ns(one: TransactionFacts) -> int:
    """Return how long transactions waited for the client, except within sequences and loops of executions."""
    return max(0, one.elapsed_ns - one.working_ns - one.repeated_wait_ns)


def locks_share(result: LogResult) -> float:
    """Return the share of statement time spent waiting for locks."""
    return _share(sum(tally.sum for tally in result.server.lock_waits), result.executions.sum_ns)


def files_share(result: LogResult) -> float:
    """Return the share of statement time of the templates that wrote temporary files."""
    names = {tally.name for tally in result.server.temporary_files}
    return _share(sum(one.sum_ns for one in result.templates if one.text in names), result.executions.sum_ns)


def has_durations(result: LogResult) -> bool:
    """Return whether the log has durations; without them there are no shares."""
    return result.executions.sum_ns > 0


def _accounted_ns(result: LogResult) -> int:
    repeated = sum(one.repetition.waiting_ns for one in result.templates if one.repetition is not None)
    repeated += sum(each.waiting_ns for one in result.loops for each in one.templates)
    return result.executions.sum_ns + repeated + sum(map(between_statements_ns, result.transactions))


def _share(part_ns: int, whole_ns: int) -> float:
    return min(1.0, part_ns / whole_ns) if whole_ns else 0.0
