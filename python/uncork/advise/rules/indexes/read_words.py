"""What is known of a statement that reads too much, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from uncork.advise.evidence import Evidence
from uncork.advise.rules.indexes.problems import Problem
from uncork.advise.rules.indexes.reads import blocks_a_call
from uncork.model.units import count_words, format_count, format_duration, share_text


def read_sentences(one: Problem, seen: Evidence) -> Iterator[str]:
    """Yield the size of the table, what a call reads and returns, and the scan in the plan."""
    table, statement = one.use.table, one.statement
    yield f"Table {table.name} has {format_count(round(seen.rows(table.name)))} rows."
    blocks, returned = blocks_a_call(statement), statement.a_call(statement.rows)
    if blocks is not None and statement.calls and returned is not None:
        yield (
            f"Each of {count_words(statement.calls, 'call')} reads {count_words(round(blocks), 'block')} and "
            f"returns or changes {count_words(round(returned), 'row')}."
        )
    for policy in statement.policies:
        if policy.table == table.name:
            yield (
                f"For role {statement.role}, policy {policy.name} of the table adds the condition "
                f"{policy.condition}."
            )
    if statement.mean_ns:
        yield f"A call takes {format_duration(statement.mean_ns)}."
    node = one.read.node
    if node is not None and node.condition("Filter"):
        yield f"The plan has {node.kind} on {table.name}, with the filter {node.condition('Filter')}."
    if one.is_doubted:
        yield (
            f"By the planner's costs, an index may save {share_text(one.fraction)} of the time. Such "
            "estimates are often wrong by a factor of two, so measure the index on a copy with uncork cure."
        )
