"""Compare stored runs: `uncork compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from uncork.analysis.runs.compared import compared_runs, comparison_kind, practical_share
from uncork.analysis.runs.comparison import compare_stored
from uncork.cli import console
from uncork.cli.pages import Form, check_page, chosen_form, report, write_forms, write_pages
from uncork.cli.runs.last_run import note_skipped
from uncork.model.results.run_comparison import RunComparison
from uncork.report.log.comparison import (
    build_log_comparison_document,
    render_comparison_terminal,
)
from uncork.report.runs.comparison import build_runs_document, render_runs_terminal
from uncork.report.runs.comparison_answer import answer_runs
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.requests.stored_options import CompareOptions
from uncork.workbench.documents.flames import compared_flames
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.documents.logs import compare_stored_logs, read_log
from uncork.workbench.documents.stacks import KIND as STACKS
from uncork.workbench.documents.stacks import read_stacks
from uncork.workbench.profile.logs import LogRun


def compare(options: CompareOptions) -> None:
    """Compare stored runs, and show the result."""
    check_page(options.html)
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    before, folders = compared_runs(options.runs, options.compared, options.against)
    note_skipped(options.runs, *options.compared, options.against)
    kind = comparison_kind(before, folders)
    if kind != "figures":
        (_compare_stacks if kind == "stacks" else _compare_logs)(before, folders[0], form, options.html)
        return
    result = compare_stored(
        options.runs,
        before,
        folders,
        practical=practical_share(options.practical),
        any_machine=options.any_machine,
    )
    _show(answer_runs(result), before, folders, form, options.html)


def _compare_stacks(before: Path, after: Path, form: Form, html: Path | None) -> None:
    report(STACKS, after, read_stacks(after, against=before.name), form, html, keep=False)


def _compare_logs(before: Path, after: Path, form: Form, html: Path | None) -> None:
    old, new = (LogRun(folder, read_log(folder)) for folder in (before, after))
    compare_log_runs(old, new, form, html)


def _show(
    result: RunComparison, before: Path, folders: Sequence[Path], form: Form, html: Path | None
) -> None:
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


def compare_log_runs(before: LogRun, after: LogRun, form: Form, html: Path | None, top: int = 10) -> None:
    """Show what changed between two logs, and write it beside the later one."""
    comparison = compare_stored_logs(before.folder, after.folder, (before.result, after.result))
    document = build_log_comparison_document(comparison)
    text, data = markdown_text(document), json_text(comparison)
    if form == "terminal":
        render_comparison_terminal(comparison, console.output, top=top)
    else:
        typer.echo(data if form == "json" else text, nl=False)
    for run in (before, after):
        write_forms(kind_named("log"), run.folder, run.result)
    write_pages(
        after.folder,
        html,
        html=html_page(document),
        markdown=text,
        json=data,
        names=("comparison", "comparison"),
        tell=form == "terminal",
    )
