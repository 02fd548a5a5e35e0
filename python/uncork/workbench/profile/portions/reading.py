"""Read logs in several processes, and after logs that an earlier run has read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from uncork.errors import SetupError, UsageError
from uncork.profile.logs import LogReading, LogRequest, log_name, read_logs
from uncork.profile.objects.address import LogObject
from uncork.profile.portions.joining import CarryOut, read_in_tasks
from uncork.profile.portions.local import in_processes
from uncork.requests.profile_options import LogOptions
from uncork.store.layout import find_run
from uncork.workbench.profile.logs import STORED
from uncork.workbench.profile.portions.unfinished import UnfinishedLogs

Read = Callable[[LogRequest], LogReading]


def reader_of(
    options: LogOptions,
    root: Path,
    progress: Callable[[int, int], None] | None = None,
    carry_out: CarryOut | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Read:
    """Return how the options want logs to be read. `carry_out` carries out tasks elsewhere, as on a cluster.

    What tasks have gathered is kept under `root` if reading is interrupted, unless it must be anonymous;
    `notify` says so, and what was kept before.

    Raises:
        SetupError: if there is no run to add to.
        UsageError: if options exclude each other, or the run cannot be added to.
    """
    keeps = options.extendable or options.add_to is not None
    if carry_out is None and not options.processes and not keeps:
        return partial(read_logs, progress=progress)
    for name, given in (("--follow", options.follow), ("--events", options.events is not None)):
        if given:
            asked = "--processes, --nodes, --add-to and --extendable"
            raise UsageError(f"{name} cannot be combined with {asked}: leave one of them out")
    if keeps and options.anonymize:
        raise UsageError(
            "--anonymize cannot be combined with --add-to or --extendable, which store statements with values"
        )
    folder = None if options.add_to is None else find_run(root, options.add_to)
    carries_out = carry_out or partial(in_processes, processes=options.processes or 1)

    def read(request: LogRequest) -> LogReading:
        versions = {log_name(path): _version(path) for path in request.paths}
        before, earlier = (None, {}) if folder is None else _stored(folder, request, versions)
        unfinished = None if options.anonymize else UnfinishedLogs(root, notify)
        tasks = carries_out if unfinished is None else unfinished.keeping(carries_out)
        reading = read_in_tasks(request, tasks, before=before, keep=keeps)
        if unfinished is not None and reading.facts["stopped"]:
            unfinished.interrupted()
        elif unfinished is not None:
            # Not yet: the run is still to be stored, and until then the command may be killed.
            reading = replace(reading, forget=unfinished.forget)
        if not keeps:
            return reading
        return replace(reading, facts={**reading.facts, "versions": {**earlier, **versions}})

    return read


def _version(log: Path | LogObject) -> str:
    """Return what changes when a log changes: an object's etag, or the size and time of change of a file."""
    if isinstance(log, LogObject):
        return log.etag or str(log.size)
    return f"{log.stat().st_size} {log.stat().st_mtime_ns}" if log.is_file() else ""


def _stored(
    folder: Path, request: LogRequest, versions: Mapping[str, str]
) -> tuple[bytes, Mapping[str, str]]:
    """Return what a run has stored for later ones, and the versions of the logs that it has read.

    Raises:
        UsageError: if it has stored nothing, counts other entries, or has read one of the logs already.
    """
    from uncork.store.profile_tables import read_evidence  # noqa: PLC0415 -- logs are read while it loads

    path = folder / STORED
    if not path.is_file():
        raise UsageError(
            f"logs cannot be added to the run {folder.name}: read its logs again with --extendable, which "
            "also stores what --add-to requires"
        )
    facts, _ = read_evidence(folder, ())
    wanted = None if request.filter is None else json.loads(json.dumps(asdict(request.filter)))
    if facts["filter"] != wanted:
        raise UsageError(f"the run {folder.name} counts entries by other filters: give the same ones")
    earlier: dict[str, str] = facts["versions"]
    for name, version in versions.items():
        if earlier.get(name) == version:
            raise UsageError(f"the run {folder.name} has read {name} already: name only later logs")
    try:
        return path.read_bytes(), earlier
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror or error}") from error
