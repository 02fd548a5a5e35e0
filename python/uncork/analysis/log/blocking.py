"""Who waited for whom, from waits for locks in a log."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from uncork.model.results.log import Blocking

_MOST = 100
"""The most pairs that a report shows; the table of the run holds all of them."""


def blocking_of(table: pa.Table, texts: Sequence[str]) -> tuple[Blocking, ...]:
    """Return who waited for whom, the longest waits first; `texts` maps template numbers to texts. Pure."""
    if not table.num_rows:
        return ()
    keys = ("server", "waiting_template", "waiting_application", "holding_template", "holding_application")
    grouped = table.group_by(keys).aggregate([("waits", "sum"), ("sum_us", "sum"), ("max_us", "max")])
    rows = sorted(grouped.to_pylist(), key=lambda row: (-row["sum_us_sum"], -row["waits_sum"], str(row)))
    return tuple(
        Blocking(
            waiting_number=row["waiting_template"],
            waiting_text=_text(row["waiting_template"], texts),
            waiting_application=row["waiting_application"],
            holding_number=row["holding_template"],
            holding_text=_text(row["holding_template"], texts),
            holding_application=row["holding_application"],
            waits=row["waits_sum"],
            sum_ns=row["sum_us_sum"] * 1000,
            max_ns=row["max_us_max"] * 1000,
            server=row["server"] or "",
        )
        for row in rows[:_MOST]
    )


def _text(number: int | None, texts: Sequence[str]) -> str:
    return "" if number is None else texts[number]
