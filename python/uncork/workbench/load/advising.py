"""Watch the database while a load is sent once more, because watching would disturb what is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.workbench.load.targets import LoadTarget
from uncork.workbench.profile.database_part import watched_part
from uncork.workbench.run_record import RunRecord

__all__ = ["watch_again"]

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
) -> None:
    """Send a load that was measured for five seconds more, and store the watch of its database in `record`.

    What could not be watched is written into the manifest. `place` is the server's, without secrets. A load
    that did not complete is not repeated.

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
    try:
        with watched_part(record.folder, conninfo, place, command) as missing:
            target.turn(_NEXT, _WATCHED_NS).carry_out()
    except KeyboardInterrupt:
        missing = [*missing, "findings about the database: interrupted"]
    if missing:
        record.change(options={**record.manifest.options, "not_watched": missing})
