"""Reports on the history of a metric: the document with its chart, and the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console

from uncork.model.results.guard import GateOutcome
from uncork.model.results.history import History, HistoryChange, HistoryRun
from uncork.model.results.run_comparison import RunVerdict
from uncork.report.blocks import (
    Bullets,
    Document,
    Legend,
    Line,
    LineChart,
    Paragraph,
    Section,
    Step,
    Table,
    Tone,
    Value,
)
from uncork.report.cells import column, header, number, table_of
from uncork.report.draw.spark import spark_text
from uncork.report.figures import figure_value
from uncork.report.runs.history_answer import chance_words, day
from uncork.report.runs.newest import newest_section
from uncork.report.words import effect_text
from uncork.report.write.terminal_text import (
    write_answer,
    write_items,
    write_lines,
    write_rows,
    write_steps,
    write_title,
)

_MEASURED: Final = "measured"
_LEVEL: Final = "level"
_LAST: Final = 12
"""Newest runs that the terminal lists."""
_TONES: Final[dict[RunVerdict, Tone]] = {RunVerdict.FASTER: "faster", RunVerdict.SLOWER: "slower"}
_DIFFERENCES: Final = 4
_FLOOR: Final = 0.15
"""Height of the smallest bar in a row of bars, as a share of the tallest."""


def render_history_terminal(history: History, console: Console) -> None:
    """Print a history: the answer, its warnings, all runs as bars, the changes, and the newest runs."""
    document = build_history_document(history)
    write_answer(console, document.answer)
    if document.reasons:
        write_items(console, document.reasons)
    if len(history.runs) > 1:
        write_lines(console, _bars(history, console.width))
        console.print()
    if history.changes:
        write_title(console, "Changes")
        write_items(console, (_change_item(history, change) for change in history.changes))
    if history.runs:
        table = _runs_table(history, history.runs[-_LAST:])
        write_lines(console, [table.caption], "bold")
        write_rows(console, table)
        console.print()
    write_steps(console, document.steps)


# ---- the document ----


def build_history_document(history: History) -> Document:
    """Return the report on a history."""
    return Document(
        title=f"history of {history.metric}",
        question=" · ".join(filter(None, (history.question, history.subject))),
        answer=history.answer,
        reasons=history.warnings,
        steps=tuple(_steps(history)),
        facts=tuple(_facts(history)),
        variants=(_MEASURED, _LEVEL),
        sections=tuple(_sections(history)),
        version=history.uncork_version,
        heading="What to know",
    )


def _facts(history: History) -> Iterator[tuple[str, str]]:
    yield "metric", history.metric
    yield "runs", str(len(history.runs))
    yield "changes", str(sum(not change.suspected for change in history.changes))
    if history.runs:
        yield "from", day(history.runs[0].started_at)
        yield "to", day(history.runs[-1].started_at)
    if history.branch:
        yield "branch", history.branch


def _steps(history: History) -> Iterator[Step]:
    if history.newest is not None and history.newest.outcome is GateOutcome.BROKEN:
        before, newest = history.runs[-2].id, history.newest.id
        yield Step(
            "See what else differs from the run before it:", shlex.join(["uncork", "compare", before, newest])
        )
    if not history.changes:
        return
    last = history.changes[-1]
    if last.suspected:
        yield Step("See the first run of the possible change:", f"uncork report {shlex.quote(last.since)}")
        return
    yield Step(
        "See what else differs between the last run before the change and the first run after it:",
        shlex.join(["uncork", "compare", last.last, last.since]),
    )
    if last.commit and last.commit_before and last.commit != last.commit_before:
        old, new = (commit.removesuffix("-dirty")[:12] for commit in (last.commit_before, last.commit))
        yield Step("See the commits in between:", shlex.join(["git", "log", "--oneline", f"{old}..{new}"]))


def _sections(history: History) -> Iterator[Section]:
    if history.newest is not None:
        yield newest_section(history, history.newest)
    chart = _chart(history)
    if chart is not None:
        yield Section("chart", "Over time", (Legend((_MEASURED, _LEVEL)), chart))
    if history.changes:
        items = Bullets(tuple(f"Run {change.number}: {_differences(change)}." for change in history.changes))
        differ = Paragraph(
            "Known differences between the last run before a change and the first run after it:"
        )
        yield Section("changes", "Changes", (_changes_table(history), differ, items))
    yield Section("runs", "The runs", (_runs_table(history, history.runs),))


def _chart(history: History) -> LineChart | None:
    """Return a chart of values and levels by run; None for fewer than two runs."""
    if len(history.runs) < 2:
        return None
    values, levels = (
        tuple((float(run.number), getattr(run, name)) for run in history.runs) for name in ("value", "level")
    )
    return LineChart(
        title=f"{history.metric} by run",
        description=history.answer,
        axis="round",
        x_title="run, oldest first",
        y_title=history.metric,
        unit="ns" if history.unit == "ns" else "number",
        lines=(Line(_MEASURED, values), Line(_LEVEL, levels, style="again")),
        variants=(_MEASURED, _LEVEL),
        note="dotted: the mean between changes",
        wide=True,
        from_zero=min(run.value for run in history.runs) <= 0,
    )


def _change_item(history: History, change: HistoryChange) -> str:
    """Return a change as a sentence, for the terminal, where a table would be too wide."""
    before, after = (figure_value(value, history.unit) for value in (change.before, change.after))
    effect = "" if change.ratio is None else f"{effect_text(change.ratio)}, "
    chance = "not known yet" if change.suspected else chance_words(change.chance)
    commits = f", commit {_commits(change)}" if change.commit else ""
    return (
        f"run {change.number}, {change.since} at {day(change.started_at)}{commits}: {effect}{before} → "
        f"{after}; {change.runs_before} runs before, {change.runs_after} since; chance by noise alone: "
        f"{chance}; other differences: {_differences(change)}"
    )


def _changes_table(history: History) -> Table:
    return table_of(
        "Changes",
        history.changes,
        header("since", lambda change: Value(change.since, note=day(change.started_at))),
        number("run", lambda change: str(change.number)),
        number("before", lambda change: figure_value(change.before, history.unit)),
        number("after", lambda change: figure_value(change.after, history.unit)),
        number("change", _ratio),
        number("runs before, since", lambda change: f"{change.runs_before}, {change.runs_after}"),
        column(
            "chance by noise alone",
            lambda change: "not known yet" if change.suspected else chance_words(change.chance),
        ),
        column("commit", lambda change: Value(_commits(change), code=True)),
    )


def _ratio(change: HistoryChange) -> Value:
    text = "" if change.ratio is None else effect_text(change.ratio)
    return Value(text, tone=_TONES.get(change.verdict, "plain"))


def _commits(change: HistoryChange) -> str:
    if change.commit is None:
        return ""
    if change.commit_before in (None, change.commit):
        return change.commit[:8]
    return f"{(change.commit_before or '')[:8]}..{change.commit[:8]}"


def _differences(change: HistoryChange) -> str:
    """Return the known differences between the runs on either side; the commit has its own column."""
    found = [difference for difference in change.differences if difference.section != "commit"]
    words = [
        f"{difference.name or difference.section}: {difference.before or '–'} → {difference.after or '–'}"
        for difference in found
    ]
    more = f"; and {len(words) - _DIFFERENCES} more" if len(words) > _DIFFERENCES else ""
    return "; ".join(words[:_DIFFERENCES]) + more if words else "nothing known"


def _runs_table(history: History, runs: Sequence[HistoryRun]) -> Table:
    changed = {change.number: change for change in history.changes}
    left = len(history.runs) - len(runs)
    caption = f"The newest {len(runs)} of {len(history.runs)} runs" if left else "The runs"
    commits = any(run.commit for run in runs)
    proven = any(run.note for run in runs)
    return table_of(
        caption,
        runs,
        number("", lambda run: str(run.number)),
        header("run", lambda run: Value(run.id, note=", ".join(run.names))),
        column("started", lambda run: day(run.started_at)),
        number(history.metric, lambda run: figure_value(run.value, history.unit)),
        number("level", lambda run: figure_value(run.level, history.unit)),
        column("commit", lambda run: Value((run.commit or "")[:8], code=True), when=commits),
        column("", lambda run: _mark(changed.get(run.number)), when=changed),
        column("proven", lambda run: Value(run.note or "–", code=bool(run.note)), when=proven),
    )


def _mark(change: HistoryChange | None) -> Value:
    if change is None:
        return Value("")
    if change.suspected:
        return Value("← possibly", tone="unsure")
    return Value(f"← {change.verdict.value}", tone=_TONES.get(change.verdict, "plain"))


def _bars(history: History, width: int) -> list[str]:
    """Return the newest runs that fit as bars, changes marked below, and the range of values."""
    shown = history.runs[-width:]
    low, high = min(run.value for run in shown), max(run.value for run in shown)
    span = high - low
    heights = [_FLOOR + (1 - _FLOOR) * ((run.value - low) / span if span else 1.0) for run in shown]
    changed = {change.number: "?" if change.suspected else "^" for change in history.changes}
    marks = "".join(changed.get(run.number, " ") for run in shown).rstrip()
    ends = f"from {figure_value(low, history.unit)} to {figure_value(high, history.unit)}"
    return [spark_text(heights), *([marks] if marks else []), ends]
