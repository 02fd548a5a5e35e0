"""The comparison of two logs: the answer, the tables, the document and its writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rich.console import Console

from uncork.model.results.log import DURATION_PARTS
from uncork.model.results.log_comparison import (
    ApplicationChange,
    LogComparison,
    Part,
    Period,
    TemplateChange,
)
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration, share_text
from uncork.report.blocks import Document, Section, Step, Table, Tone, Value
from uncork.report.cells import column, header, not_shown, number, table_of
from uncork.report.words import effect_text
from uncork.report.write.terminal_text import TerminalPart, as_text, wrapped, write_lines, write_report

_TONES: Final[dict[str, Tone]] = {"slower": "slower", "new": "unsure", "faster": "faster", "gone": "muted"}
_TERMINAL_WIDTH: Final = 4


def _compose_comparison_answer(comparison: LogComparison) -> str:
    before, after = comparison.before, comparison.after
    if before.mean_ns is None or after.mean_ns is None:
        return "One of the logs has no durations, so there is nothing to compare."
    busy, rate = _effect(before.busy, after.busy), _effect(before.rate, after.rate)
    mean = _effect(before.mean_ns, after.mean_ns)
    return (
        f"Statement time went from {_seconds(before.busy)} to {_busy(after.busy)} ({busy}). Executions "
        f"went from {format_count(before.rate)} to {format_count(after.rate)} a second ({rate}), and their "
        f"mean from {format_duration(before.mean_ns)} to {format_duration(after.mean_ns)} ({mean})."
    )


def _effect(before: float, after: float) -> str:
    return effect_text(after / before) if before else "×∞"


def _busy(seconds: float) -> str:
    return f"{_seconds(seconds)} a second"


def _reasons(comparison: LogComparison) -> Iterator[str]:
    for word, meaning in (
        ("new", "only in the second log"),
        ("gone", "only in the first log"),
        ("slower", "mean at least 10 % higher"),
        ("faster", "mean at least 10 % lower"),
    ):
        found = [template for template in comparison.templates if template.change == word]
        if found:
            sign = "more" if sum(change.busy for change in found) > 0 else "less"
            yield (
                f"{count_words(len(found), 'template')} {'is' if len(found) == 1 else 'are'} {word} "
                f"({meaning}): {_busy(abs(sum(change.busy for change in found)))} {sign}. "
                f"Largest change: {short_template(found[0].text)}"
            )
    yield (
        f"Of the change in statement time, {_signed(comparison.by_count)} comes from the number of "
        f"statements and {_signed(comparison.by_mean)} from how long each took."
    )
    yield (
        "This describes two logs; it does not prove a cause, because it includes everything else that "
        "changed between them. An experiment proves causes: uncork run."
    )
    yield from comparison.warnings


def _seconds(seconds: float) -> str:
    return format_duration(seconds * 1e9)


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '−'}{_busy(abs(seconds))}"


def _comparison_tables(comparison: LogComparison) -> Iterator[Table]:
    yield _totals_table(comparison)
    applications = _applications_table(comparison)
    if applications is not None:
        yield applications
    yield _durations_table(comparison)


def _totals_table(comparison: LogComparison) -> Table:
    before, after = comparison.before, comparison.after
    totals: tuple[tuple[str, float | None, float | None, Callable[[float], str]], ...] = (
        ("length", before.seconds, after.seconds, _seconds),
        ("executions", before.executions, after.executions, format_count),
        ("executions per second", before.rate, after.rate, format_count),
        ("mean", before.mean_ns, after.mean_ns, format_duration),
        ("longest", before.max_ns, after.max_ns, format_duration),
        ("statement time per second", before.busy, after.busy, _seconds),
    )

    def change(old: float | None, new: float | None) -> str:
        return "" if old is None or new is None else _effect(old, new)

    return table_of(
        "Both logs",
        totals,
        header("", lambda total: total[0]),
        number("before", lambda total: "" if total[1] is None else total[3](total[1])),
        number("after", lambda total: "" if total[2] is None else total[3](total[2])),
        number("change", lambda total: change(total[1], total[2])),
    )


def _durations_table(comparison: LogComparison) -> Table:
    def share(period: Period, count: int) -> str:
        return share_text(count / max(1, period.executions))

    before, after = comparison.before, comparison.after
    return table_of(
        "Executions by duration",
        zip(before.histogram, after.histogram, strict=True),
        header("duration", DURATION_PARTS),
        number("before", lambda counts: format_count(counts[0])),
        number("", lambda counts: share(before, counts[0])),
        number("after", lambda counts: format_count(counts[1])),
        number("", lambda counts: share(after, counts[1])),
    )


def _applications_table(comparison: LogComparison) -> Table | None:
    if not any(application.name for application in comparison.applications):
        return None

    def pair(
        read: Callable[[Part], float | None], shown: Any, of: Callable[[Part], float] | None = None
    ) -> Callable[[ApplicationChange], Value]:
        def cell(change: ApplicationChange) -> Value:
            parts = (change.before, change.after)
            texts = ("–" if (value := read(part)) is None else shown(value) for part in parts)
            shares = "" if of is None else " → ".join(share_text(of(part)) for part in parts)
            return Value(" → ".join(texts), note=shares)

        return cell

    return table_of(
        "By application, before → after, with the share of the log",
        comparison.applications,
        header("", lambda application: application.name or "(unknown)"),
        number(
            "executions",
            pair(lambda part: part.executions, format_count, lambda part: part.of_executions),
        ),
        number("time", pair(lambda part: part.sum_ns, format_duration, lambda part: part.of_time)),
        number("mean", pair(lambda part: part.mean_ns, format_duration)),
    )


def _templates_table(comparison: LogComparison, most: int, width: int) -> Table:
    left = not_shown(len(comparison.templates) - most, "other template")
    return table_of(
        f"Templates by change of time{left}",
        comparison.templates[:most],
        column("change", lambda change: Value(change.change, tone=_TONES.get(change.change, "plain"))),
        number("time per second", lambda change: _busy_cell(change.busy)),
        number("by count", lambda change: _busy_cell(change.by_count)),
        number("by mean", lambda change: _busy_cell(change.by_mean)),
        number("executions per second", _rates),
        number("mean", _means),
        header("template", lambda change: _template(change, width)),
        sortable=True,
    )


def _template(change: TemplateChange, width: int) -> Value:
    return Value(short_template(change.text, width), note=_lists(change), code=True)


def _busy_cell(seconds: float) -> Value:
    return Value(_signed(seconds).removesuffix(" a second"), sort=seconds)


def _rates(change: TemplateChange) -> Value:
    rates = _pair(change, lambda period: period.rate if period.executions else None, format_count)
    return Value(rates, sort=change.after.rate)


def _means(change: TemplateChange) -> Value:
    means = _pair(change, lambda period: period.mean_ns, format_duration)
    return Value(means, sort=change.after.mean_ns or 0)


def _lists(change: TemplateChange) -> str:
    sizes = [period.list_mean for period in (change.before, change.after)]
    if not any(size is not None and size > 1 for size in sizes):
        return ""
    return (
        f"lists of {_pair(change, lambda period: period.list_mean, lambda size: format_count(round(size)))}"
    )


def _pair(change: TemplateChange, read: Any, shown: Any) -> str:
    def text(period: Period) -> str:
        value = read(period)
        return "–" if value is None else str(shown(value))

    return f"{text(change.before)} → {text(change.after)}"


def build_log_comparison_document(comparison: LogComparison) -> Document:
    """Return the report that compares two logs."""
    return Document(
        title=f"{comparison.before_id} → {comparison.id}",
        question=f"What changed? {comparison.before_name} → {comparison.after_name}",
        answer=comparison.answer,
        reasons=tuple(_reasons(comparison)),
        steps=(
            Step("Test a suspicion with an experiment, on a copy of the data:", "uncork new question.toml"),
        ),
        facts=(("before", comparison.before_id), ("after", comparison.id)),
        sections=(
            Section("totals", "Both logs", tuple(_comparison_tables(comparison))),
            Section("templates", "Template by template", (_templates_table(comparison, 2_000, 160),)),
        ),
        version=comparison.uncork_version,
    )


def render_comparison_terminal(comparison: LogComparison, console: Console, *, top: int = 10) -> None:
    """Print what changed: the answer, the findings, then the numbers of the `top` templates."""
    parts: tuple[TerminalPart, ...] = (
        *_comparison_tables(comparison),
        partial(_write_templates, comparison, top),
    )
    write_report(console, build_log_comparison_document(comparison), parts)


def _write_templates(comparison: LogComparison, top: int, console: Console) -> None:
    table = _templates_table(comparison, top, console.width - _TERMINAL_WIDTH)
    write_lines(console, wrapped(table.caption, console.width), "bold")
    console.print()
    for change, busy, count, mean, rate, means, template in table.rows:
        line = (
            f"{change.text:>6}  {busy.text} a second (count {count.text}, mean {mean.text})   "
            f"{rate.text} a second, {means.text}"
        )
        console.print(as_text(console, line, "bold"), soft_wrap=True)
        for text in filter(None, (template.text, template.note)):
            console.print(as_text(console, " " * _TERMINAL_WIDTH + text), soft_wrap=True)
    console.print()


def answer_log_comparison(comparison: LogComparison) -> LogComparison:
    """Return the comparison with its answer."""
    return replace(comparison, answer=_compose_comparison_answer(comparison))
