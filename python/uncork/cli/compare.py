"""Set stored runs side by side: `uncork compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.pages import Form, check_page, chosen_form, report, write_pages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uncork.model.results.run_comparison import RunComparison

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("compare", epilog=examples_of("compare"))(compare)


def compare(
    wanted: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Stored runs: an id, the beginning of one, a name, or last; the first is compared with.",
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RUN",
            help='Compare all of them with this run; of a single RUN, with the one named "baseline".',
        ),
    ] = None,
    practical: Annotated[
        str, typer.Option("--practical", metavar="PERCENT", help="The smallest difference that matters.")
    ] = "3%",
    any_machine: Annotated[
        bool,
        typer.Option("--any-machine", help="Also runs of unlike machines, without verdicts."),
    ] = False,
    as_json: options.AsJson = False,
    markdown: options.Markdown = False,
    html: options.Html = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Compare stored runs that were made at different times: what differs, and what may be said of it.

    Throughput, percentiles, statuses, errors, cost an operation, sizes and plans of loads, experiments,
    watched databases; logs and stacks by template and frame. Intervals are as wide as comparable runs
    in the store differ from one to the next; too few of them, and there is no verdict.
    """
    from uncork.analysis.runs.compared import (  # noqa: PLC0415 -- keeps `uncork --help` fast
        compared_runs,
        comparison_kind,
        practical_share,
    )

    check_page(html)
    form = chosen_form(as_json=as_json, markdown=markdown)
    before, folders = compared_runs(runs, wanted, against)
    kind = comparison_kind(before, folders)
    if kind != "figures":
        (_compare_stacks if kind == "stacks" else _compare_logs)(before, folders[0], form, html)
        return
    from uncork.analysis.runs.comparison import compare_stored  # noqa: PLC0415
    from uncork.report.runs.comparison_answer import answer_runs  # noqa: PLC0415

    result = compare_stored(
        runs, before, folders, practical=practical_share(practical), any_machine=any_machine
    )
    _show(answer_runs(result), before, folders, form, html)


def _compare_stacks(before: Path, after: Path, form: Form, html: Path | None) -> None:
    from uncork.workbench.documents.stacks import KIND, read_stacks  # noqa: PLC0415

    report(KIND, after, read_stacks(after, against=before.name), form, html, keep=False)


def _compare_logs(before: Path, after: Path, form: Form, html: Path | None) -> None:
    from uncork.cli.profile.logs import compare_log_runs  # noqa: PLC0415
    from uncork.workbench.documents.logs import read_log  # noqa: PLC0415
    from uncork.workbench.profile.logs import LogRun  # noqa: PLC0415

    old, new = (LogRun(folder, read_log(folder)) for folder in (before, after))
    compare_log_runs(old, new, form, html)


def _show(
    result: RunComparison, before: Path, folders: Sequence[Path], form: Form, html: Path | None
) -> None:
    from uncork.report.runs.comparison import build_runs_document, render_runs_terminal  # noqa: PLC0415
    from uncork.report.write.html import html_page  # noqa: PLC0415
    from uncork.report.write.json_document import json_text  # noqa: PLC0415
    from uncork.report.write.markdown import markdown_text  # noqa: PLC0415
    from uncork.workbench.documents.flames import compared_flames  # noqa: PLC0415

    page, text, data = (
        html_page(build_runs_document(result, compared_flames(before, folders))),
        markdown_text(build_runs_document(result)),
        json_text(result),
    )
    if form == "terminal":
        render_runs_terminal(result, console.output)
    else:
        typer.echo(data if form == "json" else text, nl=False)
    write_pages(
        folders[-1],
        html,
        html=page,
        markdown=text,
        json=data,
        names=("comparison", "comparison"),
        tell=form == "terminal",
    )
