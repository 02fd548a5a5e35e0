"""Merge stored runs into one: the parts of a load, or the runs of an experiment on several hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from uncork.errors import UsageError
from uncork.store.layout import find_run, read_manifest
from uncork.workbench.experiment.merging import merge_experiments
from uncork.workbench.load.merging import merge_runs


def merge_stored(root: Path, runs: Sequence[str]) -> Path:
    """Merge runs into a new run; return its folder.

    Raises:
        UsageError: if the runs do not belong together, or one is still running.
        SetupError, StoreError: if there is no such run, a run is damaged, or the result cannot be written.
    """
    folders = [find_run(root, run) for run in runs]
    kinds = {read_manifest(folder).kind for folder in folders}
    if kinds == {"experiment"}:
        return merge_experiments(root, folders)
    if "experiment" in kinds:
        raise UsageError("an experiment can only be merged with runs of the same experiment")
    return merge_runs(root, runs)
