"""The sentences of a report on logs: the answer, the findings that support it, the warnings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.model.results.costly_parts import unexplained_part
from uncork.model.results.log import FileFacts, LogResult, TemplateFacts
from uncork.model.units import count_words, format_count, format_duration, share_text
from uncork.report.findings import costly_words, finding_headline, finding_sentence, nothing_found_words
from uncork.report.headline import fitting, headline_template, join_sentences
from uncork.report.log.pool import pool_answer, pool_reasons
from uncork.report.words import instant_text, span_text

_DOMINANT: Final = 0.5
"""Share of all time from which on the answer names the application before the template."""
_STANDS_OUT: Final = 0.05
"""Share of all time from which on a template is named in the headline; below it, the time is spread."""
_BEGINNING: Final = 60
"""Characters shown of a line that belongs to no entry."""
_SHOWN: Final = 3


def _compose_log_answer(result: LogResult) -> str:
    if not result.executions.count and result.pool is not None:
        return pool_answer(result.pool)
    if not result.executions.count:
        hint = "Set log_min_duration_statement = 0 to log durations"
        if result.errors:
            error = result.errors[0]
            times = "once" if error.count == 1 else f"{format_count(error.count)} times"
            found = f"The most frequent error occurred {times}: {error.message}"
            return join_sentences(("The log has no durations, so only its errors are known", found, hint))
        return join_sentences(("The log has no durations and no errors", hint))
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


def _reasons(result: LogResult) -> Iterator[str]:
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
    filtered = _filter_words(result)
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


def _filter_words(result: LogResult) -> str:
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


_SLACK_US: Final = 1_000_000
"""Entries of several sessions may be out of order by this much, also where a server begins its next file."""
_PAIRS: Final = 2
_WITHHELD: Final = (
    "Read one after the other, they do not show the order of entries, so uncork reports nothing of this "
    "server that follows from it: transactions, repeated statements, loops, who waited for whom, the longest "
    "waits and open sessions. Other numbers do not depend on the order."
)
_BRIEF: Final = (
    "As long as each session logs in order, as where a busy server begins its next file, transactions, "
    "repeated statements and loops are complete. Lock waits and open sessions of that time can be incomplete."
)
_NO_ORDER: Final = "so they do not show in which order each session sent its statements"
_NEAR: Final = 100
"""How many files before one are tested for overlapping with it."""

_Pairs = list[tuple[FileFacts, FileFacts]]


def order_warnings(result: LogResult) -> Iterator[str]:
    """Yield what is to be known of files of one server that overlap in time, or that were read too late."""
    overlapping, late = _out_of_order(result.files)
    withheld = [pair for pair in overlapping if pair[0].server in result.withheld]
    if withheld:
        yield _overlap_words(withheld, _WITHHELD)
    if len(withheld) < len(overlapping):
        yield _overlap_words([pair for pair in overlapping if pair not in withheld], _BRIEF)
    if late:
        yield _late_words(late)


def overlap_refusal(files: Sequence[FileFacts]) -> str:
    """Return why files that overlap in time do not show what sessions sent, and what to do."""
    pairs = _out_of_order(files)[0]
    if not pairs:
        return f"files of one server overlap in time, {_NO_ORDER}: name files that follow each other"
    one, other = max(pairs, key=lambda pair: _shared_us(*pair))
    choice = "in one format" if one.dialect != other.dialect else "of one server, without copies"
    return (
        f"{one.name} and {other.name} overlap in time, {_shared(one, other)}, {_NO_ORDER}: "
        f"name only files {choice}"
    )


def _out_of_order(all_files: Sequence[FileFacts]) -> tuple[_Pairs, _Pairs]:
    """Return the pairs of files of a server that overlap, and those of which the later one was read first."""
    servers: dict[str, list[FileFacts]] = defaultdict(list)
    for file in all_files:
        if file.first_us is not None:
            servers[file.server].append(file)
    overlapping: _Pairs = []
    late: _Pairs = []
    for files in servers.values():
        latest = files[0]
        for place, file in enumerate(files[1:], 1):
            if _time(file.first_us) < _time(latest.last_us) - _SLACK_US:
                before = reversed(files[max(0, place - _NEAR) : place])
                other = next((earlier for earlier in before if _shared_us(earlier, file) > _SLACK_US), None)
                if other is None:
                    late.append((latest, file))
                else:
                    overlapping.append((other, file))
            if _time(file.last_us) > _time(latest.last_us):
                latest = file
    return overlapping, late


def _shared_us(file: FileFacts, other: FileFacts) -> int:
    """Return how long both were written, in microseconds; below 0 is the time between them."""
    begin = max(_time(file.first_us), _time(other.first_us))
    return min(_time(file.last_us), _time(other.last_us)) - begin


def _overlap_words(pairs: _Pairs, meaning: str) -> str:
    shown = "; ".join(
        f"{file.name} and {other.name}{_on(file)}, {_shared(file, other)}" for file, other in pairs[:_PAIRS]
    )
    more = f"; and {count_words(len(pairs) - _PAIRS, 'other pair')}" if len(pairs) > _PAIRS else ""
    text = f"Files of one server overlap in time: {shown}{more}. {meaning}"
    if any(file.dialect != other.dialect for file, other in pairs):
        text += (
            " Files of different formats can hold the same entries, which then count twice: read only one of "
            "the formats."
        )
    if any(not file.server for file, _ in pairs):
        text += (
            " If several servers wrote them, name the servers: --servers by-folder, or --server NAME=FILES."
        )
    return text


def _late_words(pairs: _Pairs) -> str:
    shown = "; ".join(
        f"{other.name} ends at {instant_text(other.last_us)} UTC, before {file.name}{_on(file)} ends"
        for file, other in pairs[:_PAIRS]
    )
    more = f"; and {count_words(len(pairs) - _PAIRS, 'other file')}" if len(pairs) > _PAIRS else ""
    return (
        f"Logs were not read in the order of time: {shown}{more}. Transactions, repeated statements, loops, "
        "lock waits and open sessions that continue from one to the other are incomplete. Name them in the "
        "order in which they were written."
    )


def _on(file: FileFacts) -> str:
    return f" of server {file.server}" if file.server else ""


def _shared(file: FileFacts, other: FileFacts) -> str:
    begin = max(_time(file.first_us), _time(other.first_us))
    return span_text(begin, min(_time(file.last_us), _time(other.last_us)))


def _time(micros: int | None) -> int:
    return micros or 0
