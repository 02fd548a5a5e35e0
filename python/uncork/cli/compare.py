"""Compare stored runs: `uncork compare`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from uncork.analysis.runs.compared import compared_runs, comparison_kind, practical_share
from uncork.analysis.runs.comparison import compare_stored
from uncork.cli.pages import Form, check_page, chosen_form, report, report_document, write_forms
from uncork.cli.runs.last_run import note_skipped
from uncork.report.log.comparison import (
    build_log_comparison_document,
    render_comparison_terminal,
)
from uncork.report.runs.comparison import build_runs_document, render_runs_terminal
from uncork.report.runs.comparison_answer import answer_runs
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
    if kind == "stacks":
        run = read_stacks(folders[0], against=before.name)
        report(STACKS, folders[0], run, form, options.html, keep=False)
        return
    if kind == "logs":
        old, new = (LogRun(folder, read_log(folder)) for folder in (before, folders[0]))
        compare_log_runs(old, new, form, options.html)
        return
    share = practical_share(options.practical)
    result = answer_runs(
        compare_stored(options.runs, before, folders, practical=share, any_machine=options.any_machine)
    )
    report_document(
        folders[-1],
        result,
        build_runs_document(result, compared_flames(before, folders)),
        form,
        options.html,
        name="comparison",
        terminal=render_runs_terminal,
        brief=build_runs_document(result),
    )


def compare_log_runs(before: LogRun, after: LogRun, form: Form, html: Path | None, top: int = 10) -> None:
    """Show what changed between two logs, and write it beside the later one."""
    comparison = compare_stored_logs(before.folder, after.folder, (before.result, after.result))
    for run in (before, after):
        write_forms(kind_named("log"), run.folder, run.result)
    document = build_log_comparison_document(comparison)
    terminal = partial(render_comparison_terminal, top=top)
    report_document(after.folder, comparison, document, form, html, name="comparison", terminal=terminal)
