"""The answer of a comparison of runs: what differs, what is unknown, how to find out; and statements."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from rich.console import Console

from uncork.model.results.run_comparison import (
    FigureComparison,
    NextStep,
    RunComparison,
    RunPair,
    RunSide,
    RunVerdict,
)
from uncork.model.stored_run import BASELINE
from uncork.model.units import count_words, format_count, format_duration, format_percent, series_words
from uncork.report.blocks import Table, Tone, Value
from uncork.report.cells import column, header, number, table_if_any
from uncork.report.findings import server_conninfo
from uncork.report.headline import capital, fitting, headline_template, join_sentences
from uncork.report.words import (
    effect_text,
    effect_with_interval,
    figure_value,
    interval_ends,
    is_useless,
    times_number,
)
from uncork.report.write.terminal_text import write_entry, write_title
from uncork.stats.run_comparison import ASSUMED_STD_DEV, KNOWN_RUNS

_CLAIMS: Final = (RunVerdict.SLOWER, RunVerdict.FASTER, RunVerdict.MORE, RunVerdict.LESS)
_FIRST: Final = ("throughput", "p99", "mean", "p50")
_LISTED: Final = 3
_SWITCHED: Final = frozenset({"server", "commit"})
"""Sections of differences that a person can switch between two runs."""
_NAMED: Final = 3
_TURNS: Final = " ".join(map(str, range(1, KNOWN_RUNS + 1)))
_SUBJECT: Final = 40
_COMMIT: Final = 12
_VALUE: Final = 32
"""Maximum length of other values, in characters."""
_LOAD: Final = (
    "protocol",
    "arrivals",
    "clients",
    "operations under way a connection",
    "a connection for each",
    "variables",
)
"""Options of a load that affect its metrics, besides its scripts."""
_OTHER: Final = "different"
"""The verdict if neither times nor failures differ, but costs."""


def claimed(pair: RunPair) -> list[FigureComparison]:
    """Return the metrics that are reported as different, except those without noise: see `counted`."""
    return sorted(
        (comparison for comparison in _judged(pair) if comparison.verdict in _CLAIMS), key=figure_order
    )


def counted(pair: RunPair) -> list[FigureComparison]:
    """Return the metrics without noise that differ, the largest change first."""
    found = [figure for figure in pair.figures if figure.scale == "exact" and figure.verdict in _CLAIMS]
    return sorted(found, key=lambda one: -abs(math.log(one.ratio)) if one.ratio else -math.inf)


def figure_order(comparison: FigureComparison) -> tuple[int, int]:
    """Return a sort key: effects, then metrics of the whole run by importance, then other metrics."""
    known = _FIRST.index(comparison.name) if comparison.name in _FIRST else len(_FIRST)
    if comparison.scale == "effect":
        return (0, -1)
    return (1, 0) if comparison.subject else (0, known)


def _figure_name(comparison: FigureComparison) -> str:
    subject = (
        comparison.subject
        if len(comparison.subject) <= _SUBJECT
        else f"{comparison.subject[: _SUBJECT - 1]}…"
    )
    return f"{comparison.name} of {subject}" if subject else comparison.name


def side_name(side: RunSide) -> str:
    """Return the name of a run: the name given to it, if any, with its id."""
    return f"{side.names[0]} ({side.id})" if side.names else side.id


def _compose_runs_answer(result: RunComparison) -> str:
    if result.cure:
        return join_sentences(text for pair in result.pairs for text in changed_answer(pair))
    if len(result.pairs) == 1:
        return _answer(result, result.pairs[0])
    runs_of: dict[str, list[str]] = {}
    for pair in sorted(result.pairs, key=lambda pair: not claimed(pair)):
        found = claimed(pair)
        effects = _effects(_failures_first(found)[:2], None, found)
        shown = f" ({'; '.join(effects)})" if effects else ""
        verdict = _verdict_words(found) if found else _open_words(pair)
        runs_of.setdefault(verdict, []).append(f"{side_name(pair.after)}{shown}")
    counts = series_words(f"{len(runs)} {verdict}" for verdict, runs in runs_of.items())
    parts = [f"{capital(verdict)}: {series_words(runs)}" for verdict, runs in runs_of.items()]
    return join_sentences((f"Compared with {side_name(result.before)}: {counts}", *parts))


def _answer(result: RunComparison, pair: RunPair) -> str:
    before = side_name(result.before)
    found = claimed(pair)
    if found:
        first = _failures_first(found)[:_LISTED]
        words = _effects(first, result.confidence, found)
        left = len(found) - _LISTED
        more = f"; and {count_words(left, 'more metric')}" if left > 0 else ""
        verdict = _verdict_words(found)
        whole = f"{capital(verdict)} {'from' if verdict == _OTHER else 'than'} {before}"
        brief = [f"{_figure_name(comparison)} {_effect_only(comparison)}" for comparison in first]
        return fitting(
            (f"{whole}: {'; '.join(brief[:many])}", capital(f"{'; '.join(words)}{more}"))
            for many in (3, 2, 1)
        )
    head = sorted(_judged(pair), key=figure_order)[:2]
    shown = "; ".join(_effects(head, result.confidence))
    unknown, alike = _unknown(pair), _alike(pair)
    if unknown:
        return join_sentences((f"No verdict against {before}", capital(unknown), f"Measured: {shown}"))
    if alike:
        named = series_words(_figure_name(comparison) for comparison in alike[:_LISTED])
        return f"No practical difference from {before} in {named}. No metric differs clearly."
    if not shown:
        sizes = _counted_words(pair)
        return (
            f"Sizes differ from {before}. {capital(sizes)}."
            if sizes
            else f"The same as {before} in every metric that both have."
        )
    return f"Not enough evidence of a difference from {before}. {capital(shown)}."


def _verdict_words(found: list[FigureComparison]) -> str:
    """Sum up the differences, failures first: a run that fails more often is not simply faster."""
    shares = [comparison.verdict for comparison in found if _is_failure(comparison)]
    times = [comparison.verdict for comparison in found]
    words = [
        *(["more failures"] if RunVerdict.MORE in shares else []),
        *(["fewer failures"] if RunVerdict.LESS in shares else []),
        *(["slower"] if RunVerdict.SLOWER in times else []),
        *(["faster"] if RunVerdict.FASTER in times else []),
    ]
    return series_words(words) or _OTHER


def _failures_first(found: list[FigureComparison]) -> list[FigureComparison]:
    """Move the first share of failures to the front, because the headline begins with it."""
    failed = next((comparison for comparison in found if _is_failure(comparison)), None)
    return (
        found
        if failed is None
        else [failed, *(comparison for comparison in found if comparison is not failed)]
    )


def _is_failure(comparison: FigureComparison) -> bool:
    return comparison.scale == "share" and comparison.better == "lower"


def _effects(
    figures: list[FigureComparison], confidence: float | None, claims: list[FigureComparison] | None = None
) -> list[str]:
    """Return each metric with its effect: ``throughput −25 % (95 % interval: −32 % to −18 %)``.

    The first interval states the `confidence`; if it is None, all intervals have their short form. Where the
    headline sums up different verdicts on the `claims`, each metric has its own verdict.
    """
    words, level = [], None if confidence is None else f"{confidence * 100:g} % interval: "
    for figure in figures:
        verdict = (
            ""
            if not claims or _verdict_words(claims) == figure.verdict.value
            else f", {figure.verdict.value}"
        )
        words.append(f"{_figure_name(figure)} {_effect(figure, level)}{verdict}")
        if level is not None and figure.low is not None:
            level = ""
    return words


def _open_words(pair: RunPair) -> str:
    if _unknown(pair):
        return "no verdict"
    return "no practical difference" if _alike(pair) else "not enough evidence"


def _alike(pair: RunPair) -> list[FigureComparison]:
    """Return metrics without a practical difference, except counted costs, which hardly ever differ."""
    found = [figure for figure in pair.figures if figure.verdict is RunVerdict.NO_PRACTICAL_DIFFERENCE]
    return sorted(
        (comparison for comparison in found if not comparison.name.endswith(" each")), key=figure_order
    )


def _judged(pair: RunPair) -> list[FigureComparison]:
    return [figure for figure in pair.figures if figure.scale != "exact" and figure.ratio is not None]


def _unknown(pair: RunPair) -> str:
    judged = [comparison for comparison in _judged(pair) if comparison.scale != "effect"]
    if any(figure.scale == "effect" for figure in pair.figures):
        return ""
    reasons = [comparison.reason for comparison in sorted(judged, key=figure_order)]
    open_words = ("the interval", "no finite")
    return reasons[0] if reasons and not any(text.startswith(open_words) for text in reasons) else ""


def _effect(comparison: FigureComparison, level: str | None = None) -> str:
    """Return an effect with its interval, in its short form or after the words of `level`."""
    if comparison.ratio is None:
        return "unchanged"
    if comparison.scale == "share":
        return f"{before_text(comparison)} → {after_text(comparison)}"
    if comparison.low is None:
        return effect_text(comparison.ratio)
    if level is None:
        return effect_with_interval(comparison.ratio, comparison.low, comparison.high)
    return f"{effect_text(comparison.ratio)} ({level}{interval_ends(comparison.low, comparison.high)})"


def _effect_only(comparison: FigureComparison) -> str:
    return (
        effect_text(comparison.ratio)
        if comparison.ratio is not None and comparison.scale != "share"
        else _effect(comparison)
    )


def before_text(comparison: FigureComparison) -> str:
    """Format the value of the run before."""
    return _value_text(comparison, comparison.before, comparison.before_count, comparison.before_of)


def after_text(comparison: FigureComparison) -> str:
    """Format the value of the run after."""
    return _value_text(comparison, comparison.after, comparison.after_count, comparison.after_of)


def _value_text(comparison: FigureComparison, value: float, count: int, of: int) -> str:
    if comparison.scale == "share":
        return f"{format_count(count)} of {format_count(of)}"
    return figure_value(value, comparison.unit)


def _reasons(result: RunComparison) -> Iterator[str]:
    if result.cure:
        yield f"Before is the watch that {result.cure} began with, {result.before.id}."
    for pair in result.pairs:
        yield from pair.warnings
        yield from _other_load(result, pair)
    yield (
        f"{_apart(result)}, so they could not be interleaved: whatever else changed in the meantime is part "
        "of their differences."
    )
    for pair in result.pairs:
        name = f"{pair.after.id}: " if len(result.pairs) > 1 else ""
        yield from pair_limits(pair)
        known = _known(pair, stated=len(result.pairs) == 1 and not claimed(pair))
        if known:
            yield f"{name}{known}"
        sizes = _counted_words(pair)
        if sizes:
            yield f"{name}Counted, without noise: {sizes}."
        yield f"{name}{_environment(pair)}"
        if pair.plans_compared:
            of = count_words(pair.plans_compared, "plan")
            verb = "differs" if len(pair.plans) == 1 else "differ"
            yield f"{name}{len(pair.plans) or 'None'} of {of} {verb}."
    many = sum(len(_judged(pair)) for pair in result.pairs)
    if any(claimed(pair) for pair in result.pairs) and many > 1:
        rate = f"{100 - 100 * result.confidence:.2g} %"
        yield (
            f"{many} metrics share one error rate: at most {rate} of the verdicts are expected to be false "
            "(Benjamini and Hochberg)."
        )


def _counted_words(pair: RunPair) -> str:
    found = counted(pair)
    words = [f"{_figure_name(comparison)} {_effect(comparison)}" for comparison in found[:_LISTED]]
    more = f"; and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return "; ".join(words) + more


def _apart(result: RunComparison) -> str:
    times = [datetime.fromisoformat(side.started_at) for side in _sides(result)]
    seconds = (max(times) - min(times)).total_seconds()
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            many = seconds / length
            length_text = f"{many:.0f}" if many >= 10 else f"{many:.2g}"
            return f"These runs were made {length_text} {unit} apart"
    return f"These runs were made {format_duration(seconds * 1e9)} apart"


def _sides(result: RunComparison) -> Iterable[RunSide]:
    return (result.before, *(pair.after for pair in result.pairs))


def _known(pair: RunPair, *, stated: bool) -> str:
    """Return where intervals come from, or why there is no verdict, unless the answer `stated` it."""
    unknown = _unknown(pair)
    if any(figure.assumed for figure in pair.figures):
        others = [
            comparison.reason
            for comparison in _judged(pair)
            if not comparison.assumed and comparison.std_dev is None
        ]
        return f"Other metrics than times of a call have no verdict: {others[0]}." if others else ""
    if unknown:
        judged = [comparison for comparison in _judged(pair) if comparison.scale == "ratio"]
        within = any(
            comparison.low is not None and comparison.std_dev is None and not comparison.assumed
            for comparison in judged
        )
        tail = "The intervals come from within the two runs alone and are too narrow." if within else ""
        return tail if stated else f"No verdict: {unknown}. {tail}".rstrip()
    known = [
        comparison for comparison in sorted(_judged(pair), key=figure_order) if comparison.std_dev is not None
    ]
    if not known:
        return "Only effects measured side by side within each run have verdicts."
    words = ", ".join(
        f"{_figure_name(comparison)} {format_percent(1 + (comparison.std_dev or 0)).lstrip('+')}"
        for comparison in known[:_LISTED]
    )
    return (
        f"The width of the intervals comes from {count_words(known[0].like_runs, 'other comparable run')}; "
        f"the standard deviation from run to run is: {words}."
    )


def _environment(pair: RunPair) -> str:
    if not pair.differences:
        return "No known difference in machine, server, settings or options."
    words = [
        _change(difference.section, difference.name, difference.before, difference.after)
        for difference in pair.differences
    ]
    more = f"; and {len(words) - 6} more" if len(words) > 6 else ""
    return f"Other differences: {'; '.join(words[:6])}{more}."


def _other_load(result: RunComparison, pair: RunPair) -> Iterator[str]:
    if pair.after.kind not in ("load", "sweep"):
        return
    found = [
        difference
        for difference in pair.differences
        if difference.section == "asked"
        and (difference.name in _LOAD or difference.name.startswith("script "))
    ]
    if found:
        words = "; ".join(
            _change(difference.section, difference.name, difference.before, difference.after).removeprefix(
                "asked "
            )
            for difference in found
        )
        yield (
            f"{result.before.id} and {pair.after.id} are different loads ({words}); this alone may explain "
            "any difference."
        )


def _change(section: str, name: str, before: str, after: str) -> str:
    if section == "asked" and name.startswith("script "):
        return f"text of {name}" if before and after else f"{name} only {'before' if before else 'after'}"
    title = f"{section} {name}".strip() if section not in ("machine", "server") else name or section
    if section == "commit":
        values = [before[:_COMMIT], after[:_COMMIT]]
    else:
        values = [text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…" for text in (before, after)]
    return f"{title} {values[0] or 'unknown'} → {values[1] or 'unknown'}"


def _steps(result: RunComparison) -> Iterator[NextStep]:
    kind = result.before.kind
    if kind == "experiment":
        yield NextStep(
            "To compare them properly, write the difference as two variants of one experiment; it measures "
            "both side by side:",
            "uncork new question.toml && uncork run question.toml",
        )
        return
    if kind == "load":
        yield NextStep(
            "To compare them properly, write the difference (a setting, a rewrite, an index) as two "
            "variants of an experiment; it measures both side by side:",
            "uncork new question.toml && uncork run question.toml",
        )
    if kind == "database":
        yield NextStep(
            "Watch the server again at another time, to see whether the difference lasts:",
            _watch_again(result),
        )
    commands = list(dict.fromkeys(side.command for side in _sides(result)))[:3]
    if kind == "load" and all(command.startswith("uncork ") for command in commands):
        repeat = "Or repeat both runs"
        if len(commands) > 1:
            yield NextStep(
                f"{repeat} in turns, five times each, to learn how much such runs vary:",
                f"for turn in {_TURNS}; do {'; '.join(commands)}; done",
            )
        else:
            yield _switched(result, f"{repeat} in turns, five times each, to learn how much such runs vary")
    if not result.before.names and not result.cure:
        yield NextStep(
            "Name the run to compare others with; uncork compare RUN then uses it:",
            shlex.join(["uncork", "runs", "name", result.before.id, BASELINE]),
        )


def _watch_again(result: RunComparison) -> str:
    """Return the command that watches the server again and compares with the same run before."""
    after = result.pairs[-1].after
    if "--since" in after.command:
        return after.command
    since = shlex.quote(result.cure or result.before.id)
    if after.command.startswith("uncork profile db"):
        return f"{after.command} --since {since}"
    server = server_conninfo(after.server.removeprefix("existing: "))
    return f"uncork profile db {shlex.quote(server)} --since {since}"


def _switched(result: RunComparison, repeat: str) -> NextStep:
    """Return the step that repeats one command in turns, with what must be switched before each run."""
    known = [difference for difference in result.pairs[0].differences if difference.section in _SWITCHED]
    words = "; ".join(
        _change(difference.section, difference.name, difference.before, difference.after)
        for difference in known[:_NAMED]
    )
    what = f"switch what differs ({words})" if words else "switch what you changed between them"
    command = result.before.command
    sides = (("as it was before", command), ("as it is now", command))
    turns = "; ".join(f"read -rp '{side}, then Enter: '; {text}" for side, text in sides)
    return NextStep(
        f"{repeat}. Before each run, {what}; the commands wait for you:",
        f"for turn in {_TURNS}; do {turns}; done",
    )


def answer_runs(result: RunComparison) -> RunComparison:
    """Return the comparison with its answer, reasons and next steps."""
    result = replace(
        result, answer=_compose_runs_answer(result), reasons=tuple(dict.fromkeys(_reasons(result)))
    )
    return replace(result, steps=tuple(_steps(result)))


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
_MOST_STATEMENTS: Final = 20
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
        [_row(subject, found[subject], pair.changed) for subject in ordered[:_MOST_STATEMENTS]],
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
    yield _statement_headline(first)
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
    for subject in absent[:_MOST_STATEMENTS]:
        yield f"{capital(headline_template(subject))} did not run in both watches."


def _statements(figures: Iterable[FigureComparison]) -> dict[str, dict[str, FigureComparison]]:
    found: dict[str, dict[str, FigureComparison]] = defaultdict(dict)
    for figure in figures:
        if figure.subject and figure.name in (_CALLS, _MEAN, _ROWS):
            found[figure.subject][figure.name] = figure
    return found


def _statement_headline(mean: FigureComparison) -> str:
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
