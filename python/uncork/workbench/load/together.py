"""Send several loads that start at the same instant, and store them as one run.

Each load is a complete run of its own, in ``parts/`` of the run's folder, and runs in a thread of
its own. When all are prepared, they get the same start on the monotonic clock of this machine.
Until then they connect and warm up. Ctrl-C ends all of them, and so does a load that cannot start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Final

from uncork.errors import UncorkError
from uncork.load.parts import Lease, PartControl
from uncork.model.load import LoadOutcome, LoadProgress
from uncork.model.stored_run import RunStatus
from uncork.requests.jobs import AnyLoad
from uncork.store.layout import read_manifest
from uncork.workbench.load.sessions import LoadSession, checked
from uncork.workbench.profile.databases import new_part
from uncork.workbench.run_record import RunRecord, draft, start_run
from uncork.workbench.signals import uninterrupted

Notify = Callable[[str, str], None]
"""Receives the name of a load, and a line about what it does."""
Progress = Callable[[str, LoadProgress], None]

_LEAD_NS: Final = 1_000_000_000
"""Time to connect after all loads are prepared, in addition to the longest warm-up."""
_LEAD_OF_CLIENT_NS: Final = 2_000_000
"""Additional time to connect for each client."""


def new_together(root: Path, jobs: Mapping[str, AnyLoad], command: str) -> TogetherSession:
    """Check the loads, and start their run.

    Raises:
        SetupError: if its folder cannot be written.
        ConnectError, UsageError: if a load is wrong; the message begins with its name.
    """
    sessions: dict[str, LoadSession] = {}
    for name, job in jobs.items():
        try:
            sessions[name] = checked(job)
        except UncorkError as error:
            raise type(error)(f"{name}: {error}") from error
    manifest = draft(
        kind="together",
        name=f"together-{'-'.join(jobs)}",
        question=f"together: {', '.join(jobs)}",
        server=", ".join(dict.fromkeys(session.place for session in sessions.values())),
        seed=next(iter(jobs.values())).spec.seed,
        options={"command": command, "loads": list(jobs)},
    )
    record = start_run(root, manifest)
    for name, session in sessions.items():
        part = session.manifest("load", name, session.question)
        session.begin(new_part(record.folder, name, part))
    return TogetherSession(record, sessions)


class TogetherSession:
    """Loads that start together. `run` carries them out; the run's folder exists from the start."""

    def __init__(self, record: RunRecord, sessions: Mapping[str, LoadSession]) -> None:
        self.record = record
        self.folder = record.folder
        self.sessions = sessions
        self._stop = threading.Event()
        self._start_ns = 0
        self._ready = threading.Barrier(len(sessions), self._set_start)

    def run(self, progress: Progress | None, notify: Notify) -> RunStatus:
        """Send all loads and store their results; return how the run ended.

        Raises:
            UncorkError: if a load cannot start, or its result cannot be stored; the others are ended.
        """
        with self.record as record, ThreadPoolExecutor(len(self.sessions), "uncork-load") as pool:
            offset_ns = time.time_ns() - time.monotonic_ns()
            control = PartControl(Lease(), self._await_start, offset_ns, self._stop.is_set)
            futures = {
                name: pool.submit(
                    session.run,
                    None if progress is None else partial(progress, name),
                    partial(notify, name),
                    control,
                )
                for name, session in self.sessions.items()
            }
            interrupted = self._wait(futures)
            with uninterrupted():
                wait(futures.values())
                record.keep = any(self._measured(name) for name in futures)
                for name, future in futures.items():
                    error = future.exception()
                    if isinstance(error, UncorkError):
                        raise type(error)(f"{name}: {error}") from error
                    if error is not None and not isinstance(error, KeyboardInterrupt):
                        raise error
                record.close(*self._ending(interrupted=interrupted))
        return record.status or "complete"

    def _wait(self, futures: Mapping[str, Future[LoadOutcome]]) -> bool:
        """Wait for all loads; return whether Ctrl-C ended them. An error in one ends the others."""
        interrupted = False
        try:
            done, _ = wait(futures.values(), return_when=FIRST_EXCEPTION)
            failed = any(future.exception() is not None for future in done)
        except KeyboardInterrupt:
            interrupted = failed = True
        if failed:
            with uninterrupted():
                self._stop.set()
                self._ready.abort()
        return interrupted

    def _ending(self, *, interrupted: bool) -> tuple[RunStatus, str]:
        endings = {
            name: read_manifest(session.folder)
            for name, session in self.sessions.items()
            if self._measured(name)
        }
        failed = [name for name, ending in endings.items() if ending.status == "failed"]
        stopped = interrupted or any(ending.status == "interrupted" for ending in endings.values())
        status: RunStatus = "interrupted" if stopped else "failed" if failed else "complete"
        reason = f"{failed[0]}: {endings[failed[0]].attempts[-1].reason}" if failed else str(status)
        self.record.status = status
        return status, reason

    def _measured(self, name: str) -> bool:
        return (self.sessions[name].folder / "load_totals").is_dir()

    # ---- the start ----

    def _set_start(self) -> None:
        """Give all loads their start, when the last of them is prepared."""
        specs = [session.job.spec for session in self.sessions.values()]
        clients = sum(spec.clients for spec in specs)
        lead_ns = max(spec.warmup_ns for spec in specs) + _LEAD_NS + clients * _LEAD_OF_CLIENT_NS
        self._start_ns = time.time_ns() + lead_ns

    def _await_start(self) -> int:
        try:
            self._ready.wait()
        except threading.BrokenBarrierError:
            raise KeyboardInterrupt from None  # another load cannot start, or Ctrl-C
        return self._start_ns
