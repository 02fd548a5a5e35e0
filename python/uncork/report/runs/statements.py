"""Statements of a watched server before and after a change: calls, times and rows, and their limits. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from rich.console import Console

from uncork.model.results.run_comparison import FigureComparison, RunPair, RunSide, RunVerdict
from uncork.model.units import count_words, format_count, format_duration, format_percent, series_words
from uncork.report.blocks import Table, Tone, Value
from uncork.report.cells import column, header, number, table_if_any
from uncork.report.headline import capital, headline_template
from uncork.report.words import is_useless, times_number
from uncork.report.write.terminal_text import write_entry, write_title
from uncork.stats.run_comparison import ASSUMED_STD_DEV

TONES: Final[dict[RunVerdict, Tone]] = {
    RunVerdict.FASTER: "faster",
    RunVerdict.SLOWER: "slower",
    RunVerdict.SAME: "same",
    RunVerdict.NO_PRACTICAL_DIFFERENCE: "same",
    RunVerdict.NOT_ENOUGH_EVIDENCE: "unsure",
}
SIGNS: Final = {
    RunVerdict.FASTER: "✓",
    RunVerdict.SLOWER: "✗",
    RunVerdict.LESS: "−",
    RunVerdict.MORE: "+",
    RunVerdict.SAME: "=",
    RunVerdict.NO_PRACTICAL_DIFFERENCE: "=",
    RunVerdict.NOT_ENOUGH_EVIDENCE: "?",
}
_MOST: Final = 20
_INDENT: Final = 4
_TWICE: Final = 2.0
_CALLS, _MEAN, _ROWS = "calls", "mean", "rows each"


def speed_words(ratio: float) -> str:
    """Return a ratio of times: ``2 500 times faster``, ``4.1 times slower``, ``30 % less time``."""
    word, factor = ("faster", 1 / ratio) if ratio < 1 else ("slower", ratio)
    if factor >= _TWICE:
        return f"{_times(factor)} times {word}"
    return f"{format_percent(ratio).lstrip('+−±')} {'less' if ratio < 1 else 'more'} time"


def _times(factor: float) -> str:
    return times_number(float(f"{factor:.2g}"))


def interval_words(low: float | None, high: float | None) -> str:
    """Return an interval of a ratio of times as `speed_words` has the ratio: ``4 100 to 30 000 times``."""
    if low is None or high is None or is_useless(low, high):
        return "unknown"
    if high <= 1 / _TWICE:
        return f"{_times(1 / high)} to {_times(1 / low)} times"
    if low >= _TWICE:
        return f"{_times(low)} to {_times(high)} times"
    return f"{format_percent(low)} to {format_percent(high)}"


def statements_table(before: RunSide, pair: RunPair) -> Table | None:
    """Return the table of statements in two watches, changed statements first; None if it is empty."""
    found = _statements(pair.figures) if before.kind == "database" else {}
    subjects = [text for text in found if _MEAN in found[text]]
    ordered = sorted(subjects, key=lambda subject: (subject not in pair.changed, -_time(found[subject])))
    return table_if_any(
        f"Statements, before ({before.id}) and after ({pair.after.id})",
        [_row(subject, found[subject], pair.changed) for subject in ordered[:_MOST]],
        number("calls a second", lambda row: row[0], whole=True),
        number("time a call", lambda row: row[1], whole=True),
        number("change", lambda row: row[2], whole=True),
        column("95 % interval", lambda row: row[3], whole=True),
        number("rows a call", lambda row: row[4], whole=True),
        column("verdict", lambda row: row[5], whole=True),
        header("statement", lambda row: row[6]),
    )


def write_changed(pair: RunPair, console: Console) -> None:
    """Print the statements that a cure changed: a line of times, a line of counts, and the statement."""
    found = _statements(pair.figures)
    means = [found[text][_MEAN] for text in pair.changed if _MEAN in found.get(text, {})]
    if not means:
        return
    write_title(console, "Statements that the cure changed, before → after")
    for mean in sorted(means, key=lambda one: -_time(found[one.subject])):
        calls, time, change, interval, rows, verdict, _ = _row(mean.subject, found[mean.subject], ())
        line = f"{time.text} a call, {change.text} (95 % interval: {interval.text}), {verdict.text}"
        counts = [f"{calls.text} calls a second", *([f"{rows.text} rows a call"] if rows.text else [])]
        write_entry(console, (line, ", ".join(counts)), (mean.subject,), _INDENT)
    console.print()


def changed_answer(pair: RunPair) -> Iterator[str]:
    """Yield the sentences on the statements that a cure changed: the one with the most time first."""
    found = _statements(pair.figures)
    means = [found[text][_MEAN] for text in pair.changed if _MEAN in found.get(text, {})]
    if not means:
        yield "No statement that the cure changed ran in both watches, so its effect on the server is unknown"
        return
    first = max(means, key=lambda one: _time(found[one.subject]))
    yield _headline(first)
    before, after = map(format_count, (first.before_count, first.after_count))
    yield f"It was called {before} times before and {after} times after"
    verdicts = [comparison.verdict for comparison in means]
    faster, slower = (verdicts.count(word) for word in (RunVerdict.FASTER, RunVerdict.SLOWER))
    if len(means) > 1:
        counts = {"faster": faster, "slower": slower, "undecided": len(means) - faster - slower}
        parts = [f"{many} {'is' if many == 1 else 'are'} {word}" for word, many in counts.items() if many]
        yield f"Of {count_words(len(means), 'changed statement')}, {series_words(parts)}"


def pair_limits(pair: RunPair) -> Iterator[str]:
    """Yield what a comparison of two watches assumes, and what it cannot show."""
    if any(figure.assumed and figure.low is not None for figure in pair.figures):
        yield (
            "One watch on each side cannot show how much such watches differ. The intervals of times assume "
            f"that the mean time of a call varies by {ASSUMED_STD_DEV * 100:.0f} % (standard deviation) from "
            "watch to watch, and that calls are independent. Other values, other load or a warmer cache are "
            "part of the difference."
        )
    absent = [text for text in pair.changed if _MEAN not in _statements(pair.figures).get(text, {})]
    for subject in absent[:_MOST]:
        yield f"{capital(headline_template(subject))} did not run in both watches."


def _statements(figures: Iterable[FigureComparison]) -> dict[str, dict[str, FigureComparison]]:
    found: dict[str, dict[str, FigureComparison]] = defaultdict(dict)
    for figure in figures:
        if figure.subject and figure.name in (_CALLS, _MEAN, _ROWS):
            found[figure.subject][figure.name] = figure
    return found


def _headline(mean: FigureComparison) -> str:
    name, ratio = headline_template(mean.subject), mean.ratio or 1.0
    before, after = format_duration(mean.before), format_duration(mean.after)
    if mean.verdict in (RunVerdict.FASTER, RunVerdict.SLOWER):
        verb = "takes" if 1 / _TWICE < ratio < _TWICE else "is"
        return f"{name} {verb} {speed_words(ratio)}: {after} a call instead of {before}"
    return f"{name} has no clear change: {after} a call instead of {before}"


def _time(figures: dict[str, FigureComparison]) -> float:
    """Return the time that the statement took a second, in the watch in which it took more."""
    mean, calls = figures[_MEAN], figures.get(_CALLS)
    if calls is None:
        return 0.0
    return max(mean.before * calls.before, mean.after * calls.after)


def _row(subject: str, figures: dict[str, FigureComparison], changed: Collection[str]) -> tuple[Value, ...]:
    mean, calls, rows = figures[_MEAN], figures.get(_CALLS), figures.get(_ROWS)
    tone = TONES.get(mean.verdict, "plain")
    return (
        Value("" if calls is None else _both(calls, lambda value: format_count(float(f"{value:.3g}")))),
        Value(_both(mean, format_duration), sort=mean.after),
        Value("" if mean.ratio is None else speed_words(mean.ratio), tone=tone),
        Value(interval_words(mean.low, mean.high)),
        Value("" if rows is None else _both(rows, lambda value: format_count(float(f"{value:.3g}")))),
        Value(f"{SIGNS[mean.verdict]} {mean.verdict.value}", tone=tone),
        Value(subject, note="changed by the cure" if subject in changed else "", code=True),
    )


def _both(comparison: FigureComparison, text: Callable[[float], str]) -> str:
    before, after = text(comparison.before), text(comparison.after)
    return before if before == after else f"{before} → {after}"
