"""Lock waits in a log: who waited for whom, as a sentence and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uncork.model.results.log import Blocking
from uncork.model.template_words import short_template
from uncork.model.units import format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import count_cell, duration_cell
from uncork.report.words import count_words

__all__ = ["blocking_reasons", "blocking_table"]

_UNKNOWN = "(still running, or not logged)"


def blocking_reasons(found: Sequence[Blocking]) -> Iterator[str]:
    """Yield the lock holder for which sessions waited longest."""
    for one in found[:1]:
        who = f"of {one.holding_application} " if one.holding_application else ""
        held = (
            f"a transaction {who}whose last statement was {short_template(one.holding_text)}"
            if one.holding_text
            else f"a statement {who}that was still running, or is not logged"
        )
        yield (
            f"Sessions waited longest for {held}: {count_words(one.waits, 'wait')}, "
            f"{format_duration(one.sum_ns)} in total, by {short_template(one.waiting_text) or 'others'}"
        )


def blocking_table(found: Sequence[Blocking]) -> Table | None:
    """Return who waited for whom; None when the log does not show it."""
    if not found:
        return None
    return Table(
        "Who waited for whom: lock waits longer than deadlock_timeout, and the holder's last statement",
        (
            Column("waiting statement", header=True),
            Column("application"),
            Column("holder's statement", header=True),
            Column("holder's application"),
            Column("waits", number=True),
            Column("waited", number=True),
            Column("longest", number=True),
        ),
        tuple(
            (
                Value(short_template(one.waiting_text) or _UNKNOWN, code=bool(one.waiting_text)),
                Value(one.waiting_application),
                Value(short_template(one.holding_text) or _UNKNOWN, code=bool(one.holding_text)),
                Value(one.holding_application),
                count_cell(one.waits),
                duration_cell(one.sum_ns),
                duration_cell(one.max_ns),
            )
            for one in found
        ),
        sortable=True,
    )
