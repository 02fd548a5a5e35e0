"""What logs tell, in sentences: the answer, what supports it, what to doubt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.log_result import LogResult, TemplateFacts
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.log_blocking import blocking_reasons
from uncork.report.log_pool import pool_answer, pool_reasons
from uncork.report.quantity_words import share_text
from uncork.report.template_words import short_template
from uncork.report.words import count_words

__all__ = ["compose_log_answer", "compose_log_reasons", "compose_log_warnings"]

_DOMINANT: Final = 0.5
"""From this share of all time on, one application is named before any template."""
_REJECTED: Final = 0.01
"""More lines than this share that belong to nothing cast doubt on all figures."""
_SHOWN: Final = 3


def compose_log_answer(result: LogResult) -> str:
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
    server = result.server
    if server.lock_waits or server.still_waiting:
        waited = sum(tally.sum for tally in server.lock_waits)
        ended = sum(tally.count for tally in server.lock_waits)
        deadlocks = f", {count_words(server.deadlocks, 'deadlock')}" if server.deadlocks else ""
        yield (
            f"Sessions waited for locks: {count_words(ended, 'wait')} over deadlock_timeout that ended, "
            f"{format_duration(waited)} in all{deadlocks}."
        )
    yield from blocking_reasons(result.blocking)
    if server.temporary_files:
        count = sum(tally.count for tally in server.temporary_files)
        size = sum(tally.sum for tally in server.temporary_files)
        most = max(tally.max for tally in server.temporary_files)
        yield (
            f"{count_words(count, 'temporary file')}, {format_bytes(size)} in all, the largest "
            f"{format_bytes(most)}: sorts and hashes that did not fit work_mem."
        )
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


def _repetitions(result: LogResult) -> Iterator[str]:
    """Say which templates one session repeats, and what a single statement would save."""
    found = [(one.repetition, one) for one in result.templates if one.repetition is not None]
    found.sort(key=lambda item: -(item[0].waiting_ns + item[0].sum_ns))
    for repetition, template in found[:_SHOWN]:
        saved = repetition.executions - repetition.rows
        yield (
            f"One by one: {format_count(repetition.executions)} executions came in "
            f"{count_words(repetition.rows, 'row')} of up to {format_count(repetition.longest)} by one "
            f"session; batched, they would save {format_count(saved)} round trips and up to "
            f"{format_duration(repetition.waiting_ns)} of waiting between them: "
            f"{short_template(template.text)}"
        )


def _lists(result: LogResult) -> Iterator[str]:
    for template in result.templates[:_SHOWN]:
        if template.lists is not None and template.lists.max > 1:
            yield (
                f"Lists of {format_count(round(template.lists.mean))} on average, "
                f"{format_count(template.lists.max)} at most: {short_template(template.text)}"
            )


def _transactions(result: LogResult) -> Iterator[str]:
    for one in result.transactions[:1]:
        idle = one.elapsed_ns - one.working_ns
        if one.count and idle > one.working_ns:
            who = f" of {one.application}" if one.application else ""
            yield (
                f"{count_words(one.count, 'transaction')}{who} were open for "
                f"{format_duration(one.elapsed_ns)}, "
                f"{share_text(idle / one.elapsed_ns)} of it waiting for the client, with up to "
                f"{count_words(one.statements_max, 'statement')} each."
            )


def compose_log_warnings(result: LogResult) -> tuple[str, ...]:
    """Return what casts doubt on the figures."""
    return tuple(_warnings(result))


def _warnings(result: LogResult) -> Iterator[str]:
    for file in result.files:
        if file.trouble is not None:
            yield f"{file.name} was read only in part: {file.trouble}."
        elif file.dialect is None and file.bytes:
            yield f"{file.name} is in no dialect that is known; it was left out (-p gives log_line_prefix)."
    lines = result.entries + result.rejected
    if lines and result.rejected > _REJECTED * lines:
        share = share_text(result.rejected / lines)
        verb = "belongs" if result.rejected == 1 else "belong"
        yield (
            f"{count_words(result.rejected, 'line')} ({share}) {verb} to no entry: "
            "figures may be wrong. --rejected shows them; -p gives log_line_prefix."
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
