"""Tag and remove stored runs: `uncork runs tag` and `uncork runs prune`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from uncork.cli import console, places
from uncork.errors import UsageError
from uncork.model.units import count_words, format_bytes, format_count
from uncork.requests.moments import age_of

_SHOWN: Final = 20


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
    from uncork.model.retention import Retention, prunable  # noqa: PLC0415 -- keeps `uncork --help` fast
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
