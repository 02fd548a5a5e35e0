"""Select stored runs by time and branch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from uncork.engines.checkout import commits_of_branch
from uncork.store.layout import Manifest

_LEAST_ABBREVIATED: Final = 7


@dataclass(frozen=True)
class RunSelection:
    """Which runs a history is about: those since a time, and those of a branch; by default all.

    A run belongs to the branch that was recorded with it. A run without a recorded branch belongs to each
    branch that contains its commit, by git in the current folder.
    """

    since: datetime | None = None
    branch: str = ""

    def includes(self, manifest: Manifest) -> bool:
        """Say whether a run is selected."""
        return self.includes_time(manifest) and (not self.branch or self._on_branch(manifest))

    def includes_time(self, manifest: Manifest) -> bool:
        """Say whether a run began in the selected time."""
        return self.since is None or datetime.fromisoformat(manifest.started_at) >= self.since

    def without_branch(self, manifests: Iterable[Manifest]) -> int:
        """Count the runs in the selected time of which no branch is known at all."""
        if not self.branch:
            return 0
        return sum(
            manifest.branch is None and self.includes_time(manifest) and not self._on_branch(manifest)
            for manifest in manifests
        )

    def _on_branch(self, manifest: Manifest) -> bool:
        if manifest.branch is not None:
            return manifest.branch == self.branch
        commit = (manifest.commit or "").removesuffix("-dirty").lower()
        if len(commit) < _LEAST_ABBREVIATED:
            return False
        place = bisect_left(self._commits, commit)
        return place < len(self._commits) and self._commits[place].startswith(commit)

    @cached_property
    def _commits(self) -> Sequence[str]:
        """The commits of the branch in order; git is asked only if a run has no recorded branch."""
        return sorted(commits_of_branch(self.branch))


def branches_of(manifests: Iterable[Manifest]) -> list[str]:
    """Return the recorded branches, the one with the newest run first; `manifests` are oldest first."""
    return list(dict.fromkeys(manifest.branch for manifest in reversed(list(manifests)) if manifest.branch))
