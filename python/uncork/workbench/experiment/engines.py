"""Build the server and the load of an experiment from the engines of its variants."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncork.engines.drivers.dbapi import DbapiEngine
from uncork.engines.postgres import PostgresServer
from uncork.engines.router import EngineRouter
from uncork.errors import UsageError
from uncork.experiment.plan.server_settings import server_settings
from uncork.experiment.ports import Load, Server
from uncork.experiment.spec.schema import Spec
from uncork.load.blocks import run_block
from uncork.load.http_answers import ask
from uncork.load.http_trials import HttpLoad
from uncork.load.sql import SqlLoad
from uncork.model.block import BlockMeasurement, BlockRequest
from uncork.model.engine import POSTGRESQL, engine_kind
from uncork.model.http_trial import AskedRequest, HttpAnswer, HttpTrial, TrialRequest
from uncork.model.measurement import Measurement
from uncork.model.service import Served


class TrialLoad:
    """Implements the runner's `Load` port: the Rust core for PostgreSQL and HTTP, else Python drivers."""

    def __init__(self, router: EngineRouter | None = None, *, sample: bool = True) -> None:
        self._router = router
        self._sample = sample
        self._sql = SqlLoad(sample=sample)
        self._http = HttpLoad(sample=sample)

    def run(self, request: TrialRequest) -> Measurement:
        """Carry out one trial. Raises LoadError."""
        if isinstance(request, HttpTrial):
            return self._http.run(request)
        if self._router is None or request.target.engine == POSTGRESQL:
            return self._sql.run(request)
        return self._router.run(request)

    def run_block(self, block: BlockRequest) -> BlockMeasurement:
        """Carry out a block whose arms all use PostgreSQL, or all HTTP. Raises LoadError."""
        return run_block(block, sample=self._sample)

    def ask(self, served: Served, requests: Sequence[AskedRequest], timeout_ns: int) -> list[HttpAnswer]:
        """Send requests to a service one by one; return the answers. Raises LoadError if one is missing."""
        return ask(served, requests, timeout_s=timeout_ns / 1e9)


def engines_for(
    spec: Spec,
    postgres: Callable[[Mapping[str, object]], PostgresServer],
    apart: Mapping[str, Callable[[], PostgresServer]] | None = None,
) -> tuple[Server, Load]:
    """Return the server and the load of an experiment.

    `postgres` creates a server with settings of a variant that apply to a whole server; variants with the
    same ones share it. `apart` creates the existing servers that variants name.

    Raises:
        UsageError: if an option of `connect` names an environment variable that is not set, or a variant
            names an unknown server.
    """
    servers = _servers(spec, postgres, apart or {})
    if spec.engines == (POSTGRESQL,) and len(set(map(id, servers.values()))) == 1:
        return servers[spec.baseline], TrialLoad(sample=not spec.observes)
    known: dict[tuple[str, str], DbapiEngine] = {}
    driven = {}
    for name, variant in spec.variants.items():
        engine = spec.engine(name)
        if engine != POSTGRESQL:
            key = (engine, repr(variant.connect))
            if key not in known:
                known[key] = DbapiEngine(engine_kind(engine), _options(name, variant.connect))
            driven[name] = known[key]
    router = EngineRouter(servers, driven)
    return router, TrialLoad(router, sample=not spec.observes)


def _servers(
    spec: Spec,
    postgres: Callable[[Mapping[str, object]], PostgresServer],
    apart: Mapping[str, Callable[[], PostgresServer]],
) -> dict[str, PostgresServer]:
    """Return the server of each variant on PostgreSQL; each server is created once."""
    made: dict[tuple[str | None, str], PostgresServer] = {}
    found = {}
    for name, variant in spec.variants.items():
        if spec.engine(name) != POSTGRESQL:
            continue
        if variant.server is not None and variant.server not in apart:
            raise UsageError(
                f'variants.{name}.server: there is no server "{variant.server}"; name it with `uncork guard '
                f"--{variant.server} dsn=...`"
            )
        own = server_settings(spec, name)
        key = (variant.server, repr(sorted(own.items())))
        if key not in made:
            made[key] = postgres(own) if variant.server is None else apart[variant.server]()
        found[name] = made[key]
    return found


def _options(variant: str, connect: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a driver's `connect`, with environment variables replaced by their values."""
    options = dict(connect)
    for name, value in connect.items():
        if isinstance(value, str) and value.startswith("$"):
            if value[1:] not in os.environ:
                raise UsageError(
                    f"variants.{variant}.connect.{name}: environment variable {value[1:]} is not set"
                )
            options[name] = os.environ[value[1:]]
    return options
