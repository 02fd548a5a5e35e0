"""The verdicts of an experiment as a table, for queries beside the stored tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from uncork.model.results.experiment import Comparison
from uncork.model.trial import Cell

COMPARISONS: Final = "comparisons"
"""The name of the table."""
_NUMBERS: Final = (
    *("std_dev", "e_value", "value", "baseline_value", "published_ratio", "published_value"),
    *("difference", "difference_low", "difference_high"),
)
_COMPARISON: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("cell", "workload", "variant", "verdict", "reason")),
        *((name, pa.float64()) for name in ("ratio", "low", "high")),
        ("rounds", pa.int64()),
        *((name, pa.float64()) for name in _NUMBERS),
        ("warnings", pa.list_(pa.string())),
        ("direction", pa.string()),
    ]
)


def comparisons_table(comparisons: Sequence[Comparison]) -> pa.Table:
    """Return comparisons as a table, one row each; cells are named as in the stored tables."""
    rows = [
        {name: getattr(comparison, name) for name in _COMPARISON.names}
        | {
            "cell": Cell(comparison.cell).name,
            "verdict": comparison.verdict.value,
            "warnings": list(comparison.warnings),
        }
        for comparison in comparisons
    ]
    return pa.Table.from_pylist(rows, schema=_COMPARISON)
