"""A cache of what stored runs found, in one sentence each."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from uncork.model.stored_run import StoredRun
from uncork.report.headline import split_answer
from uncork.store.layout import read_answer

_MOST: Final = 2_000


class HeadlineCache:
    """The headlines of runs. Use it in one event loop only."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def of(self, runs: Sequence[StoredRun]) -> dict[str, str]:
        """Return what each run found, by its id; empty for runs without a report."""
        missing = [run for run in runs if (run.id, run.stamp) not in self._kept]
        if missing:
            self._kept |= await asyncio.to_thread(_read, missing)
        found = {run.id: self._kept[run.id, run.stamp] for run in runs}
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return found


def _read(runs: Sequence[StoredRun]) -> dict[tuple[str, str], str]:
    return {(run.id, run.stamp): split_answer(read_answer(run.folder))[0] for run in runs}
