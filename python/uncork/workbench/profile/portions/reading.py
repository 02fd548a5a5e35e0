"""Read logs in several processes, and after logs that an earlier run has read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Final

from uncork import __version__
from uncork.errors import SetupError, UsageError
from uncork.profile.logs import LogReading, LogRequest, core_request, log_name, read_logs
from uncork.profile.objects.address import LogObject
from uncork.profile.portions.local import in_processes
from uncork.profile.portions.tasks import CarryOut, Done, LogTask, ignore, is_complete, read_in_tasks
from uncork.requests.profile_options import LogOptions
from uncork.store.layout import find_run
from uncork.workbench.profile.logs import STORED

Read = Callable[[LogRequest], LogReading]


def reader_of(
    options: LogOptions,
    root: Path,
    progress: Callable[[int, int], None] | None = None,
    carry_out: CarryOut | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Read:
    """Return how the options want logs to be read. `carry_out` carries out tasks elsewhere, as on a cluster.

    What tasks have gathered is kept under `root` if reading is interrupted, unless it must be
    anonymous; `notify` says so, and what was kept before.

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
    from uncork.store.tables import read_evidence  # noqa: PLC0415 -- logs are read while it loads

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


_FOLDER: Final = ".unfinished"
"""The folder for kept results, beside the runs."""
_DAYS: Final = 7
"""How long results are kept that nobody asks for."""
_DIGEST: Final = hashlib.sha256().digest_size


class UnfinishedLogs:
    """Results of tasks that are kept under a folder of runs until `forget`.

    A result belongs to its task: to the file with its size and time of change (or the object with
    its etag), the range of bytes, and all options that change what is gathered. Of a log that could
    not be read to its end, nothing is kept. `notify` receives a sentence for people.
    """

    def __init__(self, root: Path, notify: Callable[[str], None]) -> None:
        self._folder = root / _FOLDER
        self._notify = notify
        self._paths: list[Path] = []

    def keeping(self, carry_out: CarryOut) -> CarryOut:
        """Return what carries out only tasks without a kept result, and keeps the results of the others."""

        def carry_on(tasks: Sequence[LogTask], *, done: Done = ignore) -> Iterator[bytes]:
            self._prune()
            self._paths = [self._folder / _key(task) for task in tasks]
            paths = {task.number: path for task, path in zip(tasks, self._paths, strict=True)}
            kept = {task.number for task, path in zip(tasks, self._paths, strict=True) if path.is_file()}
            if kept:
                self._notify(
                    f"{len(kept)} of {len(tasks)} parts of the logs were read before an interruption, and "
                    "are not read again"
                )
            rest = [task for task in tasks if task.number not in kept]

            def keep(task: LogTask, portion: bytes) -> None:
                if is_complete(portion):
                    self._keep(paths[task.number], portion)
                done(task, portion)

            carried_out = carry_out(rest, done=keep) if rest else _nothing()
            with closing(carried_out) as portions:  # type: ignore[type-var]
                for task, path in zip(tasks, self._paths, strict=True):
                    portion = _read(path) if task.number in kept else None
                    if portion is None and task.number in kept:
                        with closing(carry_out([task])) as again:  # type: ignore[type-var]
                            portion = next(again)
                    elif portion is None:
                        portion = next(portions)
                    yield portion

        return carry_on

    def interrupted(self) -> None:
        """Say how to go on."""
        kept = sum(path.is_file() for path in self._paths)
        if kept:
            self._notify(
                f"{kept} of {len(self._paths)} parts of the logs were read and are kept for {_DAYS} "
                "days: the same command reads only the rest"
            )

    def forget(self) -> None:
        """Delete the kept results, and drafts that a killed process left: the run is stored."""
        own = {path.name for path in self._paths}
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if path.name.partition(".")[0] in own:
                    path.unlink(missing_ok=True)
            self._folder.rmdir()

    def _keep(self, path: Path, portion: bytes) -> None:
        # Without it, the task is done again: a full disk is reported when the run is stored.
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{time.monotonic_ns()}.new")
            draft.write_bytes(hashlib.sha256(portion).digest() + portion)
            draft.replace(path)

    def _prune(self) -> None:
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if path.stat().st_mtime < time.time() - _DAYS * 86_400:
                    path.unlink()


def _nothing() -> Iterator[bytes]:
    yield from ()


def _key(task: LogTask) -> str:
    """Return a name that no other task has, nor the same one after its log has changed."""
    (log,) = task.request.paths
    name = log_name(log) if isinstance(log, LogObject) else str(log.absolute())
    request = core_request(task.request, all_servers=task.servers, span=task.span).decode()
    # What has no version could change unseen.
    version = task.version or time.time_ns()
    return hashlib.sha256(json.dumps([__version__, name, version, request]).encode()).hexdigest()


def _read(path: Path) -> bytes | None:
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    digest, portion = stored[:_DIGEST], stored[_DIGEST:]
    return portion if hashlib.sha256(portion).digest() == digest else None
