"""Which stored runs may go: a decision of its own, so that it can be shown before anything is removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from uncork.model.stored_run import StoredRun

__all__ = ["Retention", "prunable"]


@dataclass(frozen=True, slots=True)
class Retention:
    """What is to be kept: the newest `keep` runs of each name, and whatever is younger than `older_than`.

    A part that is None keeps nothing by itself; a run goes only if neither keeps it. `kind`, if not empty,
    lets only runs of that kind go.
    """

    keep: int | None = None
    older_than: timedelta | None = None
    kind: str = ""


def prunable(runs: Sequence[StoredRun], rule: Retention, now: datetime) -> list[StoredRun]:
    """Return the runs that may go, oldest first.

    A run that has a name or a tag stays, and so does one that is running, or of which it is not known when it
    started. Those count among the newest.
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
