"""Lock waits in a log: who waited for whom, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from uncork.model.results.log import Blocking
from uncork.model.template_words import short_template
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import count_cell, duration_cell

_UNKNOWN = "(still running, or not logged)"


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
                Value(short_template(blocking.waiting_text) or _UNKNOWN, code=bool(blocking.waiting_text)),
                Value(blocking.waiting_application),
                Value(short_template(blocking.holding_text) or _UNKNOWN, code=bool(blocking.holding_text)),
                Value(blocking.holding_application),
                count_cell(blocking.waits),
                duration_cell(blocking.sum_ns),
                duration_cell(blocking.max_ns),
            )
            for blocking in found
        ),
        sortable=True,
    )
