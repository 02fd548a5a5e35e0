"""The changes between two logs. Pure."""

from __future__ import annotations

from typing import Final

from uncork.analysis.log.result import template_key
from uncork.model.results.log import DURATION_PARTS, Contribution, LogResult, TemplateFacts
from uncork.model.results.log_comparison import (
    ApplicationChange,
    Change,
    LogComparison,
    Part,
    Period,
    TemplateChange,
)

_NOTABLE: Final = 0.1
"""A smaller relative change of the mean, or of executions a second, is not worth mentioning."""
_ENOUGH: Final = 10
"""With fewer executions in one of the logs, a mean is too uncertain to call a template slower or faster."""
_SHORTEST_S: Final = 1.0
_NONE: Final = (0,) * len(DURATION_PARTS)


def compare_logs(before: LogResult, after: LogResult) -> LogComparison:
    """Return the changes between two logs, template by template and application by application.

    Templates are matched by their identity, or by their text if the grammar rejects it. A template
    that one result lacks is new or gone, so a result that leaves some out (`templates_more`) must
    at least have those of the other one: `absent_from` names them.
    """
    seconds = (_seconds(before), _seconds(after))
    old, new = _by_key(before), _by_key(after)
    changes = []
    for key in {**new, **old}:
        facts = (old.get(key), new.get(key))
        periods = [_template_period(fact, length) for fact, length in zip(facts, seconds, strict=True)]
        if any(period.executions for period in periods):
            text = (facts[1] or facts[0] or after.templates[0]).text
            changes.append(_change(text, periods[0], periods[1]))
    changes.sort(key=lambda change: (-abs(change.busy), change.text))
    whole = [_whole_period(result, length) for result, length in zip((before, after), seconds, strict=True)]
    return LogComparison(
        id=after.run.id,
        before_id=before.run.id,
        before_name=_name(before),
        after_name=_name(after),
        answer="",
        warnings=tuple(dict.fromkeys((*before.warnings, *after.warnings))),
        before=whole[0],
        after=whole[1],
        by_count=sum(change.by_count for change in changes),
        by_mean=sum(change.by_mean for change in changes),
        templates=tuple(changes),
        applications=_applications(before, after),
        uncork_version=after.run.uncork_version,
    )


def absent_from(result: LogResult, other: LogResult) -> frozenset[str]:
    """Return the keys of the templates of another result that this one may have left out."""
    return frozenset(_by_key(other).keys() - _by_key(result).keys() if result.templates_more else ())


def _by_key(result: LogResult) -> dict[str, TemplateFacts]:
    return {template_key(template.identity, template.text): template for template in result.templates}


def _name(result: LogResult) -> str:
    names = ", ".join(file.name for file in result.files[:2])
    return f"{names} and {len(result.files) - 2} more" if len(result.files) > 2 else names


def _seconds(result: LogResult) -> float:
    if result.first_us is None or result.last_us is None:
        return _SHORTEST_S
    return max(_SHORTEST_S, (result.last_us - result.first_us) / 1e6)


def _applications(before: LogResult, after: LogResult) -> tuple[ApplicationChange, ...]:
    """Return the applications of both logs side by side; empty if neither log names any."""
    old, new = (
        {application.name: application for application in result.applications} for result in (before, after)
    )
    found = [
        ApplicationChange(name, _part(old.get(name), before), _part(new.get(name), after))
        for name in {**new, **old}
    ]
    found.sort(key=lambda one: (-max(one.before.of_time, one.after.of_time), one.name))
    return tuple(found)


def _part(contribution: Contribution | None, result: LogResult) -> Part:
    if contribution is None or not contribution.executions:
        return Part(0, 0, None, 0.0, 0.0)
    share = contribution.executions / result.executions.count
    return Part(
        contribution.executions,
        contribution.sum_ns,
        contribution.sum_ns / contribution.executions,
        share,
        contribution.share,
    )


def _whole_period(result: LogResult, seconds: float) -> Period:
    count = result.executions.count
    return Period(
        seconds,
        count,
        result.executions.sum_ns,
        result.executions.sum_ns / count if count else None,
        None,
        None,
        result.executions.max_ns,
        result.histogram,
    )


def _template_period(template: TemplateFacts | None, seconds: float) -> Period:
    if template is None or not template.executions:
        return Period(seconds, 0, 0, None, None, None, 0, _NONE)
    return Period(
        seconds,
        template.executions,
        template.sum_ns,
        template.mean_ns,
        template.p50_ns,
        template.p99_ns,
        template.max_ns,
        template.histogram,
        None if template.lists is None else template.lists.mean,
    )


def _change(text: str, before: Period, after: Period) -> TemplateChange:
    busy = after.busy - before.busy
    if before.mean_ns is None or after.mean_ns is None:
        by_count, by_mean = busy, 0.0
    else:
        by_count = (after.rate - before.rate) * before.mean_ns / 1e9
        by_mean = busy - by_count
    return TemplateChange(text, _word(before, after), before, after, busy, by_count, by_mean)


def _word(before: Period, after: Period) -> Change:
    """Name the change of a template; a change of less than a tenth has no name."""
    if before.mean_ns is None or after.mean_ns is None:
        return "new" if before.mean_ns is None else "gone"
    words: list[tuple[float, Change, Change]] = [(after.rate / before.rate, "more", "fewer")]
    if min(before.executions, after.executions) >= _ENOUGH and before.mean_ns:
        words.insert(0, (after.mean_ns / before.mean_ns, "slower", "faster"))
    for ratio, up, down in words:
        if not 1 / (1 + _NOTABLE) <= ratio <= 1 + _NOTABLE:
            return up if ratio > 1 else down
    return "same"
