"""Measure what a server pays for one reading of its catalogue, which each watch of a server makes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from statistics import mean
from typing import Any, Final

from uncork.engines.conninfo import Address
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.observing import LockProbe
from uncork.errors import UncorkError
from uncork.model.results.observer_cost import CatalogueCost
from uncork.model.server import Target
from uncork.workbench.overhead.observers import process_cpu_ns
from uncork.workbench.profile.database_watch import LookedBack, Samples, look_back

CATALOGUE: Final = "catalogue"
WATCH_S: Final = 60.0
"""The length of a watch by default, with one reading."""
_READINGS: Final = 5
_LONGEST_S: Final = 20.0
"""Readings to measure, unless they take longer than this."""
_LOOKS: Final = 5
_LOOK_S: Final = 0.01
"""Samples before a reading, whose texts name tables as those of a watch do, and the time between them."""


def catalogue_cost(target: Target) -> CatalogueCost:
    """Read the catalogue of a server several times, each over a new connection, as a watch reads it.

    Raises ConnectError or ServerCrash if the server cannot be reached, or goes away.
    """
    elapsed: list[int] = []
    own: list[int] = []
    server: list[int] = []
    held: list[LockProbe] = []
    tables = 0
    begun = time.monotonic()
    while len(elapsed) < _READINGS and (not elapsed or time.monotonic() - begun < _LONGEST_S):
        connection: dict[str, Any] = {**target.connection}
        conninfo = Address(**connection).conninfo(target.database)
        before, started = time.thread_time_ns(), time.monotonic_ns()
        with closing(ServerWatch(conninfo)) as watch, _probed(conninfo, watch.pid) as probe:
            tables = read_catalogue_once(watch)
            used = process_cpu_ns(watch.pid) if target.pid is not None else None
            own.append(time.thread_time_ns() - before)
            elapsed.append(time.monotonic_ns() - started)
        if used is not None:
            server.append(used)
        held.append(probe)
    return CatalogueCost(
        readings=len(elapsed),
        tables=tables,
        elapsed_ns=mean(elapsed),
        observer_ns=mean(own),
        server_ns=mean(server) if len(server) == len(elapsed) else None,
        lock_ns=max(probe.longest_ns for probe in held),
        lock_looks=sum(probe.looks for probe in held),
        watch_ns=round(WATCH_S * 1e9),
    )


def read_catalogue_once(watch: ServerWatch, between: Callable[[], None] = lambda: None) -> int:
    """Read what a watch reads before and after its samples; return the number of tables read in detail.

    `between` is called between the steps. Raises ServerCrash if the server goes away.
    """
    found = Samples(time.monotonic_ns(), time.time_ns() // 1000)
    facts = watch.facts()
    watch.begin_sampling()
    for _ in range(_LOOKS):
        look = watch.look(found.known, blockers=False)
        if look is not None:
            found.add(look, blockers=False)
        time.sleep(_LOOK_S)
    between()
    before = watch.snapshot(whole=False, between=between)
    last = LookedBack()
    look_back(watch, facts, before, found, last, values=True, between=between)
    tables: int = last.catalogue.facts["tables"]
    return tables


@contextmanager
def _probed(conninfo: str, pid: int) -> Iterator[LockProbe]:
    probe, ended = LockProbe(conninfo, pid), threading.Event()
    trouble: list[UncorkError] = []

    def work() -> None:
        try:
            while not ended.wait(probe.PAUSE_S):
                probe.look()
        except UncorkError as error:
            trouble.append(error)

    thread = threading.Thread(target=work, name="locks", daemon=True)
    thread.start()
    try:
        yield probe
    finally:
        ended.set()
        thread.join()
        probe.close()
    if trouble:
        raise trouble[0]
