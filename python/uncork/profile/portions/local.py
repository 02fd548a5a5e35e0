"""Carry out tasks of reading logs in processes of this machine."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from uncork.errors import SetupError
from uncork.profile.portions.tasks import Done, LogTask, ignore
from uncork.spawn.child import Child, scratch_folder, start

_ATTEMPTS: Final = 2
"""How often a task is begun: a process that ended may have been killed by mistake, but hardly twice."""


def in_processes(
    tasks: Sequence[LogTask],
    processes: int,
    began: Callable[[int, int], None] | None = None,
    done: Done = ignore,
) -> Iterator[bytes]:
    """Yield what each task has gathered, in order; `processes` carry out so many at once.

    A task whose process ended before its result was complete is carried out once more, by another process.
    `began` takes the number of a task and the process that begins it; `done` takes results as soon as they
    are complete. Raises SetupError if a log cannot be read, or the processes of a task ended twice.
    """
    with scratch_folder("uncork-logs-") as folder:
        crew = _Crew(tasks, folder, began, done)
        threads = [
            threading.Thread(target=crew.work, name=f"logs-{number}", daemon=True)
            for number in range(min(processes, len(tasks)))
        ]
        for thread in threads:
            thread.start()
        try:
            for task in tasks:
                yield crew.result(task.number)
        finally:
            crew.stop()
            for thread in threads:
                thread.join()


class _Crew:
    """Hands tasks to processes, one after another, and keeps their results until they are asked for."""

    def __init__(
        self, tasks: Sequence[LogTask], folder: Path, began: Callable[[int, int], None] | None, done: Done
    ) -> None:
        self._folder = folder
        self._began = began
        self._tell = done
        self._changed = threading.Condition()
        self._waiting = list(reversed(tasks))
        self._done: dict[int, Path] = {}
        self._trouble: SetupError | None = None
        self._children: list[Child] = []
        self._stopped = False

    def result(self, number: int) -> bytes:
        """Wait for what a task has gathered, and forget it."""
        with self._changed:
            self._changed.wait_for(lambda: number in self._done or self._trouble is not None)
            path = self._done.pop(number, None)
        if path is None:
            raise self._trouble or SetupError("a task has no result")
        stored = path.read_bytes()
        path.unlink()
        return stored

    def work(self) -> None:
        """Carry out tasks in a process until there are no more."""
        child: Child | None = None
        try:
            while (task := self._next()) is not None:
                for attempt in range(1, _ATTEMPTS + 1):
                    if child is None:
                        child = self._start()
                    path = self._folder / f"{task.number}-{attempt}"
                    trouble = self._carry_out(child, task, path)
                    if trouble is None or self._stopped:
                        break
                    _end(child)
                    status, child = child.returncode, None
                    if attempt == _ATTEMPTS or trouble:
                        reason = trouble or f"its process ended twice (exit status {status})"
                        raise SetupError(reason if trouble else f"{task.name}: {reason}")
                if not self._stopped:
                    self._tell(task, path.read_bytes())
                with self._changed:
                    self._done[task.number] = path
                    self._changed.notify_all()
        except (SetupError, OSError) as error:
            with self._changed:
                failure = error if isinstance(error, SetupError) else SetupError(str(error))
                self._trouble = self._trouble or failure
                self._stopped = True
                self._changed.notify_all()
        finally:
            if child is not None:
                _end(child)

    def _carry_out(self, child: Child, task: LogTask, path: Path) -> str | None:
        """Return None if the result is complete, what is wrong with the logs, or "" if the process ended."""
        if child.stdin is None or child.stdout is None:
            return ""
        job = pickle.dumps((task, path))
        if self._began is not None:
            self._began(task.number, child.pid)
        try:
            child.stdin.write(b"%d\n%b" % (len(job), job))
            child.stdin.flush()
            answer: bytes = child.stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            return ""
        if answer == b"done\n":
            return None
        return answer.decode().strip().replace("\x00", "\n")

    def _start(self) -> Child:
        command = [sys.executable, "-m", "uncork.profile.portions.worker"]
        child = start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with self._changed:
            self._children.append(child)
            if self._stopped:
                child.kill()
        return child

    def _next(self) -> LogTask | None:
        with self._changed:
            return self._waiting.pop() if self._waiting and not self._stopped else None

    def stop(self) -> None:
        """End all processes."""
        with self._changed:
            self._stopped = True
            children = list(self._children)
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                child.kill()


def _end(child: Child) -> None:
    child.kill()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    child.wait()
