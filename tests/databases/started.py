"""The servers of the databases of known health: one for most, and one for each group of own settings."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from databases.scenario import SETTINGS, Scenario
from uncork.engines.embedded import EmbeddedServer

_CONNECTS_S = 30.0


class Servers:
    """Start each server when the first scenario needs it, and stop all at the end of a `with` block.

    Each has the given `settings` besides those of its scenarios.
    """

    def __init__(self, binaries: Path | None = None, settings: Mapping[str, object] | None = None) -> None:
        self._binaries = binaries
        self._settings = {**SETTINGS, **(settings or {})}
        self._started: dict[str, EmbeddedServer] = {}
        self._others: list[EmbeddedServer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in (*self._others, *self._started.values()):
            server.stop()

    def of(self, scenario: Scenario) -> EmbeddedServer:
        """Return the server of a scenario; scenarios with the same settings share it."""
        key = repr((sorted(scenario.settings.items()), sorted((scenario.standby or {}).items())))
        if key not in self._started:
            self._started[key] = EmbeddedServer(
                {**self._settings, **scenario.settings}, binaries=self._binaries
            )
            self._started[key].start()
            if scenario.standby is not None:
                standby = Standby(self._started[key], dict(scenario.standby), self._binaries)
                self._others.append(standby)
                standby.start()
                standby.wait_for_primary()
        return self._started[key]


class Standby(EmbeddedServer):
    """A standby of a server that has just been started.

    Both begin as copies of the same new cluster, so the standby needs no base backup: it streams everything.
    """

    def __init__(self, primary: EmbeddedServer, settings: dict[str, object], binaries: Path | None) -> None:
        super().__init__({**settings, "primary_conninfo": primary.conninfo()}, binaries=binaries)
        self._primary = primary

    def _initialise(self, binaries: Path) -> None:
        super()._initialise(binaries)
        signal = self._root / "data" / "standby.signal"
        signal.touch()
        if self._account.change:
            os.chown(signal, self._account.uid, self._account.gid)

    def wait_for_primary(self) -> None:
        """Wait until the primary waits for this standby."""
        deadline = time.monotonic() + _CONNECTS_S
        with psycopg.connect(self._primary.conninfo(), autocommit=True) as connection:
            query = "SELECT FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
            while connection.execute(query).fetchone() is None:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the standby does not stream from its primary: {self.log_tail}")
                time.sleep(0.05)
