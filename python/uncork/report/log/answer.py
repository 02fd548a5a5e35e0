"""The sentences of a report on logs: the answer, the findings that support it, the warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.costly_parts import unexplained_part
from uncork.model.results.log import LogResult, TemplateFacts
from uncork.model.units import format_count, format_duration
from uncork.report.findings import costly_words, finding_headline, finding_sentence, nothing_found_words
from uncork.report.headline import fitting, headline_template, join_sentences
from uncork.report.log.order import order_warnings
from uncork.report.log.pool import pool_answer, pool_reasons
from uncork.report.quantity_words import share_text
from uncork.report.words import count_words

_DOMINANT: Final = 0.5
"""Share of all time from which on the answer names the application before the template."""
_STANDS_OUT: Final = 0.05
"""Share of all time from which on a template is named in the headline; below it, the time is spread."""
_BEGINNING: Final = 60
"""Characters shown of a line that belongs to no entry."""
_SHOWN: Final = 3


def _compose_log_answer(result: LogResult) -> str:
    """Return what is wrong, else where the time went; without durations, the most frequent error."""
    if not result.executions.count and result.pool is not None:
        return pool_answer(result.pool)
    if not result.executions.count:
        return _without_durations(result)
    total = format_duration(result.executions.sum_ns)
    top = result.templates[0]
    if top.share >= _STANDS_OUT:
        headline = f"{headline_template(top.text)} took {share_text(top.share)} of {total} of statement time"
        rest = [f"It had {_often(top)}"]
    else:
        templates = count_words(len(result.templates) + result.templates_more, "template")
        headline = f"None of {templates} took more than {share_text(top.share)} of {total} of statement time"
        rest = [f"The costliest, {headline_template(top.text)}, had {_often(top)}"]
    application = next(iter(result.applications), None)
    if (
        application is not None
        and application.share >= _DOMINANT
        and application.name
        and len(result.applications) > 1
    ):
        rest.append(f"Application {application.name} took {share_text(application.share)} of the time")
    answer = join_sentences((headline, *rest))
    first = next((finding for finding in result.findings if finding.bill is not None), None)
    if first is None:
        return answer
    return fitting(((finding_headline(first), answer), (first.headline, answer)))


def _often(template: TemplateFacts) -> str:
    if template.executions == 1:
        return "1 execution"
    return f"{format_count(template.executions)} executions of {format_duration(template.mean_ns)} on average"


def _without_durations(result: LogResult) -> str:
    hint = "Set log_min_duration_statement = 0 to log durations"
    if result.errors:
        top = result.errors[0]
        times = "once" if top.count == 1 else f"{format_count(top.count)} times"
        found = f"The most frequent error occurred {times}: {top.message}"
        return join_sentences(("The log has no durations, so only its errors are known", found, hint))
    return join_sentences(("The log has no durations and no errors", hint))


def _reasons(result: LogResult) -> Iterator[str]:
    """Yield the findings, the costliest first, then errors and what a pooler reports."""
    yield from (finding_sentence(finding) for finding in result.findings)
    clear = unexplained_part(result.costliest) is None
    if result.executions.count and not result.findings and clear:
        yield nothing_found_words(None)
    yield from costly_words(result.costliest, "the statement time")
    if result.pool is not None:
        yield from pool_reasons(result.pool)
    errors = [error for error in result.errors if error.severity != "WARNING"]
    if errors and (result.executions.count or result.pool is not None):
        count = sum(error.count for error in errors)
        top = errors[0]
        yield (
            f"{count_words(count, 'error')} of {count_words(len(errors), 'kind')}; the most frequent "
            f"({format_count(top.count)} ×): {top.message}."
        )


def _warnings(result: LogResult) -> Iterator[str]:
    """Yield the reasons to trust the numbers less."""
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
    yield from order_warnings(result)
    yield from _rejected(result)
    if result.untimed:
        one = result.untimed == 1
        noun, verb, counts = ("entry", "has", "it is") if one else ("entries", "have", "they are")
        yield (
            f"{format_count(result.untimed)} {noun} {verb} no time and cannot be within the time range, so "
            f"{counts} not counted; log_line_prefix needs %m."
        )
    if result.other_servers:
        names = ", ".join(result.other_servers[:_SHOWN])
        more = " and more" if len(result.other_servers) > _SHOWN else ""
        of = count_words(len(result.other_servers), "other server")
        yield f"The logs of {of} were not read (--only-server): {names}{more}."
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
    cut = sum(template.cut for template in result.templates)
    if cut:
        yield (
            f"The log truncates {count_words(cut, 'statement')}, so one statement may appear as several "
            "templates."
        )


def _rejected(result: LogResult) -> Iterator[str]:
    """Yield how many lines belong to no entry, where the first one is, and what to do."""
    if not result.rejected:
        return
    lines = sum(file.lines for file in result.files) or result.entries + result.rejected
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
        prefix = next((file.prefix for file in result.files if file.name == first.file), None)
        if prefix is not None:
            text += f" (the file was read with -p '{prefix}')"
    yield f"{text}. --rejected lists them. If they are log entries, give their log_line_prefix with -p."


def answer_log(result: LogResult) -> LogResult:
    """Return the result with its answer, reasons and warnings."""
    result = replace(result, warnings=tuple(_warnings(result)), reasons=tuple(_reasons(result)))
    return replace(result, answer=_compose_log_answer(result))


# ---- sentences about the entries that filters left out ----


_NAMED: Final = 3


def filter_words(result: LogResult) -> str:
    """Return what the filters left out, by option and name; an empty text without filters."""
    filters = result.filters
    if filters is None:
        return ""
    whole = result.entries + result.own + filters.entries
    if not filters.entries:
        return f"The filters ({_asked(result)}) left out none of {format_count(whole)} entries."
    parts = []
    for by in dict.fromkeys(out.by for out in filters.left_out):
        of = [out for out in filters.left_out if out.by == by]
        count = sum(out.entries for out in of)
        names = [f"{out.name or '(none)'} {format_count(out.entries)}" for out in of[:_NAMED]]
        more = f", {len(of) - _NAMED} more" if len(of) > _NAMED else ""
        listed = "" if by == "time of day" else f" ({', '.join(names)}{more})"
        parts.append(f"{format_count(count)} by {by}{listed}")
    return (
        f"The filters ({_asked(result)}) left out {format_count(filters.entries)} of "
        f"{format_count(whole)} entries: {'; '.join(parts)}. All numbers are of the other entries."
    )


def _asked(result: LogResult) -> str:
    filters = result.filters
    if filters is None:
        return ""
    tests = (
        ("database", filters.databases),
        ("user", filters.users),
        ("application", filters.applications),
        ("host", filters.hosts),
        ("time of day", filters.times_of_day),
    )
    return ", ".join(f"{name} {' or '.join(asked)}" for name, asked in tests if asked)
