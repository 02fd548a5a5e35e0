"""Statements that clients repeat in loops, as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.log import LogResult
from uncork.model.results.log_loop import LogLoop
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration
from uncork.report.log.shares import LEAST_SHARE, loop_share
from uncork.report.quantity_words import share_text
from uncork.report.words import count_words

__all__ = ["costly_loops", "loop_notes", "loop_reasons"]

_SHOWN: Final = 3


def costly_loops(result: LogResult) -> list[LogLoop]:
    """Return the loops that take enough time to be a finding, the costliest first."""
    return [one for one in result.loops if loop_share(result, one) >= LEAST_SHARE]


def loop_reasons(result: LogResult) -> Iterator[str]:
    """Yield the templates that clients repeat in loops, with what one statement instead would save."""
    for one in costly_loops(result)[:_SHOWN]:
        where = "transactions" if one.in_transaction else "sessions"
        repeats = one.parents if one.parent_text else one.stretches
        saved = sum(template.executions - repeats for template in one.templates)
        waiting = sum(template.waiting_ns for template in one.templates)
        yield (
            f"Repeated in {where}{' (N+1)' if one.parent_text else ''}: {_ran(one)}. With the waits before "
            f"them they take {share_text(loop_share(result, one))} of the time; {_remedy(one)} would save up "
            f"to {count_words(max(0, saved), 'round trip')} and {format_duration(waiting)} of waiting: "
            f"{short_template(one.templates[0].text)}{_after(one)}"
        )


def _ran(one: LogLoop) -> str:
    """Say how often the loop ran: the ratio to its parent, or the number per transaction."""
    many = len(one.templates)
    what = "one template ran" if many == 1 else f"{many} templates ran in turn,"
    each = f"{_ratio(one)} times each" if many > 1 else f"{_ratio(one)} times"
    if one.parent_text:
        return (
            f"{what} {each} for every execution of the query before them "
            f"({count_words(one.parents, 'execution')})"
        )
    longest = format_count(max(template.longest for template in one.templates))
    per = "in one transaction" if one.stretches == 1 else "per transaction on average"
    varies = one.stretches > 1 and longest != _ratio(one)
    most = f" and up to {longest} times" if varies else ""
    across = "" if one.stretches == 1 else f", in {count_words(one.stretches, 'transaction')}"
    return f"{what} {each} {per}{most}{across}"


def _ratio(one: LogLoop) -> str:
    return format_count(round(one.ratio))


def _remedy(one: LogLoop) -> str:
    if one.parent_text:
        return "one statement for all rows (a join, or WHERE key = ANY of a list)"
    return "many rows per statement, or a pipeline,"


def _after(one: LogLoop) -> str:
    return f"; the query before them: {short_template(one.parent_text)}" if one.parent_text else ""


def loop_notes(result: LogResult) -> dict[int, str]:
    """Return what the list of templates says of each template that a loop repeats, by its number."""
    found: dict[int, str] = {}
    for one in result.loops:
        where = "transaction" if one.in_transaction else "session"
        for template in one.templates:
            words = f"repeated up to {format_count(template.longest)} times in a {where}"
            found.setdefault(template.number, words)
    return found
