"""Try the changes of findings on a copy of the database: `uncork cure`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from uncork.cli import console
from uncork.cli.next_step import next_command, serve_command
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.places import redacted_command
from uncork.cli.profile.database import end_if_hidden, watch_server
from uncork.cli.profile.logs import read_log_run
from uncork.errors import RunError, UsageError
from uncork.model.records import build_from
from uncork.model.results.cure import CureResult
from uncork.model.units import format_count
from uncork.report.blocks import Step
from uncork.report.cure.answer import proven_change
from uncork.report.cure.document import render_cure_short
from uncork.report.write.terminal_text import write_steps
from uncork.requests.connection import named, watched_server
from uncork.requests.jobs import CureJob
from uncork.requests.option import from_values
from uncork.requests.profile_options import CureOptions, DemoOptions, LogOptions
from uncork.store.layout import find_run, read_manifest, watch_of
from uncork.workbench.advice.sources import AdviceSources, tell_apart
from uncork.workbench.cure.curing import cure
from uncork.workbench.cure.demo import COPY_SETTINGS, CUSTOMERS, LINES, ORDERS, RATE, Shop, open_shop
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


# ---- the demo ----


_WATCH_S: Final = 13.0
_MARGIN_S: Final = 1.0
"""How long the traffic lasts before and after the watch."""
_RATE_HZ: Final = 20.0


def demo(options: DemoOptions) -> None:
    """Run the shop, watch it, prove the changes on a copy, and show what to type next."""
    check_page(options.html)
    told = (lambda _: None) if options.quiet else console.note
    told("starting a temporary PostgreSQL with a small shop; Ctrl-C ends the demo and removes the server")
    with open_shop() as shop:
        told(
            f"the shop has {format_count(CUSTOMERS)} customers, {format_count(ORDERS)} orders and "
            f"{format_count(LINES)} order lines; its programs send {RATE:g} transactions a second"
        )
        watched = _watch_shop(options.runs, shop, told)
        seconds = options.budget / 1e9
        told(f"copying the database and measuring changes on the copy, for about {seconds:.0f} s")
        defaults = from_values(CureOptions, {})
        job = CureJob(
            watched=watched,
            source=shop.address.conninfo(),
            command=redacted_command(sys.argv[1:]),
            budget_s=seconds,
            disk=defaults.disk,
            max_read=defaults.max_read,
            settings=COPY_SETTINGS,
        )
        folder, result, trouble = cure(options.runs, job, told)
    report(kind_named("cure"), folder, result, "terminal", options.html, terminal=render_cure_short)
    console.end_early(result.status, trouble, "what was found until then is kept")
    told("the shop's server is removed, so the page's commands that name it are only examples")
    console.output.print()
    write_steps(console.output, _steps(result, options))


def _watch_shop(runs: Path, shop: Shop, told: Callable[[str], None]) -> Path:
    told(f"the shop is slow, and the cause is not known yet; watching its server for {_WATCH_S:g} s")
    with shop.traffic(_WATCH_S + 2 * _MARGIN_S):
        seen = record_database(
            runs,
            shop.address,
            seconds=_WATCH_S,
            rate_hz=_RATE_HZ,
            command=redacted_command(sys.argv[1:]),
        )
        if seen.status == "interrupted":
            raise KeyboardInterrupt
    if seen.trouble:
        raise RunError(f"the watch ended early: {seen.trouble}")
    return seen.folder


def _steps(result: CureResult, options: DemoOptions) -> tuple[Step, ...]:
    """Return the commands to type next; first a longer demo, if this one proved nothing."""
    again = Step(
        "Nothing was proven: this machine was too busy to decide in that time. Give the demo more time:",
        next_command("demo", "--budget", "5min"),
    )
    own = (
        Step(
            "Find and prove changes for your own database (uncork only reads it):",
            next_command("cure", "host=... dbname=..."),
        ),
        Step("See all reports in a browser:", serve_command(options.runs)),
    )
    return own if proven_change(result) is not None else (again, *own)
