"""Several engines in one experiment: each call about an arm goes to the engine of its variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncork.engines.drivers.dbapi import DbapiEngine, remove_folders
from uncork.engines.host import machine_facts
from uncork.engines.postgres import PostgresServer
from uncork.engines.services.local import last_line_of
from uncork.errors import SetupError
from uncork.model.answer import Answer
from uncork.model.measurement import Measurement
from uncork.model.request import LoadRequest
from uncork.model.server import ExecutedPlan, Relation, Snapshot, Target
from uncork.model.trial import Arm, Cell


class EngineRouter:
    """The runner's `Server` port over several engines, and the load on engines with a Python driver.

    `postgres` has the server of each variant that runs on PostgreSQL, `driven` the engine of every other
    variant; variants may share one.
    """

    def __init__(self, postgres: Mapping[str, PostgresServer], driven: Mapping[str, DbapiEngine]) -> None:
        self._postgres = dict(postgres)
        self._servers = tuple({id(server): server for server in postgres.values()}.values())
        self._driven = dict(driven)
        self._lacking: dict[str, str] = {}
        self._placements: dict[str, tuple[Cell, Arm]] = {}

    @property
    def _engines(self) -> tuple[DbapiEngine, ...]:
        return tuple({id(engine): engine for engine in self._driven.values()}.values())

    # ---- life ----

    @property
    def restartable(self) -> bool:
        """Whether every engine restarts for each round: embedded ones end with their clients."""
        own = all(server.restartable for server in self._servers)
        return own and all(engine.embedded for engine in self._driven.values())

    @property
    def alive(self) -> bool:
        """Whether every server answers; an embedded engine starts with the next trial."""
        return all(server.alive for server in self._servers)

    def start(self) -> None:
        """Start PostgreSQL, and check which other engines can be used.

        Raises SetupError, ConnectError if PostgreSQL cannot be used; see `PostgresServer.start`.
        """
        remove_folders()
        self._start_servers()
        reasons: dict[int, str | None] = {}
        for variant, engine in self._driven.items():
            if id(engine) not in reasons:
                reasons[id(engine)] = engine.start()
            reason = reasons[id(engine)]
            if reason is not None:
                self._lacking[variant] = f"{engine.kind.title}: {reason}"

    def _start_servers(self) -> None:
        """Start each PostgreSQL server. One that does not start with its settings is left out if others do.

        Raises SetupError, ConnectError if none starts.
        """
        started, failed = [], {}
        for server in self._servers:
            try:
                server.start()
                started.append(server)
            except SetupError as error:
                failed[id(server)] = error
        if failed and not started:
            raise next(iter(failed.values()))
        self._servers = tuple(started)
        for variant, server in self._postgres.items():
            if id(server) in failed:
                self._lacking[variant] = str(failed[id(server)])

    def lacking(self, variant: str, extensions: Sequence[str] = ()) -> str | None:
        """Return why a variant cannot run here; None if it can."""
        engine = self._of(variant)
        if isinstance(engine, PostgresServer) and variant not in self._lacking:
            return engine.lacking(variant, extensions)
        return self._lacking.get(variant)

    def restart(self) -> None:
        """Restart embedded PostgreSQL servers and other embedded engines."""
        for engine in self._engines:
            engine.restart()
        for server in self._servers:
            server.restart()

    def recover(self) -> None:
        """Restart PostgreSQL after a crash; other engines start again with the next trial."""
        for engine in self._engines:
            engine.restart()
        for server in self._servers:
            server.recover()

    def stop(self) -> None:
        """Remove everything that the run created, on every engine."""
        for engine in self._engines:
            engine.stop()
        for server in dict.fromkeys(self._postgres.values()):
            server.stop()

    # ---- data ----

    def begin_setup(self) -> None:
        """Make data quickly from now on, on every PostgreSQL of our own."""
        for server in self._servers:
            server.begin_setup()

    def end_setup(self) -> None:
        """Write all data to disk, and wait for it as usual from now on."""
        for server in self._servers:
            server.end_setup()

    def build_base(self, conninfo: str, *, keep_statistics: bool = False) -> str:
        """Copy a database to every PostgreSQL. Raises SetupError."""
        built = (server.build_base(conninfo, keep_statistics=keep_statistics) for server in self._servers)
        return ", ".join(dict.fromkeys(built))

    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        """Create a variant's data in a cell. Raises SetupError."""
        self._of(variant).build(cell, variant, script, settings, timeout_ns)

    def build_beside(self, name: str, script: str, timeout_ns: int) -> None:
        """Create an extra database, beside the variants' own, on every PostgreSQL. Raises SetupError."""
        for server in self._servers:
            server.build_beside(name, script, timeout_ns)

    def beside(self, name: str, variant: str) -> Target:
        """Return the target of an extra database on a variant's server."""
        return self._postgres[variant].beside(name, variant)

    def warm_beside(self) -> None:
        """Read the extra databases into the cache."""
        for server in self._servers:
            server.warm_beside()

    def restore(self, cell: Cell, arm: Arm) -> None:
        """Restore an arm's data to the state that `build` left."""
        self._of(arm.variant).restore(cell, arm)

    def restore_all(self, homes: Sequence[tuple[Cell, Arm]]) -> None:
        """Restore the data of several arms, and warm the data on PostgreSQL."""
        for server in self._servers:
            server.restore_all([home for home in homes if self._of(home[1].variant) is server])
        for home in homes:
            if home[1].variant in self._driven:
                self.restore(*home)

    def undo(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        """Execute statements that undo a trial, each in a transaction of its own. Raises SetupError."""
        self._of(arm.variant).undo(cell, arm, statements)

    def warm(self, cell: Cell, arm: Arm) -> None:
        """Read an arm's data into PostgreSQL's cache; other engines warm up in each trial."""
        engine = self._of(arm.variant)
        if isinstance(engine, PostgresServer):
            engine.warm(cell, arm)

    def cool(self, cell: Cell, arm: Arm) -> None:
        """Restart the server of an arm with empty caches. Raises SetupError if that is impossible."""
        self._postgres[arm.variant].cool(cell, arm)

    # ---- load ----

    def target(self, cell: Cell, arm: Arm) -> Target:
        """Return the target of an arm's load."""
        target = self._of(arm.variant).target(cell, arm)
        self._placements[target.database] = (cell, arm)
        return target

    def run(self, request: LoadRequest) -> Measurement:
        """Run a trial on an engine with a Python driver. Raises LoadError."""
        cell, arm = self._placements[request.target.database]
        return self._driven[arm.variant].run(cell, arm, request)

    # ---- questions ----

    def column(self, cell: Cell, arm: Arm, query: str) -> list[str | None]:
        """Return a query's first column. Raises SetupError if it fails."""
        return self._of(arm.variant).column(cell, arm, query)

    def answer_digest(self, cell: Cell, arm: Arm, query: str) -> str:
        """Return a digest of a query's rows that ignores their order. Raises SetupError if it fails."""
        return self._of(arm.variant).answer_digest(cell, arm, query)

    def answers(self, cell: Cell, arm: Arm, request: LoadRequest) -> list[Answer]:
        """Return the answers of a request's statements, in the form that all engines share."""
        return self._of(arm.variant).answers(cell, arm, request)

    def explain(
        self,
        cell: Cell,
        arm: Arm,
        name: str,
        statement: str,
        values: Sequence[str | None],
        settings: Mapping[str, str],
    ) -> ExecutedPlan | None:
        """Return a statement's plan; None if it has none."""
        return self._of(arm.variant).explain(cell, arm, name, statement, values, settings)

    def relations(self, cell: Cell, arm: Arm) -> list[Relation]:
        """Return the sizes of an arm's tables and indexes, as far as its engine reports them."""
        return self._of(arm.variant).relations(cell, arm)

    def command(
        self,
        cell: Cell,
        arm: Arm,
        command: Sequence[str],
        files: Mapping[str, str],
        environment: Mapping[str, str],
        timeout_ns: int,
    ) -> str:
        """Run a command about an arm's data; return the last line that it prints.

        Raises:
            SetupError: see `last_line_of`.
        """
        engine = self._of(arm.variant)
        target = engine.target(cell, arm) if isinstance(engine, PostgresServer) else None
        return last_line_of(
            command, files=files, environment=environment, target=target, timeout_ns=timeout_ns
        )

    def snapshot(self, cell: Cell, arm: Arm, *, updates: bool = False) -> Snapshot:
        """Read the counters of an arm's databases; with `updates` also those of updated rows."""
        return self._of(arm.variant).snapshot(cell, arm, updates=updates)

    def facts(self) -> dict[str, dict[str, str]]:
        """Describe the engines and the machine. With several servers, describe each under its variants."""
        found = self._servers[0].facts() if self._servers else {"machine": machine_facts()}
        for server in self._servers[1:]:
            names = [name for name, postgre in self._postgres.items() if postgre is server]
            found[f"server of {', '.join(names)}"] = server.facts()["server"]
        versions = {engine.kind.name: engine.version for engine in self._engines}
        return {**found, "engines": versions} if versions else found

    def _of(self, variant: str) -> PostgresServer | DbapiEngine:
        return self._driven[variant] if variant in self._driven else self._postgres[variant]
