"""What logs tell, in sentences: the answer, what supports it, what to doubt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.log import LogResult, TemplateFacts, TransactionFacts
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.log.blocking import blocking_reasons
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
from uncork.report.template_words import short_template
from uncork.report.words import count_words

__all__ = ["answer_log", "compose_log_reasons"]

_DOMINANT: Final = 0.5
"""From this share of all time on, one application is named before any template."""
_BEGINNING: Final = 60
"""Characters shown of a line that belongs to no entry."""
_SHOWN: Final = 3


def _compose_log_answer(result: LogResult) -> str:
    """Say in one sentence where the time went; without durations, what went wrong most."""
    if not result.executions.count and result.pool is not None:
        return pool_answer(result.pool)
    if not result.executions.count:
        return _without_durations(result)
    total = format_duration(result.executions.sum_ns)
    top = result.templates[0]
    what = (
        f"{share_text(top.share)} of the {total} that statements took went to one template, run "
        f"{_often(top)}: "
        f"{short_template(top.text)}"
    )
    application = next(iter(result.applications), None)
    if (
        application is not None
        and application.share >= _DOMINANT
        and application.name
        and len(result.applications) > 1
    ):
        share = share_text(application.share)
        return f"{share} of the time came from the application {application.name}; {what}"
    return what


def _often(one: TemplateFacts) -> str:
    if one.executions == 1:
        return "once"
    return f"{format_count(one.executions)} times at {format_duration(one.mean_ns)} on average"


def _without_durations(result: LogResult) -> str:
    hint = "no durations are logged (log_min_duration_statement = 0 would log them)"
    if result.errors:
        top = result.errors[0]
        times = "once" if top.count == 1 else f"{format_count(top.count)} times"
        return f"{hint[0].upper()}{hint[1:]}; the most frequent error came {times}: {top.message}"
    return f"{hint[0].upper()}{hint[1:]}, and no errors."


def compose_log_reasons(result: LogResult) -> tuple[str, ...]:
    """Return what else stands out, the costliest first."""
    return tuple(_reasons(result))


def _reasons(result: LogResult) -> Iterator[str]:
    yield from _repetitions(result)
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
            f"{count_words(count, 'error')} of {count_words(len(errors), 'kind')}; most often "
            f"({format_count(top.count)}): {top.message}."
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
    of_time = f" ({share_text(share)} of the time of statements)" if has_durations(result) else ""
    deadlocks = f", {count_words(server.deadlocks, 'deadlock')}" if server.deadlocks else ""
    yield (
        f"Sessions waited for locks: {count_words(ended, 'wait')} over deadlock_timeout that ended, "
        f"{format_duration(waited)} in all{of_time}{deadlocks}."
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
        f"{count_words(count, 'temporary file')}, {format_bytes(size)} in all, the largest "
        f"{format_bytes(most)}: sorts and hashes that did not fit work_mem.{of_time}"
    )


def _repetitions(result: LogResult) -> Iterator[str]:
    """Say which templates one session repeats, and what a single statement would save."""
    found = [(one.repetition, one) for one in result.templates if one.repetition is not None]
    found.sort(key=lambda item: -(item[0].waiting_ns + item[0].sum_ns))
    for repetition, template in found[:_SHOWN]:
        share = repetition_share(result, repetition)
        if share < LEAST_SHARE:
            return
        saved = repetition.executions - repetition.rows
        yield (
            f"One by one: {format_count(repetition.executions)} executions came in "
            f"{count_words(repetition.rows, 'row')} of up to {format_count(repetition.longest)} by one "
            f"session. They and the waiting between them take {share_text(share)} of the time; batched, "
            f"they would save {format_count(saved)} round trips and up to "
            f"{format_duration(repetition.waiting_ns)} of waiting: "
            f"{short_template(template.text)}"
        )


def _lists(result: LogResult) -> Iterator[str]:
    for template in result.templates[:_SHOWN]:
        if template.lists is not None and template.lists.max > 1 and template.share >= LEAST_SHARE:
            yield (
                f"Lists of {format_count(round(template.lists.mean))} on average, "
                f"{format_count(template.lists.max)} at most: {short_template(template.text)}"
            )


def _transactions(result: LogResult) -> Iterator[str]:
    """Report what kept transactions open, except the waiting within rows, which is reported separately."""
    for one in sorted(result.transactions, key=between_statements_ns, reverse=True)[:1]:
        waiting, share = between_statements_ns(one), transactions_share(result, one)
        if share < LEAST_SHARE or waiting <= one.working_ns or waiting <= one.repeated_wait_ns:
            return
        who = f" of {one.application}" if one.application else ""
        was = "was" if one.count == 1 else "were"
        yield (
            f"{count_words(one.count, 'transaction')}{who} {was} open for "
            f"{format_duration(one.elapsed_ns)}, {share_text(waiting / one.elapsed_ns)} of it waiting for "
            f"the client ({share_text(share)} of the time): {_kept_open(one, waiting)}"
        )


def _kept_open(one: TransactionFacts, waiting_ns: int) -> str:
    """Tell a transaction that was forgotten from one of many statements."""
    if 2 * one.pause_ns > waiting_ns:
        return (
            f"{format_duration(one.pause_ns)} in {count_words(one.pauses, 'pause')} of over a second, the "
            f"longest {format_duration(one.pause_max_ns)}. Idle in transaction, a session keeps its locks "
            "and old row versions; end the transaction before a pause."
        )
    gaps = one.statements + one.count
    return (
        f"{format_duration((waiting_ns - one.pause_ns) / gaps)} before each statement on average, and up to "
        f"{count_words(one.statements_max, 'statement')} each. Fewer statements, one for many, shorten it."
    )


def _compose_log_warnings(result: LogResult) -> tuple[str, ...]:
    """Return what casts doubt on the figures."""
    return tuple(_warnings(result))


def _warnings(result: LogResult) -> Iterator[str]:
    for file in result.files:
        if file.trouble is not None:
            yield f"{file.name} was read only in part: {file.trouble}."
        elif file.dialect is None and file.bytes:
            yield f"{file.name} is in no dialect that is known; it was left out (-p gives log_line_prefix)."
    yield from _rejected(result)
    if result.own:
        noun, verb = ("entry", "is") if result.own == 1 else ("entries", "are")
        yield (
            f"{format_count(result.own)} {noun} of sessions with which uncork watched the server {verb} "
            "left out."
        )
    if result.run.status == "interrupted":
        yield "Reading was interrupted: the figures are those of the part that was read."
    untold, told = result.untold.count, result.executions.count
    if untold > told:
        yield (
            f"{count_words(untold, 'duration')} have no statement beside them (log_duration without "
            "log_statement): log_min_duration_statement = 0 logs both together."
        )
    if result.rare:
        yield (
            f"{count_words(result.rare, 'template')} of little time are told together, as (rare statements): "
            "there are more than 50 000."
        )
    cut = sum(one.cut for one in result.templates)
    if cut:
        yield f"The log cuts {count_words(cut, 'statement')} short: their templates may fall apart."


def _rejected(result: LogResult) -> Iterator[str]:
    """Say how many lines belong to no entry, where the first one is, and what to do."""
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
    yield f"{text}. --rejected shows them. If they are entries, give their log_line_prefix with -p."


def answer_log(result: LogResult) -> LogResult:
    """Return the result with its answer, reasons and warnings."""
    result = replace(result, warnings=_compose_log_warnings(result), reasons=compose_log_reasons(result))
    return replace(result, answer=_compose_log_answer(result))
