"""The tables of a load and its parts, and the sentences beside them. All writers share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from uncork.model.results.load import (
    Distribution,
    LoadResult,
    LoadStep,
    LoadStepName,
    PartFacts,
    PartsFacts,
    ScriptFacts,
    StepGap,
)
from uncork.model.units import (
    count_words,
    format_bytes,
    format_count,
    format_duration,
    series_words,
    share_text,
)
from uncork.report.blocks import Table, Value
from uncork.report.cells import (
    BoundColumn,
    column,
    duration_cell,
    header,
    number,
    share_cell,
    table_if_any,
    table_of,
)
from uncork.report.load.words import code_name, code_words, codes_words, operation_word, short_sql
from uncork.report.words import duration_text, part_text, rate_text


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
    """Return errors by SQLSTATE or kind, and by statement or request as far as known; None without errors."""
    counts, word, name = result.counts, operation_word(result), code_name(result)
    failed = f"{word}s failed"
    others = ((f"{word}s retried", counts.retries), ("connections not opened", counts.connect_errors))
    rest = [(what, code, times, "", "") for what, found in others for code, times in sorted(found.items())]
    by_request = len(result.scripts) > 1 and any(script.errors_by_kind for script in result.scripts)
    if by_request:
        title = "Errors by request and kind"
        rows = [
            (script.name, kind, times, "", script.examples.get(kind, ""))
            for script in result.scripts
            for kind, times in _most_frequent(script.errors_by_kind)
        ] + rest
    elif counts.failures:
        title = "Errors by SQLSTATE and statement"
        rows = [
            (failed, failure.code, failure.number, short_sql(failure.statement or ""), failure.message)
            for failure in counts.failures
        ]
        for code, times in sorted(counts.errors.items()):
            other = times - sum(failure.number for failure in counts.failures if failure.code == code)
            rows += [(failed, code, other, "other statements", "")] if other > 0 else []
        rows += rest
    else:
        # If nothing succeeded, the answer has the message.
        first = f"; first message: {counts.first_error}" if counts.first_error and counts.succeeded else ""
        title = f"Errors by {name}{first}"
        kinds = ((failed, counts.errors), *others)
        rows = [(what, code, times, "", "") for what, found in kinds for code, times in _most_frequent(found)]
    detailed = by_request or bool(counts.failures)
    return table_if_any(
        title,
        rows,
        header("request" if by_request else "what", lambda error: error[0]),
        column(name, lambda error: code_words(error[1])),
        number("count", lambda error: format_count(error[2])),
        column("statement", lambda error: error[3], when=detailed and not by_request),
        column("first message", lambda error: error[4], when=detailed),
    )


def _most_frequent(by_code: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(by_code.items(), key=lambda counted: (-counted[1], counted[0]))


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
    yield "succeeded", counts.succeeded, part_text(counts.succeeded, counts.started)
    yield "failed", counts.failed, part_text(counts.failed, counts.started)
    if http is not None:
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


def answers_table(result: LoadResult) -> Table | None:
    """Return the answers of an HTTP load by status; None when there are none."""
    statuses = {} if result.http is None else result.http.statuses
    total = sum(statuses.values())
    return table_if_any(
        "Answers by status",
        sorted(statuses.items()),
        header("status", lambda answers: answers[0]),
        number("count", lambda answers: format_count(answers[1])),
        number("share", lambda answers: part_text(answers[1], total)),
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


_LATE_NS: Final = 50_000_000
"""A part that starts later than this after its start time is named: a twentieth of an interval."""
_STEP_NS: Final = 10_000_000
"""A clock whose offset changes by more than this was set; quartz drifts by 3 ms a minute at most."""
_APART_NS: Final = 1_000_000_000
"""Parts without a start time that begin farther apart than this are named: their seconds do not coincide."""


def parts_reasons(result: LoadResult) -> Iterator[str]:
    """Yield what to know about the parts, one sentence each, the gravest first."""
    found = result.parts
    if found is None:
        return
    yield from _lost(result, found)
    yield from _limits(found)
    for part in found.parts:
        if part.disagrees:
            factors = series_words(
                [f"{name} is {by:.2g} times as high" for name, by in part.disagrees.items()], "and"
            )
            yield f"{_part_name(part)} disagrees with the others: its {factors}."
    for part in found.parts:
        if part.start_late_ns is not None and part.start_late_ns > _LATE_NS:
            late = format_duration(part.start_late_ns)
            yield f"{_part_name(part)} started {late} after its start time: it was not ready before."
    for part in found.parts:
        drift, bound = part.clock_drift_ns, part.clock_bound_ns
        if drift is not None and bound is not None and abs(drift) > _STEP_NS + bound:
            yield (
                f"{_part_name(part)} had its clock set by {format_duration(abs(drift))} during the load: its "
                "seconds may not coincide with those of the others."
            )
    apart = max((part.began_after_ns or 0 for part in found.parts if part.start_late_ns is None), default=0)
    if apart > _APART_NS:
        yield (
            f"The parts began up to {format_duration(apart)} apart by the clocks of their machines; "
            "--start-at starts them together."
        )


def _lost(result: LoadResult, found: PartsFacts) -> Iterator[str]:
    word = operation_word(result)
    for part in found.parts:
        if part.lost is not None:
            yield _lost_sentence(part, found, word)
        elif part.ended == "missing":
            unknown = "" if part.unknown is None else count_words(part.unknown, word)
            sent = f": up to {unknown} may have been sent" if unknown else ""
            yield f"Part {part.number} of {found.count} is missing{sent}."
        elif part.ended == "killed":
            yield (
                f"{_part_name(part)} was killed after second {part.seconds:.0f}: "
                f"{count_words(part.started, word)} are counted, up to {format_count(part.unknown or 0)} "
                f"more may have been sent. From then on, the load came from {found.count - 1} of "
                f"{found.count} parts."
            )
        elif part.ended != "complete":
            yield f"{_part_name(part)} ended early, at second {part.seconds:.0f}: {part.ended}."


def _lost_sentence(part: PartFacts, found: PartsFacts, word: str) -> str:
    second = part.lost_s or 0.0
    gone = [other for other in found.parts if other.lost_s is not None and other.lost_s <= second]
    unknown = (
        "how many more were sent is not known"
        if part.unknown is None
        else f"up to {format_count(part.unknown)} more may have been sent"
    )
    return (
        f"{_part_name(part)} was lost at second {second:.0f} ({part.lost}): "
        f"{count_words(part.started, word)} are counted, {unknown}. "
        f"From then on, the load came from {found.count - len(gone)} of {found.count} nodes."
    )


def _limits(found: PartsFacts) -> Iterator[str]:
    known = [part for part in found.parts if part.limit is not None]
    limited = [part for part in known if part.limit == "yes"]
    perhaps = [part for part in known if part.limit == "perhaps"]
    if limited:
        names = series_words([str(part.number) for part in limited], "and")
        sentence = f"{len(limited)} of {found.count} generators were the limit (part {names})"
        if found.without is not None:
            rate, p50, p99 = found.without
            sentence += f"; without them: {rate_text(rate)} a second, "
            sentence += f"p50 {duration_text(p50)}, p99 {duration_text(p99)}"
        yield f"{sentence}."
    elif perhaps:
        yield f"{len(perhaps)} of {found.count} generators were perhaps the limit."
    elif known:
        yield f"None of the {count_words(len(known), 'generator')} was the limit."


def parts_table(result: LoadResult) -> Table | None:
    """Return the parts side by side, with accounts that close; None if the load was not merged."""
    found = result.parts
    if found is None:
        return None
    parts, whole = found.parts, result.operation
    limits = {"yes": "the limit", "perhaps": "perhaps the limit", "no": "not the limit"}

    def of_parts(read: Callable[[PartFacts], str], total: str = "") -> list[str]:
        return [*map(read, parts), total]

    def counts(read: Callable[[PartFacts], int | None]) -> list[str]:
        return of_parts(lambda part: _count_text(read(part)), _sum_text([read(part) for part in parts]))

    return table_of(
        f"Parts: planned {operation_word(result)}s are started, not started or unknown",
        range(len(parts) + 1),
        header("part", of_parts(lambda part: f"{part.number}/{found.count}", "all")),
        column("machine", of_parts(lambda part: part.host)),
        column("ended", of_parts(_ended)),
        number("planned", counts(lambda part: part.planned)),
        number("started", counts(lambda part: part.started)),
        number("not started", counts(lambda part: part.not_started)),
        number("unknown", counts(lambda part: part.unknown)),
        number("per second", of_parts(_part_rate, rate_text(result.operations_per_second))),
        number("p50", of_parts(lambda part: duration_text(part.p50_ns), duration_text(whole.p50_ns))),
        number("p99", of_parts(lambda part: duration_text(part.p99_ns), duration_text(whole.p99_ns))),
        number("clock", of_parts(_clock), when=any(part.clock_bound_ns is not None for part in parts)),
        column("generator", of_parts(lambda part: limits.get(part.limit or "", ""))),
        column("run", of_parts(lambda part: part.run or "")),
    )


def _part_rate(part: PartFacts) -> str:
    return rate_text(part.operations_per_second)


def _ended(part: PartFacts) -> str:
    done = part.ended in ("complete", "missing")
    return part.ended if done else f"{part.ended}, second {part.seconds:.0f}"


def _part_name(part: PartFacts) -> str:
    return f"Part {part.number} on {part.host}" if part.host else f"Part {part.number}"


def _clock(part: PartFacts) -> str:
    """Return how far the node's clock was ahead of the coordinator's, with the bound of that."""
    if part.clock_offset_ns is None or part.clock_bound_ns is None:
        return ""
    offset_ms, bound_ms = part.clock_offset_ns / 1e6, part.clock_bound_ns / 1e6
    sign = "−" if offset_ms < 0 else "+"
    return f"{sign}{abs(offset_ms):.1f} ± {bound_ms:.1f} ms"


def _count_text(value: int | None) -> str:
    return "" if value is None else format_count(value)


def _sum_text(values: Sequence[int | None]) -> str:
    known = [value for value in values if value is not None]
    return format_count(sum(known)) if len(known) == len(values) else ""


_NAMES: Final[Mapping[LoadStepName, str]] = {
    "generator": "in the generator",
    "pool": "waiting for a connection of PgBouncer",
    "network": "network and protocol",
    "parse": "parsing",
    "bind": "binding",
    "plan": "planning",
    "locks": "waiting for locks",
    "storage": "reading and writing",
    "execute": "executing",
    "commit": "waiting for the write-ahead log",
    "server": "in the server otherwise",
    "unknown": "unknown",
}
_NOTES: Final[Mapping[LoadStepName, str]] = {
    "generator": "between statements",
    "pool": "its console",
    "network": "at least: empty statements, without load",
    "parse": "the server's log",
    "plan": "pg_stat_statements",
    "locks": "samples: within statements",
    "storage": "samples: within statements",
    "execute": "pg_stat_statements, without these waits",
    "commit": "samples: commits",
}
_LEAST_SHARE: Final = 0.25
"""Share of a transaction from which on the wait for PgBouncer is worth a sentence."""


def steps_table(result: LoadResult) -> Table | None:
    """Return where the time of a transaction went; None unless the load was watched."""
    notes = {**_NOTES, **dict(_rest_notes({step.name for step in result.steps}))}
    return table_if_any(
        f"Where the time of a transaction went, {format_duration(sum(step.ns for step in result.steps))} on "
        "average, while the load was sent again",
        result.steps,
        header("step", lambda step: Value(_NAMES[step.name], note=notes.get(step.name, ""))),
        number("each", lambda step: duration_cell(step.ns)),
        number("share", lambda step: share_cell(step.share)),
    )


def _rest_notes(names: set[LoadStepName]) -> Iterator[tuple[LoadStepName, str]]:
    """Yield the notes of the steps that contain planning and parsing unless these are steps themselves."""
    planned, parsed = "plan" in names, "parse" in names
    yield "bind", "the server's log, without planning" if planned else "the server's log, with planning"
    inside = (*(() if parsed else ("parsing",)), *(() if planned or parsed else ("planning",)))
    yield "server", f"samples: {', '.join((*inside, 'sending results', 'waiting for a processor'))}"


def waits_for_pool(result: LoadResult) -> LoadStep | None:
    """Return the wait for a connection of PgBouncer if it is the largest step, and a large one."""
    most = max(result.steps, key=lambda step: step.ns, default=None)
    return most if most is not None and most.name == "pool" and most.share >= _LEAST_SHARE else None


def pool_sentence(result: LoadResult) -> str | None:
    """Return how long transactions wait for PgBouncer, if that is where most of their time goes."""
    wait = waits_for_pool(result)
    if wait is None:
        return None
    return (
        f"A transaction waits {format_duration(wait.ns)} for a connection of PgBouncer, "
        f"{share_text(wait.share)} of its time: the pool has fewer connections than the load has clients."
    )


def step_gap_sentences(result: LoadResult) -> tuple[str, ...]:
    """Return which steps are unknown, and how to see them."""
    return tuple(_gap_sentence(step_gap) for step_gap in result.step_gaps)


def _gap_sentence(gap: StepGap) -> str:
    sent = f"{format_count(gap.seen or 0)} statements, the load sent {format_count(gap.sent or 0)}"
    if gap.name == "pool":
        begin = "The wait for a connection of the pooler is part of the unknown rest"
        part = f"PgBouncer counted {sent}"
        end = {
            "no source": ": to see it, add --pooler with the console of PgBouncer, and --postgres with the "
            "server behind it.",
            "incomplete": f". {part}: check that the load connects to the PgBouncer whose console --pooler "
            "names.",
            "others": f". {part}: repeat the load while no other clients use this database of PgBouncer.",
        }
        return begin + end[gap.reason]
    begin, part = "The time of parsing is not a step of its own", f"The log has {sent}"
    end = {
        "no source": ": to see it, add --logs with the server's log. It needs log_min_duration_statement = "
        "0, which takes time from the server too.",
        "simple protocol": ": with the simple protocol, the server's log has one duration for parsing and "
        "executing. -M extended with --logs separates them.",
        "incomplete": f". {part}: set log_min_duration_statement = 0 and log_statement_sample_rate = 1.",
        "others": f". {part}: repeat the load while no other clients use the server.",
        "unlabelled": ": log_duration does not write what took the time. Set log_min_duration_statement = 0 "
        "instead.",
    }
    return begin + end[gap.reason]
