"""What the server and the machine did during a trial, from two readings of their counters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.model.http_trial import TrialRequest
from uncork.model.measurement import Counters, Disturbance, Measurement
from uncork.model.request import LoadRequest
from uncork.model.server import Snapshot
from uncork.model.system import Strain

STEAL_SHARE = 0.01
"""A trial is marked as affected by steal if the hypervisor took more than this fraction of it."""

MEMORY_SHARE = 0.01
"""A trial is marked as affected by memory pressure if tasks waited for memory for more than this fraction of
it."""

OTHERS_SHARE = 0.05
OTHERS_NS = 100_000_000
"""A trial is marked as affected by other programs if they took more than `OTHERS_SHARE` of all processors and
more than this time: the kernel counts it in steps of 10 ms per processor."""

_UPDATE: Final = re.compile(r"\b(update|merge)\b", re.IGNORECASE)


def reads_updates(request: TrialRequest) -> bool:
    """Return whether a load has statements that may update rows, so that their counters are worth reading.

    A service keeps its connections, whose counters would arrive after the trial.
    """
    return isinstance(request, LoadRequest) and any(
        _UPDATE.search(statement.sql) for statement in request.statements
    )


def counted(before: Snapshot, after: Snapshot, operations: int) -> Counters:
    """Return the differences of the server's counters between two readings."""

    def between(start: int | None, end: int | None) -> int | None:
        # The server evicts statements when it has seen too many, together with their costs.
        return None if start is None or end is None or end < start else end - start

    blocks = between(before.temp_blocks, after.temp_blocks)
    return Counters(
        operations=operations,
        shared_hit=between(before.shared_hit, after.shared_hit),
        shared_read=between(before.shared_read, after.shared_read),
        shared_dirtied=between(before.shared_dirtied, after.shared_dirtied),
        temp_bytes=None if blocks is None else blocks * 8192,
        wal_bytes=between(before.wal_bytes, after.wal_bytes),
        wal_records=between(before.wal_records, after.wal_records),
        queries=between(before.queries, after.queries),
        updated=between(before.updated, after.updated),
        hot_updated=between(before.hot_updated, after.hot_updated),
    )


def disturbances(before: Snapshot, after: Snapshot, measurement: Measurement) -> frozenset[Disturbance]:
    """Return what else happened on the machine during the measurement."""
    found = set()
    if before.checkpoint != after.checkpoint:
        found.add(Disturbance.CHECKPOINT)
    if before.autovacuum_workers or after.autovacuum_workers:
        found.add(Disturbance.AUTOVACUUM)
    if measurement.steal_ns > STEAL_SHARE * measurement.elapsed_ns:
        found.add(Disturbance.STEAL)
    if measurement.throttled_ns:
        found.add(Disturbance.THROTTLING)
    if measurement.strain is not None:
        found |= set(_strained(measurement.strain))
    return frozenset(found)


def _strained(strain: Strain) -> Iterator[Disturbance]:
    if (strain.memory or 0.0) > MEMORY_SHARE:
        yield Disturbance.MEMORY
    others = strain.others or 0.0
    if others > OTHERS_SHARE and others * strain.processors_ns > OTHERS_NS:
        yield Disturbance.OTHERS
