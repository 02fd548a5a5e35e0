"""List, name, tag, prune and move stored runs: `uncork runs` and its verbs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from uncork.cli import console, places
from uncork.cli.examples import examples_of
from uncork.cli.help.commands import HelpCommand, HelpGroup
from uncork.errors import StoreError, UsageError
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.model.units import count_words, format_bytes, format_count, format_duration
from uncork.requests.moments import age_of

if TYPE_CHECKING:
    from uncork.model.stored_run import StoredRun

_control: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Terminal control characters; the question of a run may come from anybody."""
_GAP: Final = 2
"""Spaces between two columns."""
_LEAST_WIDTH: Final = 8
"""Width below which the columns of servers and questions are not shortened."""
Verb = TypeVar("Verb", bound=Callable[..., Any])

app = typer.Typer(cls=HelpGroup, invoke_without_command=True)


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


def _verb(name: str) -> Callable[[Verb], Verb]:
    """Return a decorator that adds a verb, in the order of the help."""
    return app.command(name, cls=HelpCommand, epilog=examples_of(f"runs {name}"))


_SHOWN: Final = 20


@_verb("tag")
def tag(
    context: typer.Context,
    run_id: Annotated[
        str,
        typer.Argument(metavar="RUN", help="Stored run: its id, the beginning of one, a name, or last."),
    ],
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Tags, such as release-2.")],
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tags.")] = False,
    runs: places.RunsOfVerb = None,
) -> None:
    """Tag a run; tags filter lists and protect the run from pruning."""
    from uncork.cli.runs.last_run import note_skipped  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.catalogue import set_tag, tags_of  # noqa: PLC0415
    from uncork.store.layout import find_run  # noqa: PLC0415

    folder = find_run(runs or context.obj, run_id, files=False)
    note_skipped(folder.parent, run_id)
    for text in tags:
        set_tag(folder, text, present=not remove)
    console.output.print(
        f"{folder.name}: {', '.join(tags_of(folder)) or 'no tags'}", markup=False, soft_wrap=True
    )


@_verb("prune")
def prune(
    context: typer.Context,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=0, help="Keep the newest N runs of each name.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="TIME", help='Only runs older than this, as in "30d".'),
    ] = None,
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help="Only runs of this kind.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Remove the runs; without it, only list them.")] = False,
    runs: places.RunsOfVerb = None,
) -> None:
    """Remove old runs, except running ones and those with a name or tag."""
    from uncork.analysis.runs.listing import read_runs  # noqa: PLC0415
    from uncork.model.stored_run import Retention, prunable  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.prune import remove_leftovers, remove_run, size_of  # noqa: PLC0415
    from uncork.store.remote.mirrors import shown  # noqa: PLC0415

    root: Path = runs or context.obj
    if keep is None and older_than is None:
        raise UsageError('name the runs to remove: --keep N, --older-than TIME (such as "30d"), or both')
    age = None if older_than is None else _age(older_than)
    found = read_runs(root)
    for error in found.damaged:
        console.note(f"{error}; it is kept")
    if found.unnamed is not None:
        raise UsageError(f"{found.unnamed}; nothing is pruned, since the names of runs are unknown")
    going = prunable(found.runs, Retention(keep, age, kind), datetime.now(UTC))
    if not going:
        console.note(f"nothing to prune: keeping {count_words(len(found.runs), 'run')} in {shown(root)}")
        return
    total = format_bytes(sum(size_of(run.folder) for run in going))
    for run in going[:_SHOWN]:
        console.output.print(f"{run.id}  {run.kind}  {run.status}", markup=False, soft_wrap=True)
    if len(going) > _SHOWN:
        console.output.print(f"… and {format_count(len(going) - _SHOWN)} more")
    told = f"{format_count(len(going))} of {count_words(len(found.runs), 'run')}, {total}"
    if not yes:
        console.note(f"{told} would be removed from {shown(root)}; add --yes to remove them")
        return
    removed = sum(remove_run(root, run.id, run.stamp) for run in going)
    remove_leftovers(root)
    spared = f"; {len(going) - removed} changed meanwhile and were kept" if removed < len(going) else ""
    verb = "was" if removed == 1 else "were"
    many = f"{format_count(removed)} of {count_words(len(found.runs), 'run')}, {total},"
    console.note(f"{many} {verb} removed{spared}")


def _age(text: str) -> timedelta:
    found = age_of(text)
    if found is None:
        raise UsageError(
            f'--older-than: expected hours, days or weeks, such as "12h", "30d" or "8w"; found "{text}"'
        )
    return found


@_verb("push")
def push(
    context: typer.Context,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS]",
            help="Where to upload the runs of a folder; without it, --runs must be an address.",
        ),
    ] = None,
    runs: places.RunsOfVerb = None,
) -> None:
    """Upload the runs of a folder to an address, or runs that failed to upload to their address."""
    from uncork.store.remote.mirrors import mirror_of  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.publishing import push_runs, send_pending  # noqa: PLC0415

    root: Path = runs or context.obj
    if address is None and mirror_of(root) is None:
        raise UsageError(
            f"{root} is a folder: name an address, as in `uncork runs push s3://BUCKET/PREFIX`, or give an "
            "address with --runs to upload the runs that failed to upload before"
        )
    sent = send_pending(root) if address is None else push_runs(root, places.place_of_runs(address))
    if not sent.runs and not sent.troubles:
        console.note(f"nothing to upload: all completed runs are at {sent.shown}")
    places.say_sent(sent)
    _end(sent.left)


@_verb("pull")
def pull(
    context: typer.Context,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Address of the runs, such as s3://BUCKET/PREFIX.")
    ],
    wanted: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids, beginnings of ids, names, or last. Default: all."),
    ] = None,
    runs: places.RunsOfVerb = None,
) -> None:
    """Download runs from an address to a folder, except those already there."""
    from uncork.workbench.publishing import pull_runs  # noqa: PLC0415 -- keeps `uncork --help` fast

    root: Path = runs or context.obj
    brought = pull_runs(places.place_of_runs(address), root, wanted or [])
    for trouble in brought.troubles:
        console.note(str(trouble))
    many = count_words(len(brought.runs), "run")
    console.note(f"downloaded {many} from {brought.shown} to {root}")
    _end(brought.left)


def _end(left: int) -> None:
    if left:
        raise typer.Exit(StoreError.exit_status)


@_verb("name")
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
