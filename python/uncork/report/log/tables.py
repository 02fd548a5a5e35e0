"""The tables of a log. The terminal, Markdown and HTML share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from uncork.model.results.log import (
    DURATION_PARTS,
    Blocking,
    Contribution,
    ErrorFacts,
    Incident,
    LogResult,
    Tally,
    TemplateFacts,
)
from uncork.model.template_words import short_template, short_templates
from uncork.model.units import format_count
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import bytes_cell, count_cell, duration_cell, instant_cell, share_cell
from uncork.report.log.activity import checkpoint_tables, vacuum_tables
from uncork.report.log.servers import server_counts, server_shares, with_servers
from uncork.report.words import count_words

_TIME: Final = (
    Column("time", number=True),
    Column("share", number=True),
    Column("count", number=True),
    Column("mean", number=True),
)
_QUANTILES: Final = (
    Column("p50", number=True),
    Column("p95", number=True),
    Column("p99", number=True),
    Column("longest", number=True),
)


def templates_table(result: LogResult, most: int, *, width: int) -> Table:
    """Return the costliest templates, each on a line of `width` characters."""
    executed = [template for template in result.templates if template.executions]
    shown = executed[:most]
    texts = short_templates([template.text for template in shown], width)
    repeated = loop_notes(result)
    left = len(executed) + result.templates_more - len(shown)
    more = f"; {count_words(left, 'other template')} not shown" if left else ""
    return Table(
        f"Templates by total time{more}",
        (Column("#", number=True), *_TIME, *_QUANTILES, Column("template", header=True)),
        tuple(
            (
                Value(str(rank), sort=rank),
                duration_cell(template.sum_ns),
                share_cell(template.share),
                count_cell(template.executions),
                duration_cell(template.mean_ns),
                *(
                    duration_cell(value)
                    for value in (template.p50_ns, template.p95_ns, template.p99_ns, template.max_ns)
                ),
                Value(
                    text,
                    note=_notes(template, repeated.get(template.number, "")),
                    code=True,
                    link=template_id(template),
                ),
            )
            for rank, (template, text) in enumerate(zip(shown, texts, strict=True), 1)
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
    return Table(
        f"By {name}",
        (Column(name, header=True), *_TIME, Column("longest", number=True)),
        tuple(
            (
                Value(contribution.name or "(unknown)"),
                duration_cell(contribution.sum_ns),
                share_cell(contribution.share),
                count_cell(contribution.executions),
                duration_cell(
                    contribution.sum_ns / contribution.executions if contribution.executions else None
                ),
                duration_cell(contribution.max_ns),
            )
            for contribution in found
        ),
        sortable=True,
    )


def histogram_table(result: LogResult) -> Table | None:
    """Return the histogram of durations; None without executions."""
    total = sum(result.histogram)
    if not total:
        return None
    return Table(
        "Executions by duration",
        (Column("duration", header=True), Column("count", number=True), Column("share", number=True)),
        tuple(
            (Value(name), count_cell(count), share_cell(count / total))
            for name, count in zip(DURATION_PARTS, result.histogram, strict=True)
        ),
    )


def errors_table(errors: Sequence[ErrorFacts], most: int) -> Table | None:
    """Return errors and warnings by kind, the most frequent first; None if there are none."""
    return _messages("Errors and warnings by kind", errors, most)


def notices_table(notices: Sequence[ErrorFacts], most: int) -> Table | None:
    """Return other messages by kind; None if there are none."""
    return _messages("Other messages", notices, most)


def _messages(title: str, found: Sequence[ErrorFacts], most: int) -> Table | None:
    if not found:
        return None
    left = len(found) - most
    by_server = any(error.servers for error in found)
    return Table(
        f"{title}; {count_words(left, 'more kind')} not shown" if left > 0 else title,
        (
            Column("count", number=True),
            Column("severity"),
            Column("SQLSTATE"),
            Column("message", header=True),
            Column("first"),
            Column("last"),
            *((Column("servers"),) if by_server else ()),
        ),
        tuple(
            (
                count_cell(error.count),
                Value(error.severity.lower()),
                Value(error.sqlstate),
                Value(short_template(error.message, 120)),
                instant_cell(error.first_us),
                instant_cell(error.last_us),
                *((Value(server_counts(error.servers)),) if by_server else ()),
            )
            for error in found[:most]
        ),
        sortable=True,
    )


def transactions_table(result: LogResult) -> Table | None:
    """Return transactions by application, user and database; None when the log shows none."""
    if not result.transactions:
        return None
    table = Table(
        "Transactions from BEGIN to their end",
        (
            Column("application", header=True),
            Column("user"),
            Column("database"),
            Column("count", number=True),
            Column("open", number=True),
            Column("in statements", number=True),
            Column("in pauses over 1 s", number=True),
            Column("statements, median", number=True),
            Column("statements, most", number=True),
        ),
        tuple(
            (
                Value(transaction.application or "(unknown)"),
                Value(transaction.user),
                Value(transaction.database),
                count_cell(transaction.count),
                duration_cell(transaction.elapsed_ns),
                duration_cell(transaction.working_ns),
                duration_cell(transaction.pause_ns),
                count_cell(transaction.statements_p50),
                count_cell(transaction.statements_max),
            )
            for transaction in result.transactions
        ),
        sortable=True,
    )
    return with_servers(table, result, (transaction.server for transaction in result.transactions))


def activity_tables(result: LogResult) -> Iterator[Table]:
    """Yield what the server logged about locks, files, checkpoints, autovacuum and cancellations."""
    server = result.server
    if server.lock_waits:
        yield _tallies("Completed lock waits longer than deadlock_timeout", "lock", server.lock_waits)
    blocking = blocking_table(result.blocking)
    if blocking is not None:
        yield with_servers(blocking, result, (blocking.server for blocking in result.blocking))
    if server.longest_waits:
        waits = server.longest_waits[:20]
        yield with_servers(_longest_waits(waits), result, (wait.server for wait in waits))
    if server.temporary_files:
        yield _tallies("Temporary files", "statement", server.temporary_files, size=True)
    if server.largest_files:
        files = server.largest_files[:20]
        yield with_servers(_largest_files(files), result, (file.server for file in files))
    yield from checkpoint_tables(server)
    yield from vacuum_tables(server.vacuum_work)
    if server.cancellations:
        yield Table(
            "Cancelled and terminated",
            (Column("reason", header=True), Column("count", number=True)),
            tuple(
                (Value(cancellation.name), count_cell(cancellation.count))
                for cancellation in server.cancellations
            ),
        )


def _tallies(title: str, of: str, found: Sequence[Tally], *, size: bool = False) -> Table:
    shown: Callable[[int], Value] = bytes_cell if size else duration_cell
    return Table(
        title,
        (
            Column(of, header=True),
            Column("count", number=True),
            Column("total", number=True),
            Column("largest" if size else "longest", number=True),
        ),
        tuple(
            (
                Value(short_template(tally.name) or "(unknown)"),
                count_cell(tally.count),
                shown(tally.sum),
                shown(tally.max),
            )
            for tally in found
        ),
        sortable=True,
    )


def _longest_waits(waits: Sequence[Incident]) -> Table:
    return Table(
        "Longest lock waits, and the last statement of the session that held the lock",
        (
            Column("waited", number=True),
            Column("when"),
            Column("process", number=True),
            Column("lock", header=True),
            Column("relation"),
            Column("statement"),
            Column("holder's statement"),
        ),
        tuple(
            (
                duration_cell(wait.amount),
                instant_cell(wait.time_us),
                Value(str(wait.pid), sort=wait.pid),
                Value(short_template(wait.what), note=wait.detail),
                Value(wait.relation),
                Value(short_template(wait.statement), code=True),
                Value(short_template(wait.holder), code=True),
            )
            for wait in waits
        ),
        sortable=True,
    )


def _largest_files(files: Sequence[Incident]) -> Table:
    return Table(
        "Largest temporary files",
        (
            Column("size", number=True),
            Column("when"),
            Column("process", number=True),
            Column("what", header=True),
            Column("statement"),
        ),
        tuple(
            (
                bytes_cell(file.amount),
                instant_cell(file.time_us),
                Value(str(file.pid), sort=file.pid),
                Value(short_template(file.what), note=file.detail),
                Value(short_template(file.statement), code=True),
            )
            for file in files
        ),
        sortable=True,
    )


def files_table(result: LogResult) -> Table:
    """Return the files that were read."""
    table = Table(
        "Files",
        (
            Column("file", header=True),
            Column("size", number=True),
            Column("dialect"),
            Column("log_line_prefix"),
            Column("entries", number=True),
            Column("lines", number=True),
            Column("continuation lines", number=True),
            Column("not understood", number=True),
        ),
        tuple(
            (
                Value(file.name),
                bytes_cell(file.bytes),
                Value(file.dialect or "unknown"),
                Value("" if file.prefix is None else f"'{file.prefix}'", code=True),
                count_cell(file.entries),
                count_cell(file.lines),
                count_cell(file.continuations),
                count_cell(file.rejected, note=file.trouble or ""),
            )
            for file in result.files
        ),
        sortable=True,
    )
    return with_servers(table, result, (file.server for file in result.files))


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
    if not result.rejected_lines:
        return None
    return Table(
        f"Lines that belong to no entry: the first of {format_count(result.rejected)}",
        (Column("file", header=True), Column("line", number=True), Column("text")),
        tuple(
            (
                Value(rejected_line.file),
                Value("" if rejected_line.line is None else str(rejected_line.line)),
                Value(rejected_line.text, code=True),
            )
            for rejected_line in result.rejected_lines
        ),
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


# ---- lock waits in a log: who waited for whom, as a table ----


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
