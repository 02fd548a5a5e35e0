"""Tell the sources of advice apart: connection strings, logs and stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uncork.errors import StoreError, UncorkError, UsageError
from uncork.experiment.draft import experiment_text
from uncork.model.database.finding import Finding
from uncork.model.database.index import within_transaction
from uncork.model.results.advice import AdviceResult
from uncork.model.units import count_words
from uncork.profile.objects.address import is_object_address
from uncork.store.layout import find_run
from uncork.workbench.experiment.drafting import draft_of


@dataclass(frozen=True, slots=True)
class AdviceSources:
    """Folders of stored runs, logs to read, and a server to watch: a connection string, or None for none.

    `logs` are files, globs and addresses. An empty connection string is the server of the PG* variables.
    """

    folders: tuple[Path, ...]
    logs: tuple[str, ...]
    server: str | None


def tell_apart(root: Path, sources: Sequence[str], *, connects: bool = False) -> AdviceSources:
    """Return what each source is; without sources, the server of the PG* variables is watched.

    `connects` says that other options name a server, which is watched beside stored runs and logs.
    Raises UsageError if a source is nothing that exists, or there are two servers.
    """
    folders: list[Path] = []
    logs: list[str] = []
    server: str | None = None
    for source in sources:
        if is_object_address(source):
            logs.append(source)
            continue
        if "://" in source or "=" in source:
            if server is not None:
                raise UsageError("advise watches one server; give one connection string")
            server = source
            continue
        try:
            folders.append(find_run(root, source))
        except (StoreError, UsageError) as error:
            if not _is_log(source):
                raise UsageError(_unknown(source, error)) from error
            logs.append(source)
    if server is None and (connects or not sources):
        server = ""
    return AdviceSources(tuple(folders), tuple(logs), server)


def _is_log(source: str) -> bool:
    return source == "-" or Path(source).exists() or any(sign in source for sign in "*?[")


def _unknown(source: str, error: UncorkError) -> str:
    return (
        f"{source}: there is no such log file or run ({error}); to watch a database of this name, write "
        f'"dbname={source}"'
    )


def experiment_of(result: AdviceResult, number: int, folder: Path, dsn: str | None) -> str:
    """Return an experiment file about a finding: its statement, with and without each provable change.

    `dsn` is a database to read the definitions of the tables from, if it is known. Raises
    UsageError if there is no such finding, or nothing about it can be proven by SQL on a copy.
    """
    if number > len(result.findings):
        many = count_words(len(result.findings), "finding")
        raise UsageError(f"--experiment {number}: there are {many}; choose one of them")
    finding = result.findings[number - 1]
    changes = _changes(finding)
    if not changes:
        raise UsageError(
            f"--experiment {number}: no change of this finding is SQL that a copy of the database can try; "
            f"{finding.proof[:1].lower()}{finding.proof[1:] or 'compare before and after by hand'}"
        )
    return experiment_text(draft_of(folder, str(finding.templates[0]), dsn, changes))


def _changes(finding: Finding) -> dict[str, str]:
    """Return the SQL of each change that a copy can try, by the name of its variant."""
    provable = finding.for_experiment
    names = (
        ["changed"] if len(provable) == 1 else [f"change-{place}" for place in range(1, len(provable) + 1)]
    )
    return {name: within_transaction(candidate.sql) for name, candidate in zip(names, provable, strict=True)}
