"""The rows that the sequential scan of a plan returns, as the planner estimates them. Pure."""

from __future__ import annotations

import re
from typing import Final

LARGE_TABLE_ROWS: Final = 10_000
"""Rows of a large table. A full scan of a smaller one takes a millisecond or two."""

_NODE: Final = re.compile(
    r"^ *(?:-> +)?(?P<name>\S.*?) +\(cost=[\d.]+\.\.[\d.]+ rows=(?P<rows>\d+) width=\d+\)"
)
_SCAN: Final = re.compile(r"^(?:Parallel )?Seq Scan on (?P<table>(?:\"[^\"]+\"|\S)+)")
_WORKERS: Final = re.compile(r"^ *Workers Planned: (?P<workers>\d+)")
_LEADER: Final = (1.0, 0.7, 0.4, 0.1, 0.0)
"""The leader's part of a parallel scan by the number of workers, as in PostgreSQL's get_parallel_divisor."""


def scanned_rows(plan: str, table: str) -> float | None:
    """Return how many rows a plan expects to pass the filter of its sequential scan of a table.

    None if the plan does not scan it. A parallel scan lists the rows of one process, so they are multiplied
    by the number of processes that the planner reckons with.
    """
    workers = 0
    for line in plan.splitlines():
        planned = _WORKERS.match(line)
        if planned is not None:
            workers = int(planned["workers"])
        node = _NODE.match(line)
        scan = None if node is None else _SCAN.match(node["name"])
        if node is None or scan is None or scan["table"].strip('"') != table:
            continue
        parallel = node["name"].startswith("Parallel")
        return float(node["rows"]) * (workers + _LEADER[min(workers, 4)] if parallel and workers else 1.0)
    return None
