"""What stands out in a generic plan. Pure.

A generic plan has the planner's estimates for unknown parameters. It does not show how long a node took, nor
whether a sort or a hash needed temporary files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from uncork.model.results.database import PlanNote

__all__ = ["LARGE_TABLE_ROWS", "plan_notes", "scanned_rows"]

LARGE_TABLE_ROWS: Final = 10_000
"""Rows of a large table. A full scan of a smaller one takes a millisecond or two."""

_NODE: Final = re.compile(
    r"^ *(?:-> +)?(?P<name>\S.*?) +\(cost=[\d.]+\.\.[\d.]+ rows=(?P<rows>\d+) width=\d+\)"
)
_SCAN: Final = re.compile(r"^(?:Parallel )?Seq Scan on (?P<table>(?:\"[^\"]+\"|\S)+)")
_FILTER: Final = re.compile(r"^ *Filter: (?P<condition>.*)$")
_WORKERS: Final = re.compile(r"^ *Workers Planned: (?P<workers>\d+)")
_LEADER: Final = (1.0, 0.7, 0.4, 0.1, 0.0)
"""The leader's part of a parallel scan by the number of workers, as in PostgreSQL's get_parallel_divisor."""
_SORT: Final = re.compile(r"^(?:Incremental )?Sort$")


def plan_notes(plan: str, rows: Mapping[str, float]) -> tuple[PlanNote, ...]:
    """Return what stands out, from the top of the plan down.

    `rows` has the rows of each table, by its name without the schema.
    """
    return tuple(_notes(plan.splitlines(), rows))


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


def _notes(lines: list[str], rows: Mapping[str, float]) -> Iterator[PlanNote]:
    scanned = ""
    for line in lines:
        node = _NODE.match(line)
        if node is None:
            condition = _FILTER.match(line)
            if condition is not None and scanned:
                yield PlanNote("seq-scan", scanned, rows[scanned], condition["condition"])
                scanned = ""
            continue
        scan = _SCAN.match(node["name"])
        table = "" if scan is None else scan["table"].strip('"')
        scanned = table if rows.get(table, 0.0) >= LARGE_TABLE_ROWS else ""
        if _SORT.match(node["name"]) and int(node["rows"]) >= LARGE_TABLE_ROWS:
            yield PlanNote("sort", "", float(node["rows"]), "")
