"""The engines of an experiment: bring them together for a run, and say afterwards what their clients took."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncork.engines.drivers.driven import DrivenEngine
from uncork.engines.fleet import Fleet
from uncork.engines.postgres import PostgresServer
from uncork.errors import UsageError
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
from uncork.model.results.experiment import Comparison, EngineFacts
from uncork.model.service import Served
from uncork.model.trial import Cell
from uncork.model.units import format_duration
from uncork.store.query import RunReader

__all__ = ["TrialLoad", "client_doubts", "clients_in_doubt", "engine_facts", "engines_for"]


_CLIENTS_DIFFER = "the clients differ"


class TrialLoad:
    """The runner's `Load` port: the Rust core for PostgreSQL and HTTP, a Python driver for other engines."""

    def __init__(self, fleet: Fleet | None = None, *, sample: bool = True) -> None:
        self._fleet = fleet
        self._sample = sample
        self._sql = SqlLoad(sample=sample)
        self._http = HttpLoad(sample=sample)

    def run(self, request: TrialRequest) -> Measurement:
        """Carry out one trial. Raises LoadError."""
        if isinstance(request, HttpTrial):
            return self._http.run(request)
        if self._fleet is None or request.target.engine == POSTGRESQL:
            return self._sql.run(request)
        return self._fleet.run(request)

    def run_block(self, block: BlockRequest) -> BlockMeasurement:
        """Carry out a block whose arms are all on PostgreSQL, or all by HTTP. Raises LoadError."""
        return run_block(block, sample=self._sample)

    def ask(self, served: Served, requests: Sequence[AskedRequest], timeout_ns: int) -> list[HttpAnswer]:
        """Return what a service answers to requests, one by one. Raises LoadError if one has no answer."""
        return ask(served, requests, timeout_s=timeout_ns / 1e9)


def engines_for(
    spec: Spec,
    postgres: Callable[[], PostgresServer],
    apart: Mapping[str, Callable[[], PostgresServer]] | None = None,
) -> tuple[Server, Load]:
    """Return the server and the load of an experiment.

    `postgres` makes the server where one is needed, `apart` those of variants that have one of their own.

    Raises:
        UsageError: if an option of `connect` names a variable that the environment lacks, or a server is not
            known.
    """
    if spec.engines == (POSTGRESQL,) and not any(one.server for one in spec.variants.values()):
        return postgres(), TrialLoad(sample=not spec.observes)
    servers = _servers(spec, postgres, apart or {})
    known: dict[tuple[str, str], DrivenEngine] = {}
    driven = {}
    for name, variant in spec.variants.items():
        engine = spec.engine(name)
        if engine != POSTGRESQL:
            key = (engine, repr(variant.connect))
            if key not in known:
                known[key] = DrivenEngine(engine_kind(engine), _options(name, variant.connect))
            driven[name] = known[key]
    fleet = Fleet(servers, driven)
    return fleet, TrialLoad(fleet, sample=not spec.observes)


def engine_facts(spec: Spec, reader: RunReader) -> tuple[EngineFacts, ...]:
    """Return the engines of a stored run; none where all variants ran on PostgreSQL."""
    if spec.engines == (POSTGRESQL,):
        return ()
    overheads = {one.engine: one for one in reader.overheads()}
    environment = reader.environment()
    versions = environment.get("engines", {})
    found = []
    for name in spec.engines:
        one = overheads.get(name)
        version = versions.get(name) or environment.get("server", {}).get("version", "")
        found.append(
            EngineFacts(
                name=name,
                title="PostgreSQL" if name == POSTGRESQL else engine_kind(name).title,
                version=version,
                variants=tuple(variant for variant in spec.variants if spec.engine(variant) == name),
                shares_process=one is not None and one.shares_process,
                overhead_p50_ns=None if one is None else one.p50_ns,
                overhead_p99_ns=None if one is None else one.p99_ns,
                client_cpu_ns=None if one is None else one.client_cpu_ns,
            )
        )
    return tuple(found)


def client_doubts(
    engines: tuple[EngineFacts, ...],
    variants: tuple[str, str],
    values: tuple[float | None, float | None],
    metric: str,
) -> tuple[str, ...]:
    """Say where the clients alone could make a difference between two engines.

    `values` are the metric of the two variants. Throughput is not looked at: it has no bound of this kind.
    """
    own, base = (next((one for one in engines if name in one.variants), None) for name in variants)
    if own is None or base is None or own is base or metric == "throughput" or None in values:
        return ()
    if own.overhead_p50_ns is None or base.overhead_p50_ns is None:
        return (f"what the clients of {own.title} and {base.title} take by themselves is not known",)
    gap = abs((values[0] or 0.0) - (values[1] or 0.0))
    most = max(own.overhead_p50_ns, base.overhead_p50_ns)
    if gap > most:
        return ()
    times = (format_duration(one) for one in (own.overhead_p50_ns, base.overhead_p50_ns))
    mine, theirs = (f"{time} with {one.title}" for time, one in zip(times, (own, base), strict=True))
    return (
        f"{_CLIENTS_DIFFER}: a statement that does nothing takes {mine} and {theirs}, which could be the "
        f"whole difference of {format_duration(gap)}",
    )


def clients_in_doubt(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Name the comparisons that have a doubt of `client_doubts`, in one sentence; nothing if none has."""
    found = [
        f"{one.variant} on {one.workload}{Cell(one.cell).at}"
        for one in comparisons
        if any(doubt.startswith(_CLIENTS_DIFFER) for doubt in one.doubts)
    ]
    if not found:
        return ()
    return (f"the clients of the engines alone could be the whole difference: {'; '.join(found)}",)


def _servers(
    spec: Spec, postgres: Callable[[], PostgresServer], apart: Mapping[str, Callable[[], PostgresServer]]
) -> dict[str, PostgresServer]:
    """Return the server of each variant on PostgreSQL: each made once."""
    made: dict[str | None, PostgresServer] = {}
    found = {}
    for name, variant in spec.variants.items():
        if spec.engine(name) != POSTGRESQL:
            continue
        if variant.server is not None and variant.server not in apart:
            raise UsageError(
                f'variants.{name}.server: no server is called "{variant.server}" here; `uncork guard '
                f"--{variant.server} dsn=...` names one"
            )
        if variant.server not in made:
            made[variant.server] = postgres() if variant.server is None else apart[variant.server]()
        found[name] = made[variant.server]
    return found


def _options(variant: str, connect: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a driver's `connect`, those that name a variable with its value."""
    options = dict(connect)
    for name, value in connect.items():
        if isinstance(value, str) and value.startswith("$"):
            if value[1:] not in os.environ:
                raise UsageError(f"variants.{variant}.connect.{name}: there is no variable {value[1:]} set")
            options[name] = os.environ[value[1:]]
    return options
