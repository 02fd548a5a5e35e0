"""Which statements clients repeat in loops, from the order of a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from uncork.diagnosis.log_loops import is_loop, is_pipeline
from uncork.model.records import build_from
from uncork.model.results.log_activity import NameCount
from uncork.model.results.log_loop import LogLoop, LoopTemplate
from uncork.model.tables.log import LoopRow
from uncork.store.rows import typed_rows

_MOST = 100
"""The most loops that a report lists; the table of the run holds all of them."""

Repeated = tuple[LoopRow, tuple[NameCount, ...]]
"""A repeated template, with its executions by server."""


def loops_of(
    table: pa.Table, texts: Sequence[str], executions: Sequence[int], *, by_server: bool = False
) -> tuple[LogLoop, ...]:
    """Return the loops of all servers together, those with the most time first. Pure.

    `texts` and `executions` are those of all templates, by number. `by_server` counts executions by server.
    """
    groups: dict[tuple[Any, ...], list[Repeated]] = defaultdict(list)
    for row, servers in _added_up(typed_rows(table, LoopRow)):
        if not row.in_transaction and not _is_loop(row, executions):
            continue
        # Without a parent, templates of one loop have the same number of transactions and of repetitions.
        alike = () if row.parent is not None else (row.stretches, row.longest)
        groups[row.in_transaction, row.parent, alike].append((row, servers if by_server else ()))
    found = [_loop(rows, texts) for rows in groups.values()]
    return tuple(sorted(found, key=lambda loop: (-_cost(loop), loop.templates[0].text))[:_MOST])


def _added_up(rows: Iterable[LoopRow]) -> Iterator[Repeated]:
    """Yield the rows, with executions by server; rows that differ only in the server are added up."""
    groups: dict[tuple[Any, ...], list[LoopRow]] = defaultdict(list)
    for row in rows:
        groups[row.template, row.parent, row.in_transaction].append(row)
    for same in groups.values():
        counts = (NameCount(row.server, row.executions) for row in same)
        whole = replace(
            same[0],
            longest=max(row.longest for row in same),
            stretches=sum(row.stretches for row in same),
            executions=sum(row.executions for row in same),
            parents=sum(row.parents for row in same),
            squares=sum(row.squares for row in same),
            elapsed_us=sum(row.elapsed_us for row in same),
            sum_us=sum(row.sum_us for row in same),
            groups=sum(row.groups for row in same),
            at_once=sum(row.at_once for row in same),
        )
        yield whole, tuple(sorted(counts, key=lambda count: (-count.count, count.name)))


def _is_loop(row: LoopRow, executions: Sequence[int]) -> bool:
    return row.parent is not None and is_loop(
        executions=row.executions,
        parents=row.parents,
        parent_executions=executions[row.parent],
        stretches=row.stretches,
        squares=row.squares,
    )


def _loop(rows: Sequence[Repeated], texts: Sequence[str]) -> LogLoop:
    ranked = sorted(rows, key=lambda row: (-row[0].elapsed_us, -row[0].executions, row[0].template))
    first = ranked[0][0]
    return build_from(
        LogLoop,
        first,
        parent_number=first.parent,
        parent_text="" if first.parent is None else texts[first.parent],
        parents=max(row.parents for row, _ in rows),
        stretches=max(row.stretches for row, _ in rows),
        ratio=first.executions / (first.stretches if first.parent is None else first.parents),
        templates=tuple(
            build_from(
                LoopTemplate,
                row,
                number=row.template,
                text=texts[row.template],
                sum_ns=row.sum_us * 1000,
                waiting_ns=max(0, row.elapsed_us - row.sum_us) * 1000,
                servers=servers,
            )
            for row, servers in ranked
        ),
        pipelined=is_pipeline(first.groups, first.at_once),
    )


def _cost(loop: LogLoop) -> int:
    return sum(template.sum_ns + template.waiting_ns for template in loop.templates)
