"""Acknowledge a change that broke a gate: `uncork acknowledge`."""

from __future__ import annotations

from uncork.cli import console
from uncork.cli.runs.last_run import note_skipped
from uncork.errors import UsageError
from uncork.experiment.guard.acknowledged import limit_words
from uncork.model.results.guard import Acknowledgement
from uncork.requests.stored_options import AcknowledgeOptions
from uncork.store.layout import find_run
from uncork.workbench.guard.acknowledged import append_acknowledged, broken_checks, file_of, new_entries
from uncork.workbench.guard.store import read_guard


def acknowledge(options: AcknowledgeOptions) -> None:
    """Append an acknowledgement, and print it."""
    folder = find_run(options.runs, options.run)
    note_skipped(options.runs, options.run)
    result = read_guard(folder)
    if result is None:
        raise UsageError(f"run {folder.name} is not a completed guard; `uncork guard` makes one")
    path = file_of(result) if options.file is None else options.file
    entries = new_entries(
        broken_checks(result, options.gate, options.workload),
        reason=options.reason,
        until=options.until,
        limit=options.limit,
        folder=path.parent,
    )
    append_acknowledged(path, entries)
    for entry in entries:
        console.output.print(f"{path}: {_words(entry)}", markup=False, soft_wrap=True)


def _words(entry: Acknowledgement) -> str:
    where = f" on {entry.workload}" if entry.workload else ""
    far = limit_words(entry)
    until = f", until {entry.until}" if entry.until else ""
    return f'"{entry.gate}"{where} is acknowledged{far and f" up to {far}"}{until}'
