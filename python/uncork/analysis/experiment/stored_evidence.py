"""Read the evidence of variants back from a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncork.analysis.stacks.result import of_measure
from uncork.model.tables.stacks import STACK_TABLES
from uncork.store.profile_tables import read_evidence

EVIDENCE_FOLDER: Final = "evidence"
"""The folder of evidence within a run."""


def stored_evidence(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the facts and tables of each variant's evidence, the later ones of a place last.

    Raises:
        StoreError: if files are damaged.
    """
    for path in sorted((folder / EVIDENCE_FOLDER).glob("*/facts.json")):
        yield read_evidence(path.parent, STACK_TABLES)


def processor_stacks(folder: Path) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """Yield the sampled stacks of processor time of each workload and variant that has some.

    Raises:
        StoreError: if files are damaged.
    """
    for facts, tables in stored_evidence(folder):
        found = of_measure(tables["stacks"], "cpu")
        if facts["method"]["tool"] == "perf" and len(found):
            yield (facts["place"]["workload"], facts["place"]["variant"]), found
