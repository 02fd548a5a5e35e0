"""A stored run as lists show it: what it was, how it went, its names and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from uncork.model.records import Record

DEFAULT_RUNS: Final = Path(".uncork/runs")
"""Where runs are stored by default."""
BASELINE: Final = "baseline"
"""The name of the run that others are compared with by default."""
RunStatus = Literal["running", "complete", "interrupted", "failed"]
"""How a run went, as its manifest says."""


class RunRecord(Record):
    """What results say first of their run. `elapsed_ns` is the duration of what was measured, or read."""

    id: str
    status: str
    started_at: str
    elapsed_ns: int


class StoredRun(Record):
    """One run. `status` is ``killed`` if its process disappeared without ending it; `id` names its folder.

    `elapsed_ns` is the duration of all its attempts. A run can have any number of `tags`; a name in `names`
    belongs to one run only. `stamp` changes whenever any of this changes.
    """

    folder: Path
    id: str
    name: str
    question: str
    kind: str
    status: str
    started_at: str
    elapsed_ns: int
    rounds: int
    reason: str
    case: str | None
    server: str
    seed: int
    uncork_version: str
    command: str
    commit: str | None
    tags: tuple[str, ...]
    names: tuple[str, ...]
    stamp: str

    def started(self) -> datetime | None:
        """Return when it started; None if the manifest does not say."""
        try:
            at = datetime.fromisoformat(self.started_at)
        except ValueError:
            return None
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


class RunFilter(Record):
    """Which runs to select; empty fields select all. `text` is searched in all text fields."""

    text: str = ""
    kind: str = ""
    status: str = ""
    tag: str = ""
    case: str = ""

    def holds(self, run: StoredRun) -> bool:
        """Say whether the filter selects a run."""
        if self.kind not in ("", run.kind) or self.status not in ("", run.status):
            return False
        if self.case not in ("", run.case) or self.tag not in ("", *run.tags, *run.names):
            return False
        wanted = self.text.casefold().split()
        if not wanted:
            return True
        texts = (run.id, run.name, run.question, run.server, run.case or "", *run.tags, *run.names)
        found = " ".join(texts).casefold()
        return all(word in found for word in wanted)


def select(runs: Iterable[StoredRun], wanted: RunFilter) -> list[StoredRun]:
    """Return the selected runs, in their order."""
    return list(runs) if wanted == RunFilter() else [run for run in runs if wanted.holds(run)]


class RunHost(Record):
    """A host: its name, and a number that is the same for all processes of its machine, and for no other."""

    name: str
    machine: int


class HostRounds(Record):
    """A host with the rounds that were measured on it, and the runs that they come from.

    `number` counts the hosts of a merged run from 1. `processor` describes its processors; empty if unknown.
    `waves` has the wave of each round; rounds of a wave were measured at the same time. It is empty for runs
    that were merged afterwards. `lost` says why the host did not measure until the end; empty if it did.
    """

    number: int
    name: str
    processor: str
    rounds: tuple[int, ...]
    runs: tuple[str, ...]
    waves: tuple[int, ...] = ()
    lost: str = ""


# ---- runs that may be removed: a pure decision, so that it can be shown before ----


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
