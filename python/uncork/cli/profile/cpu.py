"""Profile stacks: `uncork profile cpu`."""

from __future__ import annotations

import sys
from functools import partial

import typer
from rich.console import Console

from uncork.analysis.stacks.result import StackRun
from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.places import redacted_command
from uncork.cli.runs.last_run import note_skipped
from uncork.errors import UsageError
from uncork.report.stacks.document import render_stack_terminal
from uncork.requests.connection import named, refuse_asking, watched_server
from uncork.requests.profile_options import CpuOptions
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.profile.stack_files import draw_flame, export_stacks
from uncork.workbench.profile.stacks import StackRequest, check_stacks, profile_stacks


def profile_cpu(options: CpuOptions) -> None:
    """Profile stacks, write the files that the options name, and show the result."""
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    for path in (options.html, options.flame, options.folded, options.speedscope, options.pprof):
        check_page(path)
    _check(options)
    connects = options.postgres is not None or named(options)
    refuse_asking(options, connects=connects)
    request = StackRequest(
        pids=tuple(dict.fromkeys(options.pids or ())),
        postgres=watched_server(options, options.postgres, console.asked_password).address()
        if connects
        else None,
        command=tuple(options.arguments or ()),
        imports=tuple(options.imports or ()),
        format=options.form_of,
        seconds=options.lasting / 1e9,
        rate_hz=options.rate,
        call_graph=options.call_graph,
        syscalls=options.syscalls,
        told=(lambda _: None) if options.quiet else console.note,
    )
    check_stacks(request)
    command = redacted_command(sys.argv[1:])
    note_skipped(options.runs, options.against)
    run = profile_stacks(options.runs, request, command=command, against=options.against or "")
    terminal = partial(_render, options)
    report(kind_named("cpu"), run.folder, run, form, options.html, terminal=terminal)
    _write_files(run, options)
    if run.result.run.status == "interrupted":
        console.note("interrupted; what was recorded until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if run.trouble:
        console.note(f"{run.trouble}; what was recorded is kept")
        raise typer.Exit(ExitStatus.RUN_ERROR)


def _render(options: CpuOptions, run: StackRun, output: Console) -> None:
    render_stack_terminal(run.result, output, top=options.top, full=options.full)


def _check(options: CpuOptions) -> None:
    """Refuse words without --command, and --command without words."""
    if options.arguments and not options.command:
        raise UsageError(f'unexpected argument "{options.arguments[0]}"; to run a command add --command')
    if options.command and not options.arguments:
        raise UsageError(
            "--command: give the command after it, as in: uncork profile cpu --command ./app --fast"
        )


def _write_files(run: StackRun, options: CpuOptions) -> None:
    if options.folded is not None:
        export_stacks(run, options.folded, "folded", options.measure)
    if options.speedscope is not None:
        export_stacks(run, options.speedscope, "speedscope", options.measure)
    if options.pprof is not None:
        export_stacks(run, options.pprof, "pprof", options.measure)
    if options.flame is not None:
        draw_flame(run, options.flame, options.measure)
