"""Observers that can be switched on and off many times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol

from uncork.engines.conninfo import Address
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import UncorkError
from uncork.load.sampler import Sampler, trial_watch
from uncork.model.server import Target
from uncork.workbench.overhead.observers import SESSIONS_HZ
from uncork.workbench.profile.database_watch import Samples
from uncork.workbench.signals import uninterrupted

__all__ = ["SWITCHED", "Switch", "switches"]

_PERIOD_NS: Final = 1_000_000_000 // SESSIONS_HZ
_BLOCKERS_EVERY: Final = SESSIONS_HZ // 2
"""One sample in this many asks for blockers: two a second, as in `uncork profile db`."""


class Switch(Protocol):
    """An observer that exists all the time and observes while it is on; off-time does not count."""

    def switch(self, on: bool) -> None:
        """Turn the observer on or off. Raises UncorkError if it stopped early."""


class _System:
    """The sampler of machine and processes, which pauses while it is off."""

    def __init__(self, target: Target) -> None:
        self._sampler = Sampler(trial_watch(target.pid))
        self._sampler.rest(True)

    def switch(self, on: bool) -> None:
        self._sampler.rest(not on)

    def close(self) -> None:
        self._sampler.stop()


class _Sessions:
    """The sampler of sessions: a permanent connection, and a thread that queries while it is on."""

    def __init__(self, target: Target) -> None:
        connection: dict[str, Any] = {**target.connection}
        self._watch = ServerWatch(Address(**connection).conninfo(target.database))
        self._watch.begin_sampling()
        self._found = Samples(time.monotonic_ns(), time.time_ns() // 1000)
        self._change = threading.Condition()
        self._on = self._ended = False
        self._trouble: UncorkError | None = None
        self._thread = threading.Thread(target=self._work, name="sessions", daemon=True)
        self._thread.start()

    def switch(self, on: bool) -> None:
        if self._trouble is not None:
            raise self._trouble
        with self._change:
            self._on = on
            self._change.notify()

    def close(self) -> None:
        with self._change:
            self._ended = True
            self._change.notify()
        self._thread.join()
        self._watch.close()

    def _work(self) -> None:
        looks, spent = 0, 0
        try:
            while self._due(_PERIOD_NS - spent):
                begun = time.monotonic_ns()
                blockers = looks % _BLOCKERS_EVERY == 0
                look = self._watch.look(self._found.texts.keys(), blockers=blockers)
                if look is not None:
                    self._found.add(look, blockers)
                looks += 1
                spent = time.monotonic_ns() - begun
        except UncorkError as error:
            self._trouble = error

    def _due(self, left: int) -> bool:
        """Wait until the observer was on for `left` nanoseconds; return False if it has ended."""
        with self._change:
            while not self._ended:
                if not self._on:
                    self._change.wait()
                    continue
                begun = time.monotonic_ns()
                self._change.wait(left / 1e9)
                left -= time.monotonic_ns() - begun
                if left <= 0:
                    return True
        return False


SWITCHED: Final[Mapping[str, Callable[[Target], _System | _Sessions]]] = {
    "system": _System,
    "sessions": _Sessions,
}
"""The observers that can be switched. perf cannot, because it writes its samples later, at any time."""


@contextmanager
def switches(names: tuple[str, ...], target: Target) -> Iterator[Mapping[str, Switch]]:
    """Start observers, all switched off; yield them by name.

    Raises:
        SetupError, ConnectError: if one cannot be started.
    """
    with ExitStack() as stack:
        found: dict[str, Switch] = {}
        for name in names:
            one = SWITCHED[name](target)
            stack.callback(_close, one)
            found[name] = one
        yield found


def _close(one: _System | _Sessions) -> None:
    with uninterrupted():
        one.close()
