"""The tables of a load. The terminal, Markdown and HTML share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from uncork.model.results.load import Distribution, FailureFacts, HttpFacts, LoadResult, ScriptFacts
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.blocks import Table, Value
from uncork.report.cells import BoundColumn, column, header, number, table_if_any, table_of
from uncork.report.load.words import (
    code_name,
    code_words,
    codes_words,
    operation_word,
    rate_text,
    share_text,
    short_sql,
)
from uncork.report.quantity_words import duration_text


def latency_table(result: LoadResult) -> Table:
    """Return latencies side by side: in an open loop, from the intended start and from the actual start."""
    columns: list[tuple[str, Distribution]] = [("latency", result.operation)]
    caption = f"Latency of the {operation_word(result)}s that succeeded"
    if result.settings.open_loop:
        columns = [("from the intended start", result.operation), ("service time", result.service)]
        if result.lateness is not None:
            columns.append(("generator's lateness", result.lateness))
        caption += ": how long users wait, how long the server takes, and how late the generator itself was"
    if result.http is not None:
        columns.append(("to the first byte", result.http.first_byte))
        if result.connect.count:
            columns.append(("connect", result.connect))
        if result.http.tls is not None:
            columns.append(("of which TLS", result.http.tls))
    return table_of(
        caption,
        _STATISTICS,
        header("", lambda statistic: statistic[0]),
        *(number(title, [duration_text(read(found)) for _, read in _STATISTICS]) for title, found in columns),
    )


def counts_table(result: LoadResult) -> Table:
    """Return the counts of operations, with the meaning of each."""
    return table_of(
        f"{operation_word(result).capitalize()}s counted",
        _counts(result),
        header("", lambda counted: counted[0]),
        number("count", lambda counted: format_count(counted[1])),
        column("meaning", lambda counted: counted[2]),
    )


def scripts_table(result: LoadResult) -> Table | None:
    """Return the scripts side by side; None for a single one."""
    if len(result.scripts) < 2:
        return None
    what = "script" if result.http is None else "request"
    seconds = result.run.elapsed_ns / 1e9
    counted = any(script.received_bytes for script in result.scripts)
    return table_of(
        f"{what.capitalize()}s",
        result.scripts,
        header(what, lambda script: script.name),
        number("share", lambda script: f"{script.share * 100:.3g} %"),
        number("count", lambda script: format_count(script.executions)),
        number("per second", lambda script: _rate(script.executions - script.errors, seconds)),
        number("failed", lambda script: format_count(script.errors)),
        *_times(script.latency for script in result.scripts),
        number("sent each", lambda script: _bytes_each(script, script.sent_bytes), when=counted),
        number("received each", lambda script: _bytes_each(script, script.received_bytes), when=counted),
    )


def _rate(count: int, seconds: float) -> str:
    return rate_text(count / seconds) if seconds else ""


def _bytes_each(script: ScriptFacts, total: int | None) -> str:
    return format_bytes((total or 0) / script.executions) if script.executions else ""


def logins_table(result: LoadResult) -> Table | None:
    """Return the steps of the login; None when there are none."""
    logins = () if result.http is None else result.http.logins
    return table_if_any(
        "Logins, before the measured requests",
        logins,
        header("step", lambda login: login.name),
        number("count", lambda login: format_count(login.executions)),
        number("failed", lambda login: format_count(login.errors)),
        *_times(login.latency for login in logins),
    )


def statements_table(result: LoadResult) -> Table | None:
    """Return the statements with their service times; None when there are none."""
    return table_if_any(
        "Statements and their service times",
        result.statements,
        header("script", lambda statement: statement.script, when=len(result.scripts) > 1),
        number("line", lambda statement: "" if statement.line is None else str(statement.line)),
        number("executions", lambda statement: format_count(statement.executions)),
        number("failed", lambda statement: format_count(statement.errors)),
        *_times(statement.latency for statement in result.statements),
        column("statement", lambda statement: Value(short_sql(statement.name), code=True)),
    )


def errors_table(result: LoadResult) -> Table | None:
    """Return errors by SQLSTATE or kind; None when there are none."""
    counts = result.counts
    if len(result.scripts) > 1 and any(script.errors_by_kind for script in result.scripts):
        return _request_errors(result)
    if counts.failures:
        return _statement_errors(result)
    kinds = (
        (f"{operation_word(result)}s failed", counts.errors),
        (f"{operation_word(result)}s retried", counts.retries),
        ("connections not opened", counts.connect_errors),
    )
    # If nothing succeeded, the answer has the message.
    first = f"; first message: {counts.first_error}" if counts.first_error and counts.succeeded else ""
    return table_if_any(
        f"Errors by {code_name(result)}{first}",
        [(what, code, times) for what, by_code in kinds for code, times in _most_frequent(by_code)],
        header("what", lambda error: error[0]),
        column(code_name(result), lambda error: code_words(error[1])),
        number("count", lambda error: format_count(error[2])),
    )


def _most_frequent(by_code: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return codes with their counts, the most frequent first."""
    return sorted(by_code.items(), key=lambda counted: (-counted[1], counted[0]))


def _statement_errors(result: LoadResult) -> Table:
    """Return errors by SQLSTATE and statement, with the first message of each."""
    counts = result.counts
    rows = [
        ("transactions failed", failure.code, failure.number, _place(failure), failure.message)
        for failure in counts.failures
    ]
    for code, times in sorted(counts.errors.items()):
        rest = times - sum(failure.number for failure in counts.failures if failure.code == code)
        rows += [("transactions failed", code, rest, "other statements", "")] if rest > 0 else []
    other = (("transactions retried", counts.retries), ("connections not opened", counts.connect_errors))
    rows += [
        (what, code, times, "", "") for what, by_code in other for code, times in sorted(by_code.items())
    ]
    return table_of(
        "Errors by SQLSTATE and statement",
        rows,
        header("what", lambda error: error[0]),
        column("SQLSTATE", lambda error: code_words(error[1])),
        number("count", lambda error: format_count(error[2])),
        column("statement", lambda error: error[3]),
        column("first message", lambda error: error[4]),
    )


def _place(failure: FailureFacts) -> str:
    """Return the statement that failed, on one line; nothing if no statement failed."""
    return "" if failure.statement is None else short_sql(failure.statement)


def _request_errors(result: LoadResult) -> Table:
    """Return errors by request and kind, with the first message of each."""
    rows = [
        (script.name, kind, times, script.examples.get(kind, ""))
        for script in result.scripts
        for kind, times in _most_frequent(script.errors_by_kind)
    ]
    other = (
        ("requests retried", result.counts.retries),
        ("connections not opened", result.counts.connect_errors),
    )
    rows += [(what, kind, times, "") for what, by_kind in other for kind, times in sorted(by_kind.items())]
    return table_of(
        "Errors by request and kind",
        rows,
        header("request", lambda error: error[0]),
        column("kind", lambda error: error[1]),
        number("count", lambda error: format_count(error[2])),
        column("first message", lambda error: error[3]),
    )


def connections_table(result: LoadResult) -> Table:
    """Return how many connections were opened, lost and refused, and how long opening took."""
    found = result.connections
    pairs = [("opened", format_count(found.opened)), ("open at once, at most", format_count(found.most))]
    if found.mean_ns is not None:
        pairs += [
            ("time to open, mean", duration_text(found.mean_ns)),
            ("time to open, longest", duration_text(found.max_ns)),
        ]
    pairs.append(("lost while in use", format_count(found.lost)))
    if result.http is not None:
        pairs.append(("closed by the server", format_count(result.http.closed)))
    refused = result.counts.connect_errors
    pairs.append(("could not be opened", codes_words(refused) if refused else "0"))
    return table_of(
        "Connections",
        pairs,
        header("", lambda pair: pair[0]),
        number("value", lambda pair: pair[1]),
    )


def use_table(result: LoadResult) -> Table:
    """Return bytes and processor time, in total and per operation."""
    started, generator = result.counts.started, result.generator
    rows = [
        (name, show(total), show(total / started) if started else "") for name, total, show in _uses(result)
    ]
    rows.append(("busiest thread of the generator", f"{generator.busiest_thread * 100:.0f} %", ""))
    if generator.steal_ns:
        rows.append(("taken by the hypervisor", duration_text(generator.steal_ns), ""))
    return table_of(
        "Bytes and processor time",
        rows,
        header("", lambda use: use[0]),
        number("total", lambda use: use[1]),
        number(f"per {operation_word(result)}", lambda use: use[2]),
    )


def _times(latencies: Iterable[Distribution]) -> Iterator[BoundColumn[Any]]:
    """Yield the columns of service times, with one cell for each distribution."""
    found = list(latencies)
    yield number("mean", [duration_text(latency.mean_ns) for latency in found])
    yield number("p50", [duration_text(latency.p50_ns) for latency in found])
    yield number("p99", [duration_text(latency.p99_ns) for latency in found])
    yield number("longest", [duration_text(latency.max_ns) for latency in found])


_STATISTICS: Final[tuple[tuple[str, Callable[[Distribution], float | None]], ...]] = (
    ("mean", lambda found: found.mean_ns),
    ("standard deviation", lambda found: found.stddev_ns),
    ("shortest", lambda found: found.min_ns),
    ("p50", lambda found: found.p50_ns),
    ("p90", lambda found: found.p90_ns),
    ("p95", lambda found: found.p95_ns),
    ("p99", lambda found: found.p99_ns),
    ("p99.9", lambda found: found.p999_ns),
    ("p99.99", lambda found: found.p9999_ns),
    ("longest", lambda found: found.max_ns),
)


def _counts(result: LoadResult) -> Iterator[tuple[str, int, str]]:
    counts, settings, http = result.counts, result.settings, result.http
    if http is not None and http.planned is not None and counts.arrivals is None:
        yield "planned", http.planned, "started and not started"
    if counts.arrivals is not None:
        yield "arrived", counts.arrivals, "intended starts: started, skipped and never sent"
    yield "started", counts.started, "succeeded and failed"
    yield "succeeded", counts.succeeded, share_text(counts.succeeded, counts.started)
    yield "failed", counts.failed, share_text(counts.failed, counts.started)
    if http is not None:
        yield from _failures(http)
    if counts.arrivals is not None:
        yield "skipped", counts.skipped, "late by more than the latency limit before they could start"
        yield "never sent", counts.unsent, "no connection became free before the end"
    if settings.latency_limit_ns is not None:
        limit = format_duration(settings.latency_limit_ns)
        yield "late", counts.late, f"succeeded, but took longer than {limit}"
    if settings.max_tries != 1 or counts.retried:
        yield "retried", counts.retried, f"{sum(counts.retries.values())} retries in total"
    if http is not None:
        return
    yield "statements", counts.statements, f"in {format_count(counts.round_trips)} round trips"
    yield "rows", counts.rows, "returned or changed"


def _failures(http: HttpFacts) -> Iterator[tuple[str, int, str]]:
    yield "… bad answer", http.failed, "wrong status, or a check failed"
    yield "… no answer", http.errored, "refused, reset, closed, …: see the kinds of errors"
    yield "… timed out", http.timed_out, "answer not complete in time (--timeout)"
    yield "… cut short", http.cut_short, "under way when the load ended"
    yield (
        "not processed",
        http.unprocessed,
        "certainly; other requests without an answer may have been processed",
    )
    if http.stalls.answers:
        yield "paused", http.stalls.answers, "answers that paused midway for 35 to 50 ms"


def answers_table(result: LoadResult) -> Table | None:
    """Return the answers of an HTTP load by status; None when there are none."""
    statuses = {} if result.http is None else result.http.statuses
    total = sum(statuses.values())
    return table_if_any(
        "Answers by status",
        sorted(statuses.items()),
        header("status", lambda answers: answers[0]),
        number("count", lambda answers: format_count(answers[1])),
        number("share", lambda answers: share_text(answers[1], total)),
    )


def _uses(result: LoadResult) -> Iterator[tuple[str, float, Callable[[float], str]]]:
    counts, generator = result.counts, result.generator
    yield "sent", counts.sent_bytes, format_bytes
    yield "received", counts.received_bytes, format_bytes
    if result.http is not None:
        http = result.http
        rest = max(0, counts.received_bytes - http.header_bytes - http.body_bytes)
        yield "… of which headers", http.header_bytes, format_bytes
        yield "… headers decompressed", http.header_plain_bytes, format_bytes
        yield "… bodies", http.body_bytes, format_bytes
        yield "… the rest: framing, encryption", rest, format_bytes
    yield "generator, user mode", generator.user_ns, format_duration
    yield "generator, in the kernel", generator.system_ns, format_duration
    if generator.server_user_ns is not None and generator.server_system_ns is not None:
        yield "server, user mode", generator.server_user_ns, format_duration
        yield "server, in the kernel", generator.server_system_ns, format_duration
