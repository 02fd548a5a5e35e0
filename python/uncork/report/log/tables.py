"""The tables of a log. The terminal, Markdown and HTML share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from uncork.model.results.log import (
    DURATION_PARTS,
    Contribution,
    ErrorFacts,
    LogResult,
    Tally,
    TemplateFacts,
)
from uncork.model.template_words import short_template, short_templates
from uncork.model.units import format_count
from uncork.report.blocks import Table, Value
from uncork.report.cells import (
    bytes_cell,
    column,
    count_cell,
    duration_cell,
    header,
    instant_cell,
    mean_cell,
    not_shown,
    number,
    rank_cells,
    share_cell,
    table_if_any,
    table_of,
)
from uncork.report.log.activity import checkpoint_tables, vacuum_tables
from uncork.report.log.servers import server_counts, server_shares

_INCIDENTS: Final = 20
"""Most lock waits and temporary files that a table lists."""


def templates_table(result: LogResult, most: int, *, width: int) -> Table:
    """Return the costliest templates, each on a line of `width` characters."""
    executed = [template for template in result.templates if template.executions]
    shown = executed[:most]
    texts = short_templates([template.text for template in shown], width)
    repeated = loop_notes(result)
    left = len(executed) + result.templates_more - len(shown)
    return table_of(
        f"Templates by total time{not_shown(left, 'other template')}",
        shown,
        number("#", rank_cells(len(shown))),
        number("time", lambda template: duration_cell(template.sum_ns)),
        number("share", lambda template: share_cell(template.share)),
        number("count", lambda template: count_cell(template.executions)),
        number("mean", lambda template: duration_cell(template.mean_ns)),
        number("p50", lambda template: duration_cell(template.p50_ns)),
        number("p95", lambda template: duration_cell(template.p95_ns)),
        number("p99", lambda template: duration_cell(template.p99_ns)),
        number("longest", lambda template: duration_cell(template.max_ns)),
        header(
            "template",
            [
                Value(
                    text,
                    note=_notes(template, repeated.get(template.number, "")),
                    code=True,
                    link=template_id(template),
                )
                for template, text in zip(shown, texts, strict=True)
            ],
        ),
        sortable=True,
    )


def _before_share(template: TemplateFacts) -> float:
    whole = _before_ns(template) + template.sum_ns
    return _before_ns(template) / whole if whole else 0.0


def _before_ns(template: TemplateFacts) -> float:
    return template.parse.sum_ns + template.bind.sum_ns


def protocol_table(result: LogResult, most: int, *, width: int) -> Table | None:
    """Return how long each template was parsed, bound and executed; None if the log has no such durations.

    The log has them for the extended protocol only. A bind contains the planning of the statement.
    """
    found = [template for template in result.templates if template.parse.count or template.bind.count]
    found.sort(key=lambda template: -_before_ns(template))
    shown = found[:most]
    texts = short_templates([template.text for template in shown], width)
    return table_if_any(
        "Templates by time before they execute: parse, and bind with planning"
        f"{not_shown(len(found) - most, 'other template')}",
        shown,
        number("parse", lambda template: duration_cell(template.parse.sum_ns)),
        number("bind", lambda template: duration_cell(template.bind.sum_ns)),
        number("execute", lambda template: duration_cell(template.sum_ns)),
        number("before", lambda template: share_cell(_before_share(template))),
        header(
            "template",
            [
                Value(text, code=True, link=template_id(template), back=False)
                for template, text in zip(shown, texts, strict=True)
            ],
        ),
        sortable=True,
    )


def template_id(template: TemplateFacts) -> str:
    """Return the id of a template's section."""
    return f"template-{template.number}"


def _notes(template: TemplateFacts, repeated: str) -> str:
    parts = []
    if template.lists is not None and template.lists.max > 1:
        parts.append(f"lists of {format_count(round(template.lists.mean))}")
    if template.repetition is not None:
        way = "in a pipeline" if template.repetition.pipelined else "one by one"
        parts.append(f"{way}, up to {format_count(template.repetition.longest)}")
    if repeated:
        parts.append(repeated)
    if template.failed:
        parts.append(f"{format_count(template.failed)} failed")
    servers = server_shares(template)
    if servers:
        parts.append(servers)
    return ", ".join(parts)


def contributions_tables(result: LogResult) -> Iterator[Table]:
    """Yield the time by application, user, database, host and kind; without tables of one unnamed row."""
    for name, found in (
        ("application", result.applications),
        ("user", result.users),
        ("database", result.databases),
        ("host", result.hosts),
        ("kind of statement", result.kinds),
    ):
        if found and (len(found) > 1 or found[0].name):
            yield _contributions(name, found)


def _contributions(name: str, found: Sequence[Contribution]) -> Table:
    return table_of(
        f"By {name}",
        found,
        header(name, lambda part: part.name or "(unknown)"),
        number("time", lambda part: duration_cell(part.sum_ns)),
        number("share", lambda part: share_cell(part.share)),
        number("count", lambda part: count_cell(part.executions)),
        number("mean", lambda part: mean_cell(part.sum_ns, part.executions)),
        number("longest", lambda part: duration_cell(part.max_ns)),
        sortable=True,
    )


def histogram_table(result: LogResult) -> Table | None:
    """Return the histogram of durations; None without executions."""
    total = sum(result.histogram)
    if not total:
        return None
    return table_of(
        "Executions by duration",
        result.histogram,
        header("duration", DURATION_PARTS),
        number("count", [count_cell(count) for count in result.histogram]),
        number("share", lambda count: share_cell(count / total)),
    )


def errors_table(errors: Sequence[ErrorFacts], most: int) -> Table | None:
    """Return errors and warnings by kind, the most frequent first; None if there are none."""
    return _messages("Errors and warnings by kind", errors, most)


def notices_table(notices: Sequence[ErrorFacts], most: int) -> Table | None:
    """Return other messages by kind; None if there are none."""
    return _messages("Other messages", notices, most)


def _messages(title: str, found: Sequence[ErrorFacts], most: int) -> Table | None:
    return table_if_any(
        f"{title}{not_shown(len(found) - most, 'more kind')}",
        found[:most],
        number("count", lambda error: count_cell(error.count)),
        column("severity", lambda error: error.severity.lower()),
        column("SQLSTATE", lambda error: error.sqlstate),
        header("message", lambda error: short_template(error.message, 120)),
        column("first", lambda error: instant_cell(error.first_us)),
        column("last", lambda error: instant_cell(error.last_us)),
        column(
            "servers", lambda error: server_counts(error.servers), when=any(error.servers for error in found)
        ),
        sortable=True,
    )


def transactions_table(result: LogResult) -> Table | None:
    """Return transactions by application, user and database; None when the log shows none."""
    return table_if_any(
        "Transactions from BEGIN to their end",
        result.transactions,
        header("application", lambda transaction: transaction.application or "(unknown)"),
        column("user", lambda transaction: transaction.user),
        column("database", lambda transaction: transaction.database),
        number("count", lambda transaction: count_cell(transaction.count)),
        number("open", lambda transaction: duration_cell(transaction.elapsed_ns)),
        number("in statements", lambda transaction: duration_cell(transaction.working_ns)),
        number("in pauses over 1 s", lambda transaction: duration_cell(transaction.pause_ns)),
        number("statements, median", lambda transaction: count_cell(transaction.statements_p50)),
        number("statements, most", lambda transaction: count_cell(transaction.statements_max)),
        column("server", lambda transaction: transaction.server, when=result.servers),
        sortable=True,
    )


def activity_tables(result: LogResult) -> Iterator[Table]:
    """Yield what the server logged about locks, files, checkpoints, autovacuum and cancellations."""
    server = result.server
    tables = (
        _tallies("Completed lock waits longer than deadlock_timeout", "lock", server.lock_waits),
        blocking_table(result),
        _longest_waits(result),
        _tallies("Temporary files", "statement", server.temporary_files, size=True),
        _largest_files(result),
        *checkpoint_tables(server),
        *vacuum_tables(server.vacuum_work),
        table_if_any(
            "Cancelled and terminated",
            server.cancellations,
            header("reason", lambda cancellation: cancellation.name),
            number("count", lambda cancellation: count_cell(cancellation.count)),
        ),
    )
    return filter(None, tables)


def _tallies(title: str, of: str, found: Sequence[Tally], *, size: bool = False) -> Table | None:
    amount: Callable[[int], Value] = bytes_cell if size else duration_cell
    return table_if_any(
        title,
        found,
        header(of, lambda tally: short_template(tally.name) or "(unknown)"),
        number("count", lambda tally: count_cell(tally.count)),
        number("total", lambda tally: amount(tally.sum)),
        number("largest" if size else "longest", lambda tally: amount(tally.max)),
        sortable=True,
    )


def _longest_waits(result: LogResult) -> Table | None:
    return table_if_any(
        "Longest lock waits, and the last statement of the session that held the lock",
        result.server.longest_waits[:_INCIDENTS],
        number("waited", lambda wait: duration_cell(wait.amount)),
        column("when", lambda wait: instant_cell(wait.time_us)),
        number("process", lambda wait: Value(str(wait.pid), sort=wait.pid)),
        header("lock", lambda wait: Value(short_template(wait.what), note=wait.detail)),
        column("relation", lambda wait: wait.relation),
        column("statement", lambda wait: Value(short_template(wait.statement), code=True)),
        column("holder's statement", lambda wait: Value(short_template(wait.holder), code=True)),
        column("server", lambda wait: wait.server, when=result.servers),
        sortable=True,
    )


def _largest_files(result: LogResult) -> Table | None:
    return table_if_any(
        "Largest temporary files",
        result.server.largest_files[:_INCIDENTS],
        number("size", lambda file: bytes_cell(file.amount)),
        column("when", lambda file: instant_cell(file.time_us)),
        number("process", lambda file: Value(str(file.pid), sort=file.pid)),
        header("what", lambda file: Value(short_template(file.what), note=file.detail)),
        column("statement", lambda file: Value(short_template(file.statement), code=True)),
        column("server", lambda file: file.server, when=result.servers),
        sortable=True,
    )


def files_table(result: LogResult) -> Table:
    """Return the files that were read."""
    return table_of(
        "Files",
        result.files,
        header("file", lambda file: file.name),
        number("size", lambda file: bytes_cell(file.bytes)),
        column("dialect", lambda file: file.dialect or "unknown"),
        column("log_line_prefix", lambda file: Value(_quoted(file.prefix), code=True)),
        number("entries", lambda file: count_cell(file.entries)),
        number("lines", lambda file: count_cell(file.lines)),
        number("continuation lines", lambda file: count_cell(file.continuations)),
        number("not understood", lambda file: count_cell(file.rejected, note=file.trouble or "")),
        column("server", lambda file: file.server, when=result.servers),
        sortable=True,
    )


def _quoted(prefix: str | None) -> str:
    return "" if prefix is None else f"'{prefix}'"


def lines_words(result: LogResult) -> str:
    """Return what the lines are; an empty text if there are none."""
    lines = sum(file.lines for file in result.files)
    if not lines:
        return ""
    parts = [
        (sum(file.heads for file in result.files), "start an entry or add to one"),
        (sum(file.continuations for file in result.files), "continue one or are empty"),
        (sum(file.foreign for file in result.files), "are records of other programs"),
        (result.rejected, "belong to no entry"),
    ]
    listed = ", ".join(
        f"{format_count(count)} {words}" for count, words in parts if count or words == parts[-1][1]
    )
    return f"{format_count(lines)}: {listed}"


def rejected_table(result: LogResult) -> Table | None:
    """Return the first lines that belong to no entry; None if there are none."""
    return table_if_any(
        f"Lines that belong to no entry: the first of {format_count(result.rejected)}",
        result.rejected_lines,
        header("file", lambda rejected: rejected.file),
        number("line", lambda rejected: "" if rejected.line is None else str(rejected.line)),
        column("text", lambda rejected: Value(rejected.text, code=True)),
    )


# ---- what the list of templates says of statements that clients repeat in loops ----


def loop_notes(result: LogResult) -> dict[int, str]:
    """Return a note on each template that a loop repeats, by its number."""
    found: dict[int, str] = {}
    for loop in result.loops:
        where = "transaction" if loop.in_transaction else "session"
        for template in loop.templates:
            words = f"repeated up to {format_count(template.longest)} times in a {where}"
            found.setdefault(template.number, words)
    return found


def blocking_table(result: LogResult) -> Table | None:
    """Return who waited for whom; None when the log does not show it."""
    return table_if_any(
        "Who waited for whom: lock waits longer than deadlock_timeout, and the holder's last statement",
        result.blocking,
        header("waiting statement", lambda blocking: _statement(blocking.waiting_text)),
        column("application", lambda blocking: blocking.waiting_application),
        header("holder's statement", lambda blocking: _statement(blocking.holding_text)),
        column("holder's application", lambda blocking: blocking.holding_application),
        number("waits", lambda blocking: count_cell(blocking.waits)),
        number("waited", lambda blocking: duration_cell(blocking.sum_ns)),
        number("longest", lambda blocking: duration_cell(blocking.max_ns)),
        column("server", lambda blocking: blocking.server, when=result.servers),
        sortable=True,
    )


def _statement(text: str) -> Value:
    return Value(short_template(text) or "(still running, or not logged)", code=bool(text))
