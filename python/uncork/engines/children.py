"""Start an engine's client in a process of its own, send it jobs, and read its answers."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from subprocess import PIPE, TimeoutExpired
from typing import Any

from uncork.errors import ServerCrash, SetupError
from uncork.spawn.child import start

_GRACE_S = 20.0
"""How much longer than its job's own limit a client may take, to load a driver and open files."""

_OPENED_WITH = ("engine", "module", "path", "options", "settings")
"""The fields of a job that decide how its process opens the engine."""

_LEAVE_S = 20.0
"""How long a client may take to close an engine's files."""


class Child:
    """One client process with its job. Leaving the context ends the process."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the process
        self._process = start(
            [sys.executable, "-m", "uncork.engines.drivers.client"],
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._errors,
            env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"},
        )
        self._buffer = b""
        self.tell(json.dumps(job))

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def tell(self, line: str) -> None:
        """Send a line to the process."""
        assert self._process.stdin is not None  # noqa: S101 -- opened as a pipe
        with contextlib.suppress(BrokenPipeError):  # `answer` reports that the process has ended
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """Return the next answer, or None if there is none in time.

        Raises:
            ServerCrash: if the process ended without an answer.
        """
        deadline = time.monotonic() + seconds + _GRACE_S
        assert self._process.stdout is not None  # noqa: S101 -- opened as a pipe
        stream = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                return None
            read = os.read(stream, 1 << 20)
            if not read:
                raise ServerCrash(self._exit_reason())
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def leave(self) -> None:
        """Let the process close its engine and exit; kill it if that takes too long."""
        assert self._process.stdin is not None  # noqa: S101 -- opened as a pipe
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(TimeoutExpired):
            self._process.wait(_LEAVE_S)
        self.end()

    def end(self) -> None:
        """Kill the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _exit_reason(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().decode(errors="replace").splitlines()]
        shown = "; ".join(line for line in lines[-3:] if line)
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"the engine's process ended ({how}{': ' + shown if shown else ''})"


class Crew:
    """Client processes that are kept for the next trial on the same database.

    Starting a process, loading its driver and opening an engine's files takes longer than most trials. So the
    next trial on a database reuses the processes, unless it needs other settings or another number of them.
    """

    def __init__(self) -> None:
        self._living: dict[str, tuple[tuple[str, int], list[Child]]] = {}

    def take(self, database: str, jobs: Sequence[Mapping[str, Any]]) -> list[Child]:
        """Send each job to a process of its own, and return the processes in the order of the jobs."""
        same = json.dumps([jobs[0][name] for name in _OPENED_WITH], sort_keys=True), len(jobs)
        known, children = self._living.get(database, (None, []))
        if known == same:
            for child, job in zip(children, jobs, strict=True):
                child.tell(json.dumps(job))
            return children
        self.leave(database)
        children = []
        self._living[database] = (same, children)
        for job in jobs:
            children.append(Child(job))
        return children

    def leave(self, database: str | None = None) -> None:
        """Let the processes of one database, or of all databases, close their engine and exit."""
        for child in self._gone(database):
            child.leave()

    def end(self, database: str | None = None) -> None:
        """Kill the processes of one database, or of all databases, at once. Their work is lost."""
        for child in self._gone(database):
            child.end()

    def _gone(self, database: str | None) -> list[Child]:
        names = list(self._living) if database is None else [database]
        return [child for name in names if name in self._living for child in self._living.pop(name)[1]]


def ask(job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Run a job that has one answer, in a process of its own, and return the answer.

    Raises:
        SetupError: if the job failed, with the engine's message, or took too long.
        ServerCrash: if the engine's process ended.
    """
    with Child(job) as child:
        answer = child.answer(seconds)
    if answer is None:
        raise SetupError(f"it took longer than {seconds:g} s")
    if "error" in answer:
        line = f"line {answer['line']}: " if "line" in answer else ""
        raise SetupError(f"{line}{answer['error']}")
    return answer
