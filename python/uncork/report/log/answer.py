"""The sentences of a report on logs: the answer, the findings that support it, the warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.log import LogResult, TemplateFacts, TransactionFacts
from uncork.model.template_words import short_template
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.headline import headline_template, join_sentences
from uncork.report.log.blocking import blocking_reasons
from uncork.report.log.filters import filter_words
from uncork.report.log.loops import loop_reasons
from uncork.report.log.pool import pool_answer, pool_reasons
from uncork.report.log.shares import (
    LEAST_SHARE,
    between_statements_ns,
    files_share,
    has_durations,
    locks_share,
    repetition_share,
    transactions_share,
)
from uncork.report.quantity_words import share_text
from uncork.report.words import count_words

__all__ = ["answer_log", "compose_log_reasons"]

_DOMINANT: Final = 0.5
"""Share of all time from which on the answer names the application before the template."""
_BEGINNING: Final = 60
"""Characters shown of a line that belongs to no entry."""
_SHOWN: Final = 3


def _compose_log_answer(result: LogResult) -> str:
    """Return where the time went: the template first; without durations, the most frequent error."""
    if not result.executions.count and result.pool is not None:
        return pool_answer(result.pool)
    if not result.executions.count:
        return _without_durations(result)
    total = format_duration(result.executions.sum_ns)
    top = result.templates[0]
    headline = f"{headline_template(top.text)} took {share_text(top.share)} of {total} of statement time"
    rest = [f"It had {_often(top)}"]
    application = next(iter(result.applications), None)
    if (
        application is not None
        and application.share >= _DOMINANT
        and application.name
        and len(result.applications) > 1
    ):
        rest.append(f"Application {application.name} took {share_text(application.share)} of the time")
    return join_sentences((headline, *rest))


def _often(one: TemplateFacts) -> str:
    if one.executions == 1:
        return "1 execution"
    return f"{format_count(one.executions)} executions of {format_duration(one.mean_ns)} on average"


def _without_durations(result: LogResult) -> str:
    hint = "Set log_min_duration_statement = 0 to log durations"
    if result.errors:
        top = result.errors[0]
        times = "once" if top.count == 1 else f"{format_count(top.count)} times"
        found = f"The most frequent error occurred {times}: {top.message}"
        return join_sentences(("The log has no durations, so only its errors are known", found, hint))
    return join_sentences(("The log has no durations and no errors", hint))


def compose_log_reasons(result: LogResult) -> tuple[str, ...]:
    """Return the other findings, the costliest first."""
    return tuple(_reasons(result))


def _reasons(result: LogResult) -> Iterator[str]:
    yield from _repetitions(result)
    yield from loop_reasons(result)
    yield from _lists(result)
    yield from _locks(result)
    yield from _files(result)
    if result.pool is not None:
        yield from pool_reasons(result.pool)
    errors = [one for one in result.errors if one.severity != "WARNING"]
    if errors and (result.executions.count or result.pool is not None):
        count = sum(one.count for one in errors)
        top = errors[0]
        yield (
            f"{count_words(count, 'error')} of {count_words(len(errors), 'kind')}; the most frequent "
            f"({format_count(top.count)} ×): {top.message}."
        )
    yield from _transactions(result)


def _locks(result: LogResult) -> Iterator[str]:
    server, share = result.server, locks_share(result)
    if not server.lock_waits and not server.still_waiting:
        return
    # A deadlock, and a wait that never ended, cost more than their time.
    if has_durations(result) and share < LEAST_SHARE and not server.deadlocks and not server.still_waiting:
        return
    waited = sum(tally.sum for tally in server.lock_waits)
    ended = sum(tally.count for tally in server.lock_waits)
    of_time = f" ({share_text(share)} of statement time)" if has_durations(result) else ""
    deadlocks = f", {count_words(server.deadlocks, 'deadlock')}" if server.deadlocks else ""
    yield (
        f"Sessions waited for locks: {count_words(ended, 'completed wait')} longer than deadlock_timeout, "
        f"{format_duration(waited)} in total{of_time}{deadlocks}."
    )
    yield from blocking_reasons(result.blocking)


def _files(result: LogResult) -> Iterator[str]:
    files, share = result.server.temporary_files, files_share(result)
    if not files or (has_durations(result) and share < LEAST_SHARE):
        return
    count = sum(tally.count for tally in files)
    size = sum(tally.sum for tally in files)
    most = max(tally.max for tally in files)
    of_time = f" The templates that wrote them took {share_text(share)} of the time." if share else ""
    yield (
        f"Sorts and hashes that did not fit work_mem wrote {count_words(count, 'temporary file')}, "
        f"{format_bytes(size)} in total, at most {format_bytes(most)} each.{of_time}"
    )


def _repetitions(result: LogResult) -> Iterator[str]:
    """Yield templates that single sessions repeat, with what one statement instead would save."""
    found = [(one.repetition, one) for one in result.templates if one.repetition is not None]
    found.sort(key=lambda item: -(item[0].waiting_ns + item[0].sum_ns))
    for repetition, template in found[:_SHOWN]:
        share = repetition_share(result, repetition)
        if share < LEAST_SHARE:
            return
        saved = repetition.executions - repetition.rows
        yield (
            f"One by one: single sessions sent {format_count(repetition.executions)} executions of one "
            f"template in {count_words(repetition.rows, 'sequence')} of up to "
            f"{format_count(repetition.longest)}. With the waits in between they take {share_text(share)} of "
            f"the time; batching them would save {format_count(saved)} round trips and up to "
            f"{format_duration(repetition.waiting_ns)} of waiting: "
            f"{short_template(template.text)}"
        )


def _lists(result: LogResult) -> Iterator[str]:
    for template in result.templates[:_SHOWN]:
        if template.lists is not None and template.lists.max > 1 and template.share >= LEAST_SHARE:
            yield (
                f"Lists hold {format_count(round(template.lists.mean))} values on average, at most "
                f"{format_count(template.lists.max)}: {short_template(template.text)}"
            )


def _transactions(result: LogResult) -> Iterator[str]:
    """Yield what kept transactions open, except waits within sequences, which are reported separately."""
    for one in sorted(result.transactions, key=between_statements_ns, reverse=True)[:1]:
        waiting, share = between_statements_ns(one), transactions_share(result, one)
        if share < LEAST_SHARE or waiting <= one.working_ns or waiting <= one.repeated_wait_ns:
            return
        who = f" of {one.application}" if one.application else ""
        was = "was" if one.count == 1 else "were"
        yield (
            f"{count_words(one.count, 'transaction')}{who} {was} open for "
            f"{format_duration(one.elapsed_ns)} in total, {share_text(waiting / one.elapsed_ns)} of it "
            f"waiting for the client ({share_text(share)} of the time): {_kept_open(one, waiting)}"
        )


def _kept_open(one: TransactionFacts, waiting_ns: int) -> str:
    """Describe what kept transactions open: long pauses, or many statements."""
    if 2 * one.pause_ns > waiting_ns:
        return (
            f"{format_duration(one.pause_ns)} in {count_words(one.pauses, 'pause')} of over a second, the "
            f"longest {format_duration(one.pause_max_ns)}. Idle in transaction, a session holds its locks "
            "and keeps VACUUM from removing dead rows: end the transaction before a pause."
        )
    gaps = one.statements + one.count
    return (
        f"{format_duration((waiting_ns - one.pause_ns) / gaps)} before each statement on average, and up to "
        f"{count_words(one.statements_max, 'statement')} per transaction. Combine statements to shorten it."
    )


def _compose_log_warnings(result: LogResult) -> tuple[str, ...]:
    """Return the reasons to trust the numbers less."""
    return tuple(_warnings(result))


def _warnings(result: LogResult) -> Iterator[str]:
    if result.skipped:
        names = ", ".join(result.skipped[:_SHOWN]) + (" and more" if len(result.skipped) > _SHOWN else "")
        one = len(result.skipped) == 1
        skipped, them = ("is not a log and was", "it") if one else ("are not logs and were", "them")
        yield (
            f"{count_words(len(result.skipped), 'file')} {skipped} skipped: {names}. To read {them} anyway, "
            f"name {them} instead of the folder."
        )
    for file in result.files:
        if file.trouble is not None:
            yield f"{file.name} was read only in part: {file.trouble}."
        elif file.dialect is None and file.bytes:
            yield (
                f"{file.name} has an unknown log format and was skipped; if it is a PostgreSQL log, give its "
                "log_line_prefix with -p."
            )
    yield from _rejected(result)
    if result.untimed:
        one = result.untimed == 1
        noun, verb, counts = ("entry", "has", "it is") if one else ("entries", "have", "they are")
        yield (
            f"{format_count(result.untimed)} {noun} {verb} no time and cannot be within the time range, so "
            f"{counts} not counted; log_line_prefix needs %m."
        )
    filtered = filter_words(result)
    if filtered:
        yield filtered
    if result.own:
        noun, verb = ("entry", "is") if result.own == 1 else ("entries", "are")
        yield (
            f"{format_count(result.own)} {noun} of sessions with which uncork watched the server {verb} not "
            "counted."
        )
    if result.run.status == "interrupted":
        yield "Reading was interrupted: the numbers cover only the part that was read."
    without, executed = result.untold.count, result.executions.count
    if without > executed:
        yield (
            f"{count_words(without, 'duration')} have no statement (log_duration without log_statement): set "
            "log_min_duration_statement = 0, which logs both together."
        )
    if result.rare:
        yield (
            f"{count_words(result.rare, 'template')} of little time are grouped as (rare statements), "
            "because the log has more than 50 000 templates."
        )
    cut = sum(one.cut for one in result.templates)
    if cut:
        yield (
            f"The log truncates {count_words(cut, 'statement')}, so one statement may appear as several "
            "templates."
        )


def _rejected(result: LogResult) -> Iterator[str]:
    """Yield how many lines belong to no entry, where the first one is, and what to do."""
    if not result.rejected:
        return
    lines = sum(one.lines for one in result.files) or result.entries + result.rejected
    belongs, counts = ("belongs", "is") if result.rejected == 1 else ("belong", "are")
    text = (
        f"{format_count(result.rejected)} of {count_words(lines, 'line')} "
        f"({share_text(result.rejected / lines)}) {belongs} to no entry and {counts} not counted"
    )
    if result.rejected_lines:
        first = result.rejected_lines[0]
        number = "" if first.line is None else f":{first.line}"
        more = "…" if len(first.text) > _BEGINNING else ""
        shown = f": {first.text[:_BEGINNING]}{more}" if first.text else ""
        text += f"; the first is {first.file}{number}{shown}"
        prefix = next((one.prefix for one in result.files if one.name == first.file), None)
        if prefix is not None:
            text += f" (the file was read with -p '{prefix}')"
    yield f"{text}. --rejected lists them. If they are log entries, give their log_line_prefix with -p."


def answer_log(result: LogResult) -> LogResult:
    """Return the result with its answer, reasons and warnings."""
    result = replace(result, warnings=_compose_log_warnings(result), reasons=compose_log_reasons(result))
    return replace(result, answer=_compose_log_answer(result))
