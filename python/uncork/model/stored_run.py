"""A stored run as lists show it: what it was, how it went, what people call it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

__all__ = ["BASELINE", "DEFAULT_RUNS", "RunFilter", "StoredRun", "select"]

DEFAULT_RUNS: Final = Path(".uncork/runs")
"""Where runs are stored, unless somebody says otherwise."""
BASELINE: Final = "baseline"
"""The name of the run that others are compared with where nothing else is said."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run. `status` is ``killed`` if its process is gone without a word; `id` is the name of its folder.

    `elapsed_ns` is the time its sittings took. `tags` sort runs, as many as wanted; a name in `names` belongs
    to one run only. `stamp` changes whenever any of this does.
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
        """Return when it started; None if the manifest does not tell it."""
        try:
            at = datetime.fromisoformat(self.started_at)
        except ValueError:
            return None
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted; what is empty does not choose. `text` is looked for in all that is text."""

    text: str = ""
    kind: str = ""
    status: str = ""
    tag: str = ""
    case: str = ""

    def holds(self, run: StoredRun) -> bool:
        """Say whether a run is wanted."""
        if self.kind not in ("", run.kind) or self.status not in ("", run.status):
            return False
        if self.case not in ("", run.case) or self.tag not in ("", *run.tags, *run.names):
            return False
        wanted = self.text.casefold().split()
        if not wanted:
            return True
        found = " ".join(
            (run.id, run.name, run.question, run.server, run.case or "", *run.tags, *run.names)
        ).casefold()
        return all(word in found for word in wanted)


def select(runs: Iterable[StoredRun], wanted: RunFilter) -> list[StoredRun]:
    """Return the runs that a filter wants, in their order."""
    return list(runs) if wanted == RunFilter() else [run for run in runs if wanted.holds(run)]
