"""The servers of a log, as a table, and the column that names them in other tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uncork.model.results.log import LogResult, NameCount, TemplateFacts
from uncork.model.results.log_activity import LogServer
from uncork.model.template_words import short_template
from uncork.model.units import format_count
from uncork.report.blocks import Table, Value
from uncork.report.cells import (
    column,
    count_cell,
    duration_cell,
    header,
    not_shown,
    number,
    share_cell,
    table_if_any,
)
from uncork.report.quantity_words import share_text

_WIDTH: Final = 80
_SHOWN: Final = 3
_SHARES: Final = 2


def servers_table(result: LogResult, most: int) -> Table | None:
    """Return what up to `most` servers logged, the one with most time first; None if there is only one."""
    ids = {template.number: f"template-{template.number}" for template in result.templates}
    return table_if_any(
        f"Servers{not_shown(len(result.servers) - most, 'other server')}",
        result.servers[:most],
        header("server", lambda server: server.name or "(unnamed)"),
        number("entries", lambda server: count_cell(server.entries)),
        number("time", lambda server: duration_cell(server.sum_ns)),
        number("share", lambda server: share_cell(server.share)),
        number("count", lambda server: count_cell(server.executions)),
        number("p95", lambda server: duration_cell(server.p95_ns)),
        number("errors", lambda server: count_cell(server.errors)),
        column("template with most time", lambda server: _costliest(server, ids)),
        sortable=True,
    )


def _costliest(server: LogServer, ids: dict[int, str]) -> Value:
    if not server.template_text:
        return Value("")
    text, share = short_template(server.template_text, _WIDTH), share_text(server.template_share)
    link = "" if server.template_number is None else ids.get(server.template_number, "")
    return Value(text, note=share, code=True, link=link, back=False)


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


def server_counts(counts: Sequence[NameCount]) -> str:
    """Return how often something happened on each server, the most frequent first."""
    shown = ", ".join(f"{count.name} {format_count(count.count)}" for count in counts[:_SHOWN])
    return shown + (f", {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else "")
