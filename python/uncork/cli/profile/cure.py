"""Try the changes of findings on a copy of the database: `uncork cure`."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from uncork.cli import console
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.profile.database import end_if_hidden, watch_server
from uncork.cli.profile.logs import read_log_run
from uncork.cli.stored_command import redacted_command
from uncork.errors import UsageError
from uncork.model.records import build_from
from uncork.requests.connection import named, watched_server
from uncork.requests.jobs import CureJob
from uncork.requests.option import from_values
from uncork.requests.profile_options import CureOptions, LogOptions
from uncork.store.layout import find_run, read_manifest, watch_of
from uncork.workbench.advice.sources import AdviceSources, tell_apart
from uncork.workbench.cure.curing import cure
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.profile.databases import record_database


def cure_command(options: CureOptions) -> None:
    """Watch unless a watch is stored, try the changes, and show the result."""
    check_page(options.html)
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    if options.pg_bin is not None and not options.pg_bin.is_dir():
        raise UsageError(f"--pg-bin {options.pg_bin}: no such folder")
    if options.output is not None and options.output.exists() and any(options.output.iterdir()):
        raise UsageError(f"--output {options.output}: the folder is not empty; name another one")
    sources = tell_apart(options.runs, options.sources or [], connects=named(options))
    if sources.server is None:
        raise UsageError("name the database to copy: a connection string after the stored runs, or -d DBNAME")
    if sources.logs:
        raise UsageError(f"{sources.logs[0]} is a log; give it with --logs")
    server = watched_server(options, sources.server, console.asked_password).address()
    log = _log(options, sources)
    earlier = None if options.resume is None else find_run(options.runs, options.resume)
    if earlier is not None:
        if read_manifest(earlier).kind != "cure":
            raise UsageError(f"--resume {options.resume}: {earlier.name} is no cure")
        sources = replace(sources, folders=(earlier, *sources.folders))
    watched = next((found for folder in sources.folders if (found := _watch(options.runs, folder))), None)
    if watched is None:
        seen = watch_server(record_database, options, server)
        if seen.trouble:
            raise UsageError(f"the watch ended early: {seen.trouble}; nothing was tried")
        watched = seen.folder
    job = build_from(
        CureJob,
        options,
        watched=watched,
        source=server.conninfo(),
        command=redacted_command(sys.argv[1:]),
        budget_s=options.budget / 1e9,
        log=log,
        log_files=tuple(map(str, options.logs or ())),
        binaries=options.pg_bin,
        only=tuple(options.only or ()),
        earlier=earlier,
    )
    folder, result, trouble = cure(options.runs, job, (lambda _: None) if options.quiet else console.note)
    if options.output is not None:
        shutil.copytree(folder / "handed", options.output, dirs_exist_ok=True)
    report(kind_named("cure"), folder, result, form, options.html)
    console.end_early(result.status, trouble, "what was found until then is kept")
    end_if_hidden(result.hidden)


def _watch(runs: Path, folder: Path) -> Path | None:
    """Return the folder of a watch: the run itself, or the watch that an earlier cure used; None for logs."""
    manifest = read_manifest(folder)
    if manifest.kind == "cure":
        return find_run(runs, str(manifest.options["watched"]))
    if manifest.kind == "log":
        return None
    if watch_of(folder) is None:
        raise UsageError(
            f"run {folder.name} holds no watch of a database; name a run of `uncork profile db`, "
            "`uncork advise` or `uncork profile service`"
        )
    return folder


def _log(options: CureOptions, sources: AdviceSources) -> Path | None:
    """Return the folder of the server's logs: a stored run, or the files that are read now."""
    stored = [folder for folder in sources.folders if read_manifest(folder).kind == "log"]
    if options.logs:
        asked = from_values(LogOptions, {"files": options.logs, "runs": options.runs, "quiet": options.quiet})
        stored.append(read_log_run(asked))
    if len(stored) > 1:
        raise UsageError("give one run of logs, or --logs")
    return stored[0] if stored else None
