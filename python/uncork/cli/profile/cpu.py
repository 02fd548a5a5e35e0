"""Profile stacks: `uncork profile cpu`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import typer

from uncork.cli import console, options
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.stored_command import redacted_command
from uncork.errors import UsageError
from uncork.model.results.stacks import ProfileFormat

if TYPE_CHECKING:
    from rich.console import Console

    from uncork.analysis.stacks.result import StackRun

__all__ = ["cpu"]

_FORMATS: tuple[ProfileFormat, ...] = get_args(ProfileFormat)


@dataclass(frozen=True, slots=True)
class _Files:
    """Where to write flame graph and stacks, if anywhere."""

    flame: Path | None
    folded: Path | None
    speedscope: Path | None
    pprof: Path | None

    def check(self) -> None:
        for path in (self.flame, self.folded, self.speedscope, self.pprof):
            check_page(path)


def cpu(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND...]", help="With --command: the command and its arguments."),
    ] = None,
    pids: Annotated[
        list[int] | None,
        typer.Option(
            "--pid", metavar="PID", help="Profile this process and those it starts; may be given again."
        ),
    ] = None,
    postgres: Annotated[
        str | None,
        typer.Option(
            "--postgres",
            metavar="DSN",
            help="Profile the processes of this server, by session: URI or key=value; PG* work.",
        ),
    ] = None,
    command: Annotated[
        bool,
        typer.Option("--command", help="Run COMMAND (the last of all words), and profile it to its end."),
    ] = False,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="FILE|URL",
            help="Read another profiler's profile: pprof, perf script, folded, speedscope, Pyroscope; - is "
            "standard input; may be given again.",
        ),
    ] = None,
    form_of: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help=f"Format of --import, if it is not found out: {', '.join(_FORMATS)}.",
        ),
    ] = None,
    lasting: Annotated[
        str, typer.Option("--for", metavar="TIME", help='How long to record, such as "30s".')
    ] = "10s",
    rate: Annotated[
        int, typer.Option("--rate", metavar="HZ", help="Samples a second of each running process, 1 to 1000.")
    ] = 99,
    call_graph: Annotated[
        str | None,
        typer.Option(
            "--call-graph", metavar="HOW", help="How stacks are found: dwarf or fp; tried out if absent."
        ),
    ] = None,
    syscalls: Annotated[
        bool,
        typer.Option(
            "--syscalls", help="Afterwards count system calls for up to 3 s; strace slows processes down."
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="RUN", help="Compare with this stored profile: its id, or last."),
    ] = None,
    flame: Annotated[
        Path | None, typer.Option("--flame", metavar="FILE.svg", help="Write the flame graph here.")
    ] = None,
    folded: Annotated[
        Path | None, typer.Option("--folded", metavar="FILE", help="Write folded stacks here.")
    ] = None,
    speedscope: Annotated[
        Path | None, typer.Option("--speedscope", metavar="FILE", help="Write speedscope's JSON here.")
    ] = None,
    pprof: Annotated[
        Path | None, typer.Option("--pprof", metavar="FILE", help="Write pprof's protocol buffer here.")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure", metavar="NAME", help="What these files hold, of what was counted: cpu if absent."
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Frames shown in the terminal.")] = 10,
    full: options.Full = False,
    as_json: options.AsJson = False,
    markdown: options.Markdown = False,
    html: options.Html = None,
    quiet: options.Quiet = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Say where processor time goes: stacks of processes, of a server, of a command or of another profiler.

    Uses perf where the machine allows it, else says what cannot be seen. The run is stored; `uncork report`
    shows it again, and --against draws what changed.
    """
    from uncork.report.stacks.terminal import render_stack_terminal  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.requests.jobs import ServerOptions  # noqa: PLC0415
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415
    from uncork.workbench.profile.stacks import StackRequest, check_stacks, profile_stacks  # noqa: PLC0415

    files = _Files(flame, folded, speedscope, pprof)
    check_page(html)
    form = chosen_form(as_json=as_json, markdown=markdown)
    files.check()
    words = tuple(arguments or ())
    _check(words, command=command)
    if call_graph not in (None, "dwarf", "fp"):
        raise UsageError(f'--call-graph "{call_graph}": dwarf and fp are known')
    if form_of is not None and form_of not in _FORMATS:
        raise UsageError(f'--format "{form_of}": {", ".join(_FORMATS)} are known')
    request = StackRequest(
        pids=tuple(dict.fromkeys(pids or ())),
        postgres=None if postgres is None else ServerOptions(database=postgres).address(),
        command=words,
        imports=tuple(imports or ()),
        format=form_of,
        seconds=options.seconds(lasting, "--for"),
        rate_hz=rate,
        call_graph=cast('Literal["dwarf", "fp"] | None', call_graph),
        syscalls=syscalls,
        told=(lambda _: None) if quiet else console.note,
    )
    check_stacks(request)
    run = profile_stacks(runs, request, command=redacted_command(sys.argv[1:]), against=against or "")
    _write_files(run, files, measure)

    def terminal(run: StackRun, output: Console) -> None:
        render_stack_terminal(run.result, output, top=top, full=full)

    report(kind_named("cpu"), run.folder, run, form, html, terminal=terminal)
    if run.result.run.status == "interrupted":
        console.note("interrupted; what was seen until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if run.trouble:
        console.note(f"{run.trouble}; what was seen is kept")
        raise typer.Exit(ExitStatus.RUN_ERROR)


def _check(words: tuple[str, ...], *, command: bool) -> None:
    """Refuse words that are no command, and a command without words."""
    if words and not command:
        raise UsageError(f'"{words[0]}" is not expected here; --command says that it is a command to run')
    if command and not words:
        raise UsageError(
            "--command: give the command behind it, as in: uncork profile cpu --command ./app --fast"
        )


def _write_files(run: StackRun, files: _Files, measure: str | None) -> None:
    from uncork.workbench.profile.stack_files import draw_flame, export_stacks  # noqa: PLC0415

    if files.flame is not None:
        draw_flame(run, files.flame, measure)
    for format, path in (("folded", files.folded), ("speedscope", files.speedscope), ("pprof", files.pprof)):
        if path is not None:
            export_stacks(run, path, cast('Literal["folded", "speedscope", "pprof"]', format), measure)
