"""The servers of a log, as a table, and the column that names them in other tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from uncork.model.results.log import LogResult, NameCount, TemplateFacts
from uncork.model.template_words import short_template
from uncork.model.units import format_count
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import count_cell, duration_cell, share_cell
from uncork.report.quantity_words import share_text
from uncork.report.words import count_words

_WIDTH: Final = 80
_SHOWN: Final = 3
_SHARES: Final = 2


def servers_table(result: LogResult, most: int) -> Table | None:
    """Return what up to `most` servers logged, the one with most time first; None if there is only one."""
    if not result.servers:
        return None
    ids = {template.number: f"template-{template.number}" for template in result.templates}
    left = len(result.servers) - most
    return Table(
        f"Servers; {count_words(left, 'other server')} not shown" if left > 0 else "Servers",
        (
            Column("server", header=True),
            Column("entries", number=True),
            Column("time", number=True),
            Column("share", number=True),
            Column("count", number=True),
            Column("p95", number=True),
            Column("errors", number=True),
            Column("template with most time"),
        ),
        tuple(
            (
                Value(server.name or "(unnamed)"),
                count_cell(server.entries),
                duration_cell(server.sum_ns),
                share_cell(server.share),
                count_cell(server.executions),
                duration_cell(server.p95_ns),
                count_cell(server.errors),
                Value(
                    short_template(server.template_text, _WIDTH),
                    note=share_text(server.template_share) if server.template_text else "",
                    code=bool(server.template_text),
                    link=ids.get(-1 if server.template_number is None else server.template_number, ""),
                    back=False,
                ),
            )
            for server in result.servers[:most]
        ),
        sortable=True,
    )


def on_server(result: LogResult, name: str) -> str:
    """Return on which server something is: " on server a"; an empty text if there is only one."""
    return f" on server {name}" if result.servers and name else ""


def server_shares(template: TemplateFacts) -> str:
    """Return which servers have a template's time: "db1 92 %, db2 8 %"; "" if there is only one."""
    if not template.servers or not template.sum_ns:
        return ""
    if len(template.servers) == 1:
        return f"only on {template.servers[0].name}"
    shown = ", ".join(f"{part.name} {share_text(part.share)}" for part in template.servers[:_SHARES])
    return shown + (f", {len(template.servers) - _SHARES} more" if len(template.servers) > _SHARES else "")


def with_servers(table: Table, result: LogResult, names: Iterable[str]) -> Table:
    """Return a table with the server of each row, if the logs are of several servers."""
    if not result.servers:
        return table
    return replace(
        table,
        columns=(*table.columns, Column("server")),
        rows=tuple((*row, Value(name)) for row, name in zip(table.rows, names, strict=True)),
    )


def server_counts(counts: Sequence[NameCount]) -> str:
    """Return how often something happened on each server, the most frequent first."""
    shown = ", ".join(f"{count.name} {format_count(count.count)}" for count in counts[:_SHOWN])
    return shown + (f", {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else "")
