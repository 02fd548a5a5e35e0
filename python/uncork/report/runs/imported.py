"""Reports on an imported result: the document and the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console

from uncork import __version__
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.units import count_words, format_count
from uncork.report.blocks import Document, Section, Step, Table
from uncork.report.cells import header, number, table_of
from uncork.report.words import figure_value
from uncork.report.write.terminal_text import write_report
from uncork.stats.run_comparison import KNOWN_RUNS


def render_import_terminal(run: RunFigures, console: Console) -> None:
    """Print the metrics of an imported result."""
    metrics = replace(_table(run), caption="")
    write_report(console, build_import_document(run), [metrics], question=False)


def build_import_document(run: RunFigures) -> Document:
    """Return the report on an imported result."""
    many, first = count_words(len(run.figures), "metric"), run.figures[0]
    of = ["--of", first.subject] if first.subject else []
    history = shlex.join(["uncork", "history", first.name, *of, "--like", run.id])
    return Document(
        title=run.id,
        question=run.question,
        answer=f"Imported {many}, measured at {run.started_at[:16].replace('T', ' ')}.",
        reasons=tuple(_reasons(run)),
        steps=(
            Step("See how a metric changed over comparable runs:", history),
            Step("List the runs that `uncork compare` can compare it with:", "uncork runs"),
        ),
        facts=tuple(_facts(run)),
        sections=(Section("figures", "Metrics", (_table(run),)),),
        version=__version__,
        heading="Why",
    )


def _reasons(run: RunFigures) -> Iterator[str]:
    noisy = [figure for figure in run.figures if figure.scale == "ratio"]
    alone = sum(figure.within is None for figure in noisy)
    if alone:
        part = "" if alone == len(noisy) else f" for {alone} of {count_words(len(noisy), 'metric')}"
        yield f"The file holds no samples{part}: how much these vary within the run is unknown."
    if noisy:
        yield (
            f"One run decides nothing: comparisons, and uncork history --window, need {KNOWN_RUNS} "
            "comparable runs of the same series, to know how much they differ."
        )
    named = ", ".join(dict.fromkeys(figure.name for figure in noisy if not figure.better))
    if named and run.asked.get("tool") == "CSV":
        yield f"Whether more or less is better is unknown for {named}: add the column better to the table."


def _facts(run: RunFigures) -> Iterator[tuple[str, str]]:
    yield "run", run.id
    if run.commit:
        yield "commit", run.commit
    for name, value in run.asked.items():
        if value:
            yield name, value


def _table(run: RunFigures) -> Table:
    subjects = any(figure.subject for figure in run.figures)
    return table_of(
        "Metrics",
        run.figures,
        header("of", lambda figure: figure.subject, when=subjects),
        header("metric", lambda figure: figure.name),
        number("value", _value),
    )


def _value(figure: Figure) -> str:
    if figure.scale == "share":
        return f"{format_count(figure.count)} of {format_count(figure.of)}"
    return figure_value(figure.value, figure.unit)
