"""The table of templates by step of the extended protocol: parse, bind, execute."""

from __future__ import annotations

from uncork.model.results.log import LogResult
from uncork.model.template_words import short_templates
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import duration_cell, share_cell
from uncork.report.log.tables import template_id
from uncork.report.words import count_words


def protocol_table(result: LogResult, most: int, *, width: int) -> Table | None:
    """Return how long each template was parsed, bound and executed; None if the log has no such durations.

    The log has them for the extended protocol only. A bind contains the planning of the statement.
    """
    found = [template for template in result.templates if template.parse.count or template.bind.count]
    if not found:
        return None
    found.sort(key=lambda one: -(one.parse.sum_ns + one.bind.sum_ns))
    texts = short_templates([template.text for template in found[:most]], width)
    left = len(found) - most
    more = f"; {count_words(left, 'other template')} not shown" if left > 0 else ""
    rows = []
    for one, text in zip(found[:most], texts, strict=True):
        whole = one.parse.sum_ns + one.bind.sum_ns + one.sum_ns
        rows.append(
            (
                duration_cell(one.parse.sum_ns),
                duration_cell(one.bind.sum_ns),
                duration_cell(one.sum_ns),
                share_cell((one.parse.sum_ns + one.bind.sum_ns) / whole if whole else 0.0),
                Value(text, code=True, link=template_id(one), back=False),
            )
        )
    return Table(
        f"Templates by time before they execute: parse, and bind with planning{more}",
        (
            *(Column(name, number=True) for name in ("parse", "bind", "execute", "before")),
            Column("template", header=True),
        ),
        tuple(rows),
        sortable=True,
    )
