"""Watch the database while a load is sent once more, because watching would disturb what is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.workbench.load.sources import StepSources
from uncork.workbench.load.targets import LoadTarget
from uncork.workbench.profile.database_part import watched_part
from uncork.workbench.run_record import RunRecord

_WATCHED_NS: Final = 5_000_000_000
"""Fifty samples of the sessions."""
_NEXT: Final = 1
"""Another piece of the random sequence than the load itself has sent."""


def watch_again(
    record: RunRecord,
    target: LoadTarget,
    measured: LoadMeasurement,
    place: str,
    notify: Callable[[str], None],
    sources: StepSources | None = None,
) -> None:
    """Send a load that was measured for five seconds more, and store the watch of its database in `record`.

    What could not be watched is written into the manifest. `place` is the server's, without secrets. A load
    that did not complete is not repeated. `sources` divide the time of a load by SQL further.

    Raises:
        StoreError: if the watch cannot be written.
    """
    conninfo = target.components.conninfo
    if (
        conninfo is None
        or measured.totals.outcome is not LoadOutcome.COMPLETE
        or not measured.totals.succeeded
    ):
        return
    notify("sending the load for 5 s more, to name what is wrong with the database")
    command = str(record.manifest.options.get("command", ""))
    missing: list[str] = []
    found: dict[str, Any] = {}
    try:
        with (
            watched_part(record.folder, conninfo, place, command) as missing,
            nullcontext(dict[str, float]()) if sources is None else sources.counted(missing) as pool,
        ):
            again = target.turn(_NEXT, _WATCHED_NS).carry_out()
            seen = watched_load(again, time.time_ns() // 1000)
        if seen is not None:
            found = {"watched_load": seen, **({"watched_pool": pool} if pool else {})}
            if sources is not None:
                begun_us = seen["ended_us"] - seen["elapsed_ns"] // 1000
                found |= sources.read(begun_us, seen["ended_us"], missing)
    except KeyboardInterrupt:
        missing = [*missing, "findings about the database: interrupted"]
    if found or missing:
        lacking = {"not_watched": missing} if missing else {}
        record.change(options={**record.manifest.options, **found, **lacking})


def watched_load(again: LoadMeasurement, ended_us: int) -> dict[str, int] | None:
    """Return what the clients saw of the load that was watched; None unless all of it is known.

    Times of operations count from their actual start, and are of successes only.
    """
    totals = again.totals
    kind = "operation" if all(times.kind != "service" for times in again.times) else "service"
    operations = [times for times in again.times if times.kind == kind]
    if totals.outcome is not LoadOutcome.COMPLETE or not operations or totals.http is not None:
        return None
    return {
        "ended_us": ended_us,
        "elapsed_ns": totals.elapsed_ns,
        "operations": totals.succeeded,
        "operations_ns": sum(operation.sum_ns for operation in operations),
        "statements": totals.statements,
        "statements_ns": sum(times.sum_ns for times in again.times if times.kind == "statement"),
        "round_trips": totals.round_trips,
    }
