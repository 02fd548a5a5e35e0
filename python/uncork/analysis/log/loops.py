"""Which statements clients repeat in loops, from the order of a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from uncork.advise.log_loops import is_loop
from uncork.model.results.log_loop import LogLoop, LoopTemplate

__all__ = ["loops_of"]

_MOST = 100
"""The most loops that a report lists; the table of the run holds all of them."""

Row = Mapping[str, Any]


def loops_of(table: pa.Table, texts: Sequence[str], executions: Sequence[int]) -> tuple[LogLoop, ...]:
    """Return the loops, those with the most time first. Pure.

    `texts` and `executions` are those of all templates, by number.
    """
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in table.to_pylist():
        if not row["in_transaction"] and not _is_loop(row, executions):
            continue
        # Without a parent, templates of one loop have the same number of transactions and of repetitions.
        alike = () if row["parent"] is not None else (row["stretches"], row["longest"])
        groups[row["in_transaction"], row["parent"], alike].append(row)
    found = [_loop(rows, texts) for rows in groups.values()]
    return tuple(sorted(found, key=lambda one: (-_cost(one), one.templates[0].text))[:_MOST])


def _is_loop(row: Row, executions: Sequence[int]) -> bool:
    return row["parent"] is not None and is_loop(
        executions=row["executions"],
        parents=row["parents"],
        parent_executions=executions[row["parent"]],
        stretches=row["stretches"],
        squares=row["squares"],
    )


def _loop(rows: Sequence[Row], texts: Sequence[str]) -> LogLoop:
    ranked = sorted(rows, key=lambda row: (-row["elapsed_us"], -row["executions"], row["template"]))
    first = ranked[0]
    parent = first["parent"]
    return LogLoop(
        in_transaction=first["in_transaction"],
        parent_number=parent,
        parent_text="" if parent is None else texts[parent],
        parents=max(row["parents"] for row in rows),
        stretches=max(row["stretches"] for row in rows),
        ratio=first["executions"] / (first["stretches"] if parent is None else first["parents"]),
        templates=tuple(
            LoopTemplate(
                number=row["template"],
                text=texts[row["template"]],
                executions=row["executions"],
                longest=row["longest"],
                sum_ns=row["sum_us"] * 1000,
                waiting_ns=max(0, row["elapsed_us"] - row["sum_us"]) * 1000,
            )
            for row in ranked
        ),
    )


def _cost(one: LogLoop) -> int:
    return sum(template.sum_ns + template.waiting_ns for template in one.templates)
