"""Merge the runs of one experiment that were measured on several hosts into one run (`uncork merge`)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncork.errors import StoreError, UsageError
from uncork.model.stored_run import HostRounds, RunHost
from uncork.model.units import count_words
from uncork.store.layout import Manifest, read_manifest
from uncork.store.parts import keep_part
from uncork.store.query import RunReader
from uncork.store.run_documents import read_host, read_hosts, write_hosts
from uncork.workbench.experiment.joining import Joining, host_numbers, processor_words
from uncork.workbench.run_record import draft, start_run

_OWN: Final = frozenset({"budget_ns", "precision", "seed"})
"""Options that the runs of hosts may have of their own: they decide how many rounds there are."""
_FILES: Final = ("experiment.toml", "plan.json", "environment.json")


@dataclass(frozen=True, slots=True)
class _Part:
    folder: Path
    manifest: Manifest
    host: RunHost
    text: str
    processor: str


def merge_experiments(root: Path, folders: Sequence[Path]) -> Path:
    """Merge runs of one experiment into a new run with the rounds of all; return its folder.

    Each run is of one host. Runs of the same machine count as one host. The new run keeps the runs as parts.

    Raises:
        UsageError: if the runs are not of the same experiment, or one is still running.
        SetupError, StoreError: if a run is damaged, or the result cannot be written.
    """
    parts = [_read(folder) for folder in folders]
    _check(parts)
    first = parts[0]
    hosts = host_numbers([part.host for part in parts])
    count = len(set(hosts))
    manifest = draft(
        kind="experiment",
        name=f"{first.manifest.name}-merged",
        question=first.manifest.question,
        seed=first.manifest.seed,
        server=f"{first.manifest.server}, on {count_words(count, 'host')}",
        options=first.manifest.options,
        unit=first.manifest.unit,
        case=first.manifest.case,
        started_at=min(part.manifest.started_at for part in parts),
        commit=lambda: first.manifest.commit,
        branch=lambda: first.manifest.branch,
    )
    with start_run(root, manifest, undone="nothing was merged") as record:
        try:
            rounds = _join(record.folder, parts)
            write_hosts(record.folder, tuple(_hosts(parts, hosts, rounds)))
        except BaseException:
            record.discard()  # half of a merged run is worth nothing: its parts are still there
            raise
        record.rounds = sum(map(len, rounds))
        elapsed_ns = sum(attempt.elapsed_ns for part in parts for attempt in part.manifest.attempts)
        record.end("complete", f"merged from {count_words(len(parts), 'run')}", elapsed_ns)
    return record.folder


def _join(folder: Path, parts: Sequence[_Part]) -> list[list[int]]:
    """Write the files and tables of all parts into the merged run; return the rounds of each there."""
    _copy_files(parts[0].folder, folder)
    joining = Joining(folder)
    rounds = []
    for number, part in enumerate(parts, 1):
        found = joining.read(number, part.folder)
        joining.append(found)
        rounds.append(found.rounds)
        keep_part(part.folder, folder, number)
    return rounds


def _read(folder: Path) -> _Part:
    manifest = read_manifest(folder)
    if manifest.status == "running":
        raise UsageError(f"{manifest.id} is still running: wait until it has ended")
    if read_hosts(folder):
        raise UsageError(f"{manifest.id} was merged already: name the runs of the hosts instead")
    if manifest.unit != "round":
        raise UsageError(
            f"{manifest.id} was measured on an existing server (--dsn), which is not restarted between "
            "rounds: only runs whose servers uncork starts can be merged"
        )
    reader = RunReader(folder, manifest)
    return _Part(folder, manifest, read_host(folder), reader.specification(), processor_words(reader))


def _check(parts: Sequence[_Part]) -> None:
    """Raise UsageError unless the runs are of the same experiment, by the same build."""
    if len(parts) < 2:
        raise UsageError("merge requires the runs of at least two hosts")
    first = parts[0]
    for part in parts[1:]:
        differing = _differing(first, part)
        if differing:
            raise UsageError(
                f"{first.manifest.id} and {part.manifest.id} are not runs of one experiment: {differing}"
            )
    ids = [str(part.folder.resolve()) for part in parts]
    if len(set(ids)) < len(ids):
        raise UsageError("the same run is named twice")


def _differing(one: _Part, other: _Part) -> str:
    """Return in words how two runs differ that should be alike; empty if they do not."""
    if one.text != other.text:
        return "their experiment files differ"
    if one.manifest.uncork_version != other.manifest.uncork_version:
        return f"uncork {one.manifest.uncork_version} and {other.manifest.uncork_version} measured them"
    for name in (*one.manifest.options, *other.manifest.options):
        values = [part.manifest.options.get(name) for part in (one, other)]
        if name not in _OWN and values[0] != values[1]:
            return f"their options differ in {name} ({values[0]} and {values[1]})"
    return ""


def _copy_files(source: Path, target: Path) -> None:
    try:
        for name in _FILES:
            if (source / name).is_file():
                shutil.copy(source / name, target / name)
        if (source / "files").is_dir():
            shutil.copytree(source / "files", target / "files")
    except OSError as error:
        raise StoreError(f"cannot copy {source}: {error}") from error


def _hosts(
    parts: Sequence[_Part], hosts: Sequence[int], rounds: Sequence[Sequence[int]]
) -> Iterator[HostRounds]:
    for number in dict.fromkeys(hosts):
        own = [place for place, host in enumerate(hosts) if host == number]
        runs = tuple(parts[place].manifest.id for place in own)
        numbers = tuple(number for place in own for number in rounds[place])
        first = parts[own[0]]
        yield HostRounds(number, first.host.name, first.processor, numbers, runs)
