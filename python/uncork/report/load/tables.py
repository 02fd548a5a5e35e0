"""The tables of a load. The terminal, Markdown and HTML share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from uncork.model.results.load import Distribution, FailureFacts, HttpFacts, LoadResult, ScriptFacts
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.load.words import (
    code_name,
    code_words,
    codes_words,
    operation_word,
    rate_text,
    share_text,
    short_sql,
)


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
    quantiles = ("p50", "p90", "p95", "p99", "p999", "p9999")
    rows: list[tuple[str, list[float | None]]] = [
        ("mean", [found.mean_ns for _, found in columns]),
        ("standard deviation", [found.stddev_ns for _, found in columns]),
        ("shortest", [found.min_ns for _, found in columns]),
        *((_percentile(name), [getattr(found, f"{name}_ns") for _, found in columns]) for name in quantiles),
        ("longest", [found.max_ns for _, found in columns]),
    ]
    return Table(
        caption,
        (Column("", header=True), *(Column(name, number=True) for name, _ in columns)),
        tuple((Value(name), *(Value(_time(value)) for value in values)) for name, values in rows),
    )


def counts_table(result: LoadResult) -> Table:
    """Return the counts of operations, with the meaning of each."""
    rows = tuple(
        (Value(name), Value(format_count(number)), Value(meaning))
        for name, number, meaning in _counts(result)
    )
    return Table(
        f"{operation_word(result).capitalize()}s counted",
        (Column("", header=True), Column("count", number=True), Column("meaning")),
        rows,
    )


def scripts_table(result: LoadResult) -> Table | None:
    """Return the scripts side by side; None for a single one."""
    if len(result.scripts) < 2:
        return None
    what = "script" if result.http is None else "request"
    seconds = result.run.elapsed_ns / 1e9
    counted = any(script.received_bytes for script in result.scripts)
    rows = tuple(
        (
            Value(script.name),
            Value(f"{script.share * 100:.3g} %"),
            Value(format_count(script.executions)),
            Value(rate_text((script.executions - script.errors) / seconds) if seconds else ""),
            Value(format_count(script.errors)),
            *_times(script.latency),
            *(_bytes_each(script) if counted else ()),
        )
        for script in result.scripts
    )
    columns = (
        *(Column(what, header=True), Column("share", number=True), Column("count", number=True)),
        *(Column("per second", number=True), Column("failed", number=True)),
        *_TIMES,
        *((Column("sent each", number=True), Column("received each", number=True)) if counted else ()),
    )
    return Table(f"{what.capitalize()}s", columns, rows)


def _bytes_each(script: ScriptFacts) -> tuple[Value, ...]:
    totals = (script.sent_bytes or 0, script.received_bytes or 0)
    return tuple(
        Value(format_bytes(total / script.executions) if script.executions else "") for total in totals
    )


def logins_table(result: LoadResult) -> Table | None:
    """Return the steps of the login; None when there are none."""
    if result.http is None or not result.http.logins:
        return None
    rows = tuple(
        (
            Value(login.name),
            Value(format_count(login.executions)),
            Value(format_count(login.errors)),
            *_times(login.latency),
        )
        for login in result.http.logins
    )
    columns = (
        *(Column("step", header=True), Column("count", number=True), Column("failed", number=True)),
        *_TIMES,
    )
    return Table("Logins, before the measured requests", columns, rows)


def statements_table(result: LoadResult) -> Table | None:
    """Return the statements with their service times; None when there are none."""
    if not result.statements:
        return None
    many = len(result.scripts) > 1
    rows = tuple(
        (
            *((Value(statement.script),) if many else ()),
            Value("" if statement.line is None else str(statement.line)),
            Value(format_count(statement.executions)),
            Value(format_count(statement.errors)),
            *_times(statement.latency),
            Value(short_sql(statement.name), code=True),
        )
        for statement in result.statements
    )
    columns = (
        *((Column("script", header=True),) if many else ()),
        Column("line", number=True),
        Column("executions", number=True),
        Column("failed", number=True),
        *_TIMES,
        Column("statement"),
    )
    return Table("Statements and their service times", columns, rows)


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
    rows = tuple(
        (Value(what), Value(code_words(code)), Value(format_count(number)))
        for what, by_code in kinds
        for code, number in sorted(by_code.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    if not rows:
        return None
    name = code_name(result)
    # If nothing succeeded, the answer has the message.
    first = f"; first message: {counts.first_error}" if counts.first_error and counts.succeeded else ""
    caption = f"Errors by {name}{first}"
    return Table(caption, (Column("what", header=True), Column(name), Column("count", number=True)), rows)


def _statement_errors(result: LoadResult) -> Table:
    """Return errors by SQLSTATE and statement, with the first message of each."""
    counts = result.counts
    rows = [
        ("transactions failed", failure.code, failure.number, _place(failure), failure.message)
        for failure in counts.failures
    ]
    for code, number in sorted(counts.errors.items()):
        rest = number - sum(failure.number for failure in counts.failures if failure.code == code)
        rows += [("transactions failed", code, rest, "other statements", "")] if rest > 0 else []
    other = (("transactions retried", counts.retries), ("connections not opened", counts.connect_errors))
    rows += [
        (what, code, number, "", "") for what, by_code in other for code, number in sorted(by_code.items())
    ]
    columns = (
        *(Column("what", header=True), Column("SQLSTATE"), Column("count", number=True)),
        *(Column("statement"), Column("first message")),
    )
    values = tuple(
        (Value(what), Value(code_words(code)), Value(format_count(n)), Value(place), Value(text))
        for what, code, n, place, text in rows
    )
    return Table("Errors by SQLSTATE and statement", columns, values)


def _place(failure: FailureFacts) -> str:
    """Return the statement that failed, on one line; nothing if no statement failed."""
    return "" if failure.statement is None else short_sql(failure.statement)


def _request_errors(result: LoadResult) -> Table:
    """Return errors by request and kind, with the first message of each."""
    rows = [
        (script.name, kind, number, script.examples.get(kind, ""))
        for script in result.scripts
        for kind, number in sorted(script.errors_by_kind.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    other = (
        ("requests retried", result.counts.retries),
        ("connections not opened", result.counts.connect_errors),
    )
    rows += [(what, kind, number, "") for what, by_kind in other for kind, number in sorted(by_kind.items())]
    columns = (
        *(Column("request", header=True), Column("kind"), Column("count", number=True)),
        Column("first message"),
    )
    values = tuple(
        (Value(name), Value(kind), Value(format_count(n)), Value(text)) for name, kind, n, text in rows
    )
    return Table("Errors by request and kind", columns, values)


def connections_table(result: LoadResult) -> Table:
    """Return how many connections were opened, lost and refused, and how long opening took."""
    found = result.connections
    pairs = [("opened", format_count(found.opened)), ("open at once, at most", format_count(found.most))]
    if found.mean_ns is not None:
        pairs += [
            ("time to open, mean", _time(found.mean_ns)),
            ("time to open, longest", _time(found.max_ns)),
        ]
    pairs.append(("lost while in use", format_count(found.lost)))
    if result.http is not None:
        pairs.append(("closed by the server", format_count(result.http.closed)))
    refused = result.counts.connect_errors
    pairs.append(("could not be opened", codes_words(refused) if refused else "0"))
    rows = tuple((Value(name), Value(text)) for name, text in pairs)
    return Table("Connections", (Column("", header=True), Column("value", number=True)), rows)


def use_table(result: LoadResult) -> Table:
    """Return bytes and processor time, in total and per operation."""
    started = result.counts.started
    rows = []
    for name, total, show in _uses(result):
        each = show(total / started) if started else ""
        rows.append((Value(name), Value(show(total)), Value(each)))
    busiest = f"{result.generator.busiest_thread * 100:.0f} %"
    rows.append((Value("busiest thread of the generator"), Value(busiest), Value("")))
    if result.generator.steal_ns:
        rows.append((Value("taken by the hypervisor"), Value(_time(result.generator.steal_ns)), Value("")))
    each = f"per {operation_word(result)}"
    columns = (Column("", header=True), Column("total", number=True), Column(each, number=True))
    return Table("Bytes and processor time", columns, tuple(rows))


_TIMES = tuple(Column(name, number=True) for name in ("mean", "p50", "p99", "longest"))


def _times(found: Distribution) -> tuple[Value, ...]:
    return tuple(Value(_time(value)) for value in (found.mean_ns, found.p50_ns, found.p99_ns, found.max_ns))


def _time(nanoseconds: float | None) -> str:
    return "" if nanoseconds is None else format_duration(nanoseconds)


def _percentile(name: str) -> str:
    digits = name[1:]
    return f"p{digits[:2]}" + (f".{digits[2:]}" if digits[2:] else "")


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
    if result.http is None or not result.http.statuses:
        return None
    total = sum(result.http.statuses.values())
    rows = tuple(
        (Value(status), Value(format_count(number)), Value(share_text(number, total)))
        for status, number in sorted(result.http.statuses.items())
    )
    columns = (Column("status", header=True), Column("count", number=True), Column("share", number=True))
    return Table("Answers by status", columns, rows)


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
