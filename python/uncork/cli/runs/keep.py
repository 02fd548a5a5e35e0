"""Which runs are kept: `uncork runs tag` and `uncork runs prune`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.errors import UsageError
from uncork.model.units import count_words, format_bytes, format_count

__all__ = ["register"]

_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24}
_SHOWN: Final = 20


def register(app: typer.Typer) -> None:
    """Add the verbs to `uncork runs`."""
    app.command("tag", epilog=examples_of("runs tag"))(tag)
    app.command("prune", epilog=examples_of("runs prune"))(prune)


def tag(
    context: typer.Context,
    run_id: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A stored run: its id, the beginning of one, a name, or last."),
    ],
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Tags, such as release-2.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take the tags away.")] = False,
    runs: options.RunsOfVerb = None,
) -> None:
    """Give a run tags, which sort runs in lists and keep them from being pruned."""
    from uncork.store.catalogue import set_tag, tags_of  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.layout import find_run  # noqa: PLC0415

    folder = find_run(runs or context.obj, run_id, files=False)
    for one in tags:
        set_tag(folder, one, present=not remove)
    console.output.print(
        f"{folder.name}: {', '.join(tags_of(folder)) or 'no tags'}", markup=False, soft_wrap=True
    )


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
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove them; without it, only say what would go.")
    ] = False,
    runs: options.RunsOfVerb = None,
) -> None:
    """Remove old runs. Those that have a name or a tag stay, and those that are running."""
    from uncork.analysis.runs.listing import read_runs  # noqa: PLC0415
    from uncork.model.retention import Retention, prunable  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.prune import remove_leftovers, remove_run, size_of  # noqa: PLC0415
    from uncork.store.remote.mirrors import shown  # noqa: PLC0415

    root: Path = runs or context.obj
    if keep is None and older_than is None:
        raise UsageError('say what to keep: --keep N, --older-than TIME (such as "30d"), or both')
    age = None if older_than is None else _age(older_than)
    found = read_runs(root)
    for error in found.damaged:
        console.note(f"{error}; it stays")
    if found.unnamed is not None:
        raise UsageError(f"{found.unnamed}; nothing is pruned while it is not known which runs have names")
    going = prunable(found.runs, Retention(keep, age, kind), datetime.now(UTC))
    if not going:
        stay = "stays" if len(found.runs) == 1 else "stay"
        console.note(f"nothing to prune: {count_words(len(found.runs), 'run')} {stay} in {shown(root)}")
        return
    total = format_bytes(sum(size_of(run.folder) for run in going))
    for run in going[:_SHOWN]:
        console.output.print(f"{run.id}  {run.kind}  {run.status}", markup=False, soft_wrap=True)
    if len(going) > _SHOWN:
        console.output.print(f"… and {format_count(len(going) - _SHOWN)} more")
    told = f"{format_count(len(going))} of {count_words(len(found.runs), 'run')}, {total}"
    if not yes:
        console.note(f"{told} would be removed from {shown(root)}; --yes does it")
        return
    removed = sum(remove_run(root, run.id, run.stamp) for run in going)
    remove_leftovers(root)
    spared = f"; {len(going) - removed} changed meanwhile and stay" if removed < len(going) else ""
    verb = "is" if removed == 1 else "are"
    many = f"{format_count(removed)} of {count_words(len(found.runs), 'run')}, {total},"
    console.note(f"{many} {verb} removed{spared}")


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})\s*([hdw])", text.strip())
    if match is None:
        raise UsageError(
            f'--older-than: expected hours, days or weeks, such as "12h", "30d" or "8w"; found "{text}"'
        )
    return timedelta(hours=int(match[1]) * _HOURS[match[2]])
