"""The tables of a run for queries: the stored ones, and those computed from its result."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from uncork.analysis.experiment.comparisons import COMPARISONS, comparisons_table
from uncork.store.query import RunReader


def run_tables(folder: Path) -> RunReader:
    """Return a reader of a run's tables; an experiment also has `comparisons`, its verdicts.

    Raises StoreError if the run is damaged.
    """
    reader = RunReader(folder)
    if reader.manifest.kind == "experiment":
        reader.add_computed(COMPARISONS, comparisons_table(()), lambda: _comparisons(folder))
    return reader


def _comparisons(folder: Path) -> pa.Table:
    from uncork.workbench.documents.experiments import read_experiment  # noqa: PLC0415 -- most queries name other tables

    return comparisons_table(read_experiment(folder).comparisons)
