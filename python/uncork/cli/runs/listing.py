"""List and name stored runs: `uncork runs` and `uncork runs name`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from uncork.cli import console, places
from uncork.cli.examples import examples_of
from uncork.cli.help.commands import HelpCommand, HelpGroup
from uncork.cli.runs import keep, move
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.model.units import count_words, format_duration

if TYPE_CHECKING:
    from uncork.model.stored_run import StoredRun

_control: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Terminal control characters; the question of a run may come from anybody."""
_GAP: Final = 2
"""Spaces between two columns."""
_LEAST_WIDTH: Final = 8
"""Width below which the columns of servers and questions are not shortened."""
app = typer.Typer(cls=HelpGroup, invoke_without_command=True)
for _verb, _function in (
    *(("tag", keep.tag), ("prune", keep.prune)),
    *(("push", move.push), ("pull", move.pull)),
):
    app.command(_verb, cls=HelpCommand, epilog=examples_of(f"runs {_verb}"))(_function)


@app.callback(epilog=examples_of("runs"))
def list_stored_runs(
    context: typer.Context,
    text: Annotated[
        str, typer.Option("--search", metavar="TEXT", help="Only runs whose listing contains TEXT.")
    ] = "",
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help="Only runs of this kind.")] = "",
    status: Annotated[str, typer.Option("--status", metavar="STATUS", help="Only runs of this status.")] = "",
    tag: Annotated[str, typer.Option("--tag", metavar="TAG", help="Only runs with this tag or name.")] = "",
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, help="Only the newest N runs.")
    ] = None,
    runs: places.RunsOfGroup = DEFAULT_RUNS,
) -> None:
    """List the stored runs, oldest first."""
    if context.invoked_subcommand is not None:
        context.obj = runs
        return
    from uncork.analysis.runs.listing import check_filter, read_runs  # noqa: PLC0415
    from uncork.model.stored_run import RunFilter, select  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.remote.mirrors import shown  # noqa: PLC0415

    check_filter("--kind", kind)
    check_filter("--status", status)
    found = read_runs(runs)
    for error in found.damaged:
        console.note(str(error))
    places.say_unsent(runs)
    if not found.runs:
        console.note(f"there are no runs in {shown(runs)}; `uncork run FILE` and `uncork load sql` make some")
        return
    chosen = select(found.runs, RunFilter(text=text, kind=kind, status=status, tag=tag))
    if not chosen:
        console.note(f"none of the {count_words(len(found.runs), 'run')} in {shown(runs)} matches")
        return
    _write(chosen[-last:] if last else chosen)


def _write(runs: list[StoredRun]) -> None:
    rows = [("run", "name", "tags", "kind", "status", "took", "server", "question")]
    for run in runs:
        names, tags = ", ".join(run.names), ", ".join(run.tags)
        took = format_duration(run.elapsed_ns) if run.elapsed_ns else ""
        rows.append((run.id, names, tags, run.kind, run.status, took, run.server, run.question))
    columns = list(zip(*rows, strict=True))
    used = [column for column in columns if column[0] not in ("name", "tags") or any(column[1:])]
    widths = [max(map(len, column)) for column in used]
    if console.output.is_terminal:
        widths = _fitting(widths, console.output.width)
    for row in zip(*used, strict=True):
        line = "  ".join(_cut(word, width).ljust(width) for word, width in zip(row, widths, strict=True))
        typer.echo(_control.sub("\N{REPLACEMENT CHARACTER}", line.rstrip()))


def _fitting(widths: list[int], width: int) -> list[int]:
    """Return the widths of columns that fit into a terminal: the server and the question become shorter."""
    *others, server, question = widths
    room = width - sum(others) - _GAP * len(others) - _GAP
    if server + question > room:
        server = max(_LEAST_WIDTH, min(server, max(room // 2, room - question)))
        question = max(_LEAST_WIDTH, min(question, room - server))
    return [*others, server, question]


def _cut(word: str, width: int) -> str:
    return word if len(word) <= width else f"{word[: width - 1]}…"


@app.command("name", cls=HelpCommand, epilog=examples_of("runs name"))
def name(
    context: typer.Context,
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="Stored run: its id, the beginning of one, or last.")
    ],
    called: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name, such as baseline; it moves if another run has it."),
    ],
    runs: places.RunsOfVerb = None,
) -> None:
    """Name a run, so that every command finds it; `uncork compare RUN` uses the run named baseline."""
    from uncork.cli.runs.last_run import note_skipped  # noqa: PLC0415
    from uncork.store.layout import name_run  # noqa: PLC0415

    root = runs or context.obj
    id, before = name_run(root, run_id, called)
    note_skipped(root, run_id)
    moved = f" (before: {before})" if before not in (None, id) else ""
    console.output.print(f"{called}: {id}{moved}", markup=False, soft_wrap=True)
