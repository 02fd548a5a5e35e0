"""Merge the runs of a load's parts, or of an experiment on several hosts: `uncork merge`."""

from __future__ import annotations

from typing import Any

import typer

from uncork.analysis.load.result import went_wrong
from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import check_page, report
from uncork.model.results.load import LoadResult
from uncork.requests.stored_options import MergeOptions
from uncork.store.layout import read_manifest
from uncork.workbench.documents.kinds import Kind, kind_named
from uncork.workbench.merged import merge_stored


def merge(options: MergeOptions) -> None:
    """Merge the runs, and show the report of the new one; raise typer.Exit unless all parts went well."""
    check_page(options.html)
    folder = merge_stored(options.runs, options.merged)
    console.note(f"run {folder.name}")
    kind: Kind[Any] = kind_named(read_manifest(folder).kind)
    result = kind.read(folder)
    report(kind, folder, result, "json" if options.as_json else "terminal", options.html)
    if isinstance(result, LoadResult) and went_wrong(result):
        raise typer.Exit(ExitStatus.RUN_ERROR)
