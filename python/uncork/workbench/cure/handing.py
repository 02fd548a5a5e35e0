"""Write the files that a cure hands over: the change, its reversal, the workload, and the experiment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from uncork.engines.conninfo import resolve
from uncork.experiment.cure.handed import down_sql, up_sql
from uncork.experiment.cure.text import guard_toml
from uncork.model.database.workload import CapturedWorkload
from uncork.model.results.cure import Change, CureResult, Handed, Tried
from uncork.report.cure.markdown import pull_request_markdown
from uncork.report.findings import server_conninfo
from uncork.store.layout import write_atomically
from uncork.workbench.cure.files import write_workload
from uncork.workbench.cure.handing_application import hand_over_application, of_source

HANDED: Final = "handed"
"""The folder of the files within the run's folder."""
_REQUEST: Final = "pull-request.md"


def hand_over(
    folder: Path, result: CureResult, workload: CapturedWorkload, source: str
) -> tuple[Handed, ...]:
    """Write the files of a cure into its run's folder, and return what they are for.

    `source` is the connection string of the source.

    Without a proven change, only the captured workload is handed over.

    Raises:
        StoreError: if they cannot be written.
    """
    place = folder / HANDED
    place.mkdir(exist_ok=True)
    return tuple(_files(place, result, workload, source))


def write_pull_request(folder: Path, result: CureResult) -> None:
    """Write the description for a pull request, which needs the answer, if a change was proven.

    Raises:
        StoreError: if it cannot be written.
    """
    if _proven(result) is not None:
        write_atomically(folder / HANDED / _REQUEST, pull_request_markdown(result))


def _files(place: Path, result: CureResult, workload: CapturedWorkload, source: str) -> Iterator[Handed]:
    chosen, dsn = _proven(result), server_conninfo(result.server)
    if chosen is not None:
        database = resolve(source).database
        members = _members(result, chosen)
        changes = [change for _, change in members]
        headlines = {change.name: tried.finding.headline for tried, change in members if tried is not None}
        write_atomically(place / "up.sql", up_sql(changes, database, headlines))
        yield Handed(f"{HANDED}/up.sql", "the change")
        write_atomically(place / "down.sql", down_sql(changes, database))
        yield Handed(f"{HANDED}/down.sql", "its reversal")
        yield Handed(f"{HANDED}/{_REQUEST}", "a description for a pull request")
        measured = {effect.template for effect in chosen.effects}
        statements = [statement for statement in workload.statements if statement.template in measured]
        if statements:
            guard = guard_toml("cure", "Are the statements of the cure still fast?", dsn, statements)
            write_atomically(place / "guard.toml", guard)
            yield Handed(f"{HANDED}/guard.toml", "for `uncork guard`, which keeps it fixed")
        experiment = Path(chosen.runs[0]) / "experiment.toml" if chosen.runs else None
        if experiment is not None and experiment.is_file():
            write_atomically(place / "experiment.toml", of_source(experiment.read_text(), dsn))
            yield Handed(f"{HANDED}/experiment.toml", "the experiment that measured it")
    yield from hand_over_application(place, result, dsn)
    if workload.statements:
        write_workload(workload, place / "workload")
        yield Handed(f"{HANDED}/workload", "the captured statements, for `uncork load sql -f`")


def _members(result: CureResult, chosen: Change) -> list[tuple[Tried | None, Change]]:
    """Return the single changes of the chosen set, each with its finding."""
    found: list[tuple[Tried | None, Change]] = [
        (tried, change)
        for tried in result.tried
        for change in tried.changes
        if change.name == tried.best and change.state == "cured" and change.sql in chosen.sql
    ]
    return found or [(None, chosen)]


def _proven(result: CureResult) -> Change | None:
    return result.chosen if result.chosen is not None and result.chosen.state == "cured" else None
