"""Which processes of a service answer requests, and whether each answers one at a time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uncork.model.results.service import Runtime, WorkerFacts

_BUSY: Final = 0.5
"""A process with children answers requests itself if it uses at least this fraction of a processor."""
_FORKING: Final[frozenset[Runtime]] = frozenset({"python", "ruby", "php"})
"""Runtimes whose servers often run one process for each request (gunicorn, unicorn, PHP-FPM)."""


def serving(workers: Sequence[WorkerFacts]) -> list[WorkerFacts]:
    """Return the processes that answer requests: without parents that only start the others, and helpers.

    If some processes have sessions of the database, the others are helpers, such as a resource tracker.
    """
    parents = {worker.parent for worker in workers}
    found = [worker for worker in workers if worker.pid not in parents or worker.cpus >= _BUSY]
    if any(one.sessions for one in found):
        found = [one for one in found if one.sessions]
    return found


def one_at_a_time(workers: Sequence[WorkerFacts]) -> int:
    """Return how many processes answer requests if each answers one at a time, or else 0.

    Such a process has one thread, and at most one session of the database. An event loop that has so far
    opened only one session looks the same, but more requests are in progress than it has processes.
    """
    found = serving(workers)
    single = all(one.threads == 1 and one.runtime in _FORKING and (one.sessions or 0) <= 1 for one in found)
    return len(found) if single else 0
