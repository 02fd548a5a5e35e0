"""Cures from Python: the changes of a database's findings, tried on a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack, cast

from uncork.api.runs import CureRun, Run, open_folder
from uncork.api.signature import documented
from uncork.api.words import Place, Progress, Quantity, call_text, calling, end_early, runs_folder, teller
from uncork.errors import UsageError
from uncork.model.records import build_from
from uncork.requests.option import from_values
from uncork.requests.profile_options import CureOptions
from uncork.store.layout import find_run

__all__ = ["CureKeywords", "cure"]


class CureKeywords(TypedDict, total=False):
    """Keywords of `cure`, declared in `CureOptions`."""

    lasting: Quantity
    rate: float
    budget: Quantity
    disk: int | str
    max_read: int | str
    copy: str | None
    pg_bin: Place | None
    only: Sequence[str] | None
    finding: int | None
    dry_run: bool


@documented(CureOptions, CureKeywords)
def cure(
    database: str,
    *,
    watched: str | Run | None = None,
    logs: str | Run | None = None,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[CureKeywords],
) -> CureRun:
    """Try the changes of a database's findings on a copy; return the run with what was proven.

    The database is only read, and nothing is applied: `chosen.sql` of the run is what to execute.

    Args:
        database: Connection string of the database: a URI or key=value pairs.
        watched: Stored watch of it (a run of `profile_db` or `profile_service`). Default: watch it now.
        logs: Stored run of its logs (`profile_logs`), from which values of parameters are taken.
        options: see below.
        progress: Function that takes a line at a time, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, ConnectError: if an option is invalid, or the server cannot be reached or is too old.
        RunError: if the copy cannot be made, or a server goes away; what was found is kept.
        KeyboardInterrupt: on Ctrl-C; what was found is kept.
    """
    from uncork.requests.jobs import CureJob, ServerOptions  # noqa: PLC0415 -- not before a cure is wanted
    from uncork.workbench.cure.curing import cure as work  # noqa: PLC0415
    from uncork.workbench.profile.databases import record_database  # noqa: PLC0415

    with calling():
        read = from_values(CureOptions, options)
        root, server = runs_folder(runs), ServerOptions(database=database).address()
        command = call_text("cure", options, (database,))
        if watched is None:
            seen = record_database(
                root, server, seconds=read.lasting / 1e9, rate_hz=read.rate, command=command
            )
            if seen.trouble:
                raise UsageError(f"the watch ended early: {seen.trouble}; nothing was tried")
            folder = seen.folder
        else:
            folder = watched.folder if isinstance(watched, Run) else find_run(root, watched)
        log = logs if logs is None or isinstance(logs, Run) else open_folder(find_run(root, logs))
        job = build_from(
            CureJob,
            read,
            watched=folder,
            source=server.conninfo(),
            command=command,
            budget_s=read.budget / 1e9,
            log=None if log is None else log.folder,
            binaries=read.pg_bin,
            only=tuple(read.only or ()),
        )
        done, result, trouble = work(root, job, teller(progress))
    end_early(result.status, trouble, f"what was found until then is kept: uncork.open({done.name!r})")
    return cast("CureRun", open_folder(done))
