"""Which stored runs may be removed: a pure decision, so that it can be shown before anything is removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from uncork.model.records import Record
from uncork.model.stored_run import StoredRun


class Retention(Record):
    """What to keep: the newest `keep` runs of each name, and all runs younger than `older_than`.

    A part that is None keeps nothing; a run is removed only if neither part keeps it. `kind`, if not empty,
    restricts removal to runs of that kind.
    """

    keep: int | None = None
    older_than: timedelta | None = None
    kind: str = ""


def prunable(runs: Sequence[StoredRun], rule: Retention, now: datetime) -> list[StoredRun]:
    """Return the runs that may be removed, oldest first.

    Runs that have a name or a tag stay, and so do runs that are running or whose start is unknown. They count
    among the newest.
    """
    if rule.keep is None and rule.older_than is None:
        return []
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for run in sorted(runs, key=lambda run: (run.started_at, run.id), reverse=True):
        seen[run.kind, run.name] += 1
        if seen[run.kind, run.name] <= (rule.keep or 0):
            continue
        started = run.started()
        if started is None or run.status == "running" or run.tags or run.names:
            continue
        if rule.older_than is not None and now - started <= rule.older_than:
            continue
        if rule.kind in ("", run.kind):
            found.append(run)
    return found[::-1]
