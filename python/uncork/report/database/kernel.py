"""The table of templates by processor time, from pg_stat_kcache."""

from __future__ import annotations

from typing import Final

from uncork.model.results.database import DatabaseResult
from uncork.model.template_words import short_templates
from uncork.model.units import format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import bytes_cell, duration_cell, share_cell
from uncork.report.database.tables import parts_of, template_id
from uncork.report.words import count_words

_SHORT: Final = 1e5
"""Only if executions below this duration count as a whole does the table say so."""


def kernel_table(result: DatabaseResult, most: int, *, width: int) -> Table | None:
    """Return templates by processor time, in user mode and in the kernel; None without pg_stat_kcache."""
    counted = [
        (template, template.kernel, template.statements.execution_ns)
        for template in result.templates
        if template.kernel is not None and template.statements is not None
    ]
    if not counted:
        return None
    counted.sort(key=lambda item: -(item[1].user_ns + item[1].system_ns))
    all_ns = sum(kernel.user_ns + kernel.system_ns for _, kernel, _ in counted)
    texts = short_templates([activity.text for activity, _, _ in counted[:most]], width)
    left = len(counted) - most
    more = f"; {count_words(left, 'other template')} not shown" if left > 0 else ""
    whole_ns = result.kernel_whole_ns or 0.0
    short = (
        f"; executions shorter than {format_duration(whole_ns)} count as user time as a whole"
        if whole_ns > _SHORT
        else ""
    )
    links = {activity.number: template_id(activity) for activity in parts_of(result)}
    return Table(
        f"Templates by processor time, from pg_stat_kcache{short}{more}",
        (
            *(Column(name, number=True) for name in ("processor", "share", "user", "system", "waiting")),
            *(Column(name, number=True) for name in ("from disk", "written")),
            Column("template", header=True),
        ),
        tuple(
            (
                duration_cell(kernel.user_ns + kernel.system_ns),
                share_cell((kernel.user_ns + kernel.system_ns) / all_ns if all_ns else 0.0),
                duration_cell(kernel.user_ns),
                duration_cell(kernel.system_ns),
                # Parallel workers use several processors at a time.
                duration_cell(max(0.0, execution_ns - kernel.user_ns - kernel.system_ns)),
                bytes_cell(kernel.read_bytes),
                bytes_cell(kernel.written_bytes),
                Value(text, code=True, link=links.get(activity.number, ""), back=False),
            )
            for (activity, kernel, execution_ns), text in zip(counted[:most], texts, strict=True)
        ),
        sortable=True,
    )
