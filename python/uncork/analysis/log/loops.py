"""Which statements clients repeat in loops, from the order of a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from uncork.advise.log_loops import is_loop, is_pipeline
from uncork.model.results.log_activity import NameCount
from uncork.model.results.log_loop import LogLoop, LoopTemplate

_MOST = 100
"""The most loops that a report lists; the table of the run holds all of them."""
_AMOUNTS: Final = (
    "stretches",
    "executions",
    "parents",
    "squares",
    "elapsed_us",
    "sum_us",
    "groups",
    "at_once",
)

Row = Mapping[str, Any]


def loops_of(
    table: pa.Table, texts: Sequence[str], executions: Sequence[int], *, by_server: bool = False
) -> tuple[LogLoop, ...]:
    """Return the loops of all servers together, those with the most time first. Pure.

    `texts` and `executions` are those of all templates, by number. `by_server` counts executions by server.
    """
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in _added_up(table.to_pylist(), by_server=by_server):
        if not row["in_transaction"] and not _is_loop(row, executions):
            continue
        # Without a parent, templates of one loop have the same number of transactions and of repetitions.
        alike = () if row["parent"] is not None else (row["stretches"], row["longest"])
        groups[row["in_transaction"], row["parent"], alike].append(row)
    found = [_loop(rows, texts) for rows in groups.values()]
    return tuple(sorted(found, key=lambda one: (-_cost(one), one.templates[0].text))[:_MOST])


def _added_up(rows: Iterable[Row], *, by_server: bool) -> Iterator[Row]:
    """Yield the rows; rows that differ only in the server are added up to one row."""
    servers: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        servers[row["template"], row["parent"], row["in_transaction"]].append(row)
    for (template, parent, in_transaction), same in servers.items():
        known = same if by_server else []
        counts = (NameCount(row["server"], row["executions"]) for row in known)
        yield {
            "template": template,
            "parent": parent,
            "in_transaction": in_transaction,
            "longest": max(row["longest"] for row in same),
            **{name: sum(row[name] for row in same) for name in _AMOUNTS},
            "servers": tuple(sorted(counts, key=lambda count: (-count.count, count.name))),
        }


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
                servers=row["servers"],
            )
            for row in ranked
        ),
        pipelined=is_pipeline(first["groups"], first["at_once"]),
    )


def _cost(loop: LogLoop) -> int:
    return sum(template.sum_ns + template.waiting_ns for template in loop.templates)
