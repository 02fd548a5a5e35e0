"""Keep what tasks gather from logs until all are done, so that a reading that was interrupted can go on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from uncork import __version__
from uncork.profile.logs import core_request, log_name
from uncork.profile.objects.address import LogObject
from uncork.profile.portions.joining import CarryOut, Done, ignore, is_complete
from uncork.profile.portions.tasks import LogTask

_FOLDER: Final = ".unfinished"
"""The folder for kept results, beside the runs."""
_DAYS: Final = 7
"""How long results are kept that nobody asks for."""
_DIGEST: Final = hashlib.sha256().digest_size


class UnfinishedLogs:
    """Results of tasks that are kept under a folder of runs until `forget`.

    A result belongs to its task: to the file with its size and time of change (or the object with its etag),
    the range of bytes, and all options that change what is gathered. Of a log that could not be read to its
    end, nothing is kept. `notify` receives a sentence for people.
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
    """Yield nothing, as a generator that can be closed."""
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
    """Return what was kept; None if it was deleted or is damaged."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    digest, portion = stored[:_DIGEST], stored[_DIGEST:]
    return portion if hashlib.sha256(portion).digest() == digest else None
