"""Observers that can be switched on and off many times a second."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol

from uncork.engines.conninfo import Address
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import UncorkError
from uncork.load.sampler import Sampler, trial_watch
from uncork.model.server import Target
from uncork.workbench.overhead.catalogue import CATALOGUE, WATCH_S, read_catalogue_once
from uncork.workbench.overhead.observers import SESSIONS_HZ
from uncork.workbench.profile.database_watch import Samples
from uncork.workbench.signals import uninterrupted

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


class _EndedError(Exception):
    """The observer ended during a reading."""


class _Watching(ABC):
    """An observer with a permanent connection, and a thread that queries while it is on."""

    def __init__(self, target: Target) -> None:
        connection: dict[str, Any] = {**target.connection}
        self._watch = ServerWatch(Address(**connection).conninfo(target.database))
        self._change = threading.Condition()
        self._on = self._ended = False
        self._trouble: UncorkError | None = None
        self._thread = threading.Thread(target=self._work, name="observer", daemon=True)

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
        if self._thread.ident is not None:
            self._thread.join()
        self._watch.close()

    @abstractmethod
    def _observe(self) -> None:
        """Observe whenever it is due, until the observer has ended."""

    def _begin(self) -> None:
        self._thread.start()

    def _work(self) -> None:
        try:
            self._observe()
        except _EndedError:
            pass
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


class _Sessions(_Watching):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._watch.begin_sampling()
        self._found = Samples(time.monotonic_ns(), time.time_ns() // 1000)
        self._begin()

    def _observe(self) -> None:
        looks, spent = 0, 0
        while self._due(_PERIOD_NS - spent):
            begun = time.monotonic_ns()
            blockers = looks % _BLOCKERS_EVERY == 0
            look = self._watch.look(self._found.known, blockers=blockers)
            if look is not None:
                self._found.add(look, blockers)
            looks += 1
            spent = time.monotonic_ns() - begun


class _Catalogue(_Watching):
    """A watch's reading of the catalogue: its steps come evenly, as many a second as in a watch of 60 s.

    A watch makes them one after another instead. Spread out, they cost as much, and each slice has its part.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        steps = [0]

        def count() -> None:
            steps[0] += 1

        read_catalogue_once(self._watch, count)  # the first one is not measured: it also fills caches
        self._period_ns = round(WATCH_S * 1e9 / (steps[0] + 1))
        self._begin()

    def _observe(self) -> None:
        while self._due(self._period_ns):
            read_catalogue_once(self._watch, self._step)

    def _step(self) -> None:
        if not self._due(self._period_ns):
            raise _EndedError


SWITCHED: Final[Mapping[str, Callable[[Target], _System | _Watching]]] = {
    "system": _System,
    "sessions": _Sessions,
    CATALOGUE: _Catalogue,
}
"""The observers that can be switched. perf cannot, because it writes its samples later, at any time."""


@contextmanager
def switches(names: tuple[str, ...], target: Target) -> Iterator[Mapping[str, Switch]]:
    """Start observers, all switched off; yield them by name.

    Raises SetupError or ConnectError if one cannot be started.
    """
    with ExitStack() as stack:
        found: dict[str, Switch] = {}
        for name in names:
            one = SWITCHED[name](target)
            stack.callback(_close, one)
            found[name] = one
        yield found


def _close(one: _System | _Watching) -> None:
    with uninterrupted():
        one.close()
