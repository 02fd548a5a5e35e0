"""Measure what observers cost: under load, as variants of one experiment, and on an idle server."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.postmaster import postmaster_of
from uncork.engines.watch.observe import describe
from uncork.engines.watch.observing import QUIET, SETTING_OBSERVERS, refusal
from uncork.errors import UsageError
from uncork.experiment.observe import (
    Observed,
    experiment_data,
    pgbench_setup,
    script_workload,
    toml_text,
)
from uncork.experiment.spec.schema import parse_spec
from uncork.load.builtin import find
from uncork.model.records import build_from
from uncork.model.results.observer_cost import CatalogueCost, IdleCost
from uncork.model.server import Target
from uncork.model.units import parse_duration
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source, file_text
from uncork.workbench.overhead.agent_cost import AGENT, agent_source, idle_agent
from uncork.workbench.overhead.catalogue import CATALOGUE, catalogue_cost
from uncork.workbench.overhead.observers import PERF_HZ, SESSIONS_HZ, idle_costs, idle_seconds, perf_trouble
from uncork.workbench.overhead.switched import STATEMENTS_COUNTED, SwitchedLoad, Switching, measure_switched
from uncork.workbench.overhead.switches import SWITCHED
from uncork.workbench.signals import uninterrupted

TITLES: Final[Mapping[str, str]] = {
    "system": "uncork's sampler of machine and processes, 10 readings a second",
    "sessions": f"uncork's sampler of sessions, {SESSIONS_HZ} a second",
    CATALOGUE: "the catalogue and plans, as `uncork advise` and `uncork profile db` read them once",
    "perf": f"perf record -F {PERF_HZ} -a -g",
}

_SWITCHED_SHARE: Final = 0.85
"""The fraction of the budget for switching if every observer can be switched. The rest is for the
experiment, which then measures only latency."""
_DATA_S: Final = 30.0
"""The minimum time for the experiment, which creates its data in it; at most half of the budget."""

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CostWanted:
    """A request: `script` names a built-in script; `file` is an experiment (.toml) or a script."""

    script: str = "select-only"
    file: Path | None = None
    scale: int = 5
    clients: int = 2
    duration: str = "250ms"
    only: tuple[str, ...] = ()
    practical: str = "1%"
    budget: str = "4min"
    precision: str = "0.5%"
    seed: int = 1
    idle: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """The experiment to run, skipped observers with reasons, and the cost of observing an idle server.

    `switched` names the observers that are switched on and off within one load, and `load` is that
    load. `catalogue` is the cost of reading the catalogue of an existing server.
    """

    source: Source
    skipped: dict[str, str]
    idle: dict[str, IdleCost]
    switched: tuple[str, ...] = ()
    load: SwitchedLoad | None = None
    catalogue: CatalogueCost | None = None


def prepare(wanted: CostWanted, choice: ServerChoice, notify: Notify) -> Prepared:
    """Find the available observers, measure them on an idle server, and build the experiment.

    Raises:
        UsageError: if an observer is unknown, none is available, or a file is wrong.
        SetupError, ConnectError: if the server cannot be started or reached.
    """
    if AGENT in wanted.only:
        return _prepare_agent(wanted, choice, notify)
    unknown = [name for name in wanted.only if name not in (*SETTING_OBSERVERS, *TITLES)]
    if unknown:
        known = ", ".join((*SETTING_OBSERVERS, *TITLES, AGENT))
        raise UsageError(f"--only {unknown[0]}: unknown observer; the observers are {known}")
    if set(wanted.only) == {CATALOGUE}:
        # A watch samples sessions too, and an experiment needs a variant.
        wanted = replace(wanted, only=("sessions", CATALOGUE))
    base = _base(wanted)
    with _server(choice, base) as (target, conninfo):
        quiet = {name: value for name, value in QUIET.items() if refusal(conninfo, {name: value}) is None}
        observers, skipped = _available(wanted, conninfo, target)
        if not observers:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
            raise UsageError(f"no observer is available: {reasons}")
        for name, reason in skipped.items():
            notify(f"skipping {name}: {reason}")
        beside = [observer.name for observer in observers if observer.observe not in (None, CATALOGUE)]
        idle: dict[str, IdleCost] = {}
        if wanted.idle and beside:
            seconds = idle_seconds(len(beside))
            notify(f"measuring on an idle server for {seconds:.0f} s: {', '.join(beside)}")
            idle = idle_costs(beside, target, wanted.seed)
        catalogue: CatalogueCost | None = None
        if choice.dsn is not None and any(observer.name == CATALOGUE for observer in observers):
            notify("reading the catalogue several times")
            catalogue = catalogue_cost(target)
    load, budget = None, wanted.budget
    switched: tuple[str, ...] = ()
    if choice.dsn is None and not _is_experiment(wanted):
        # On an existing server, the load would need tables in somebody's database.
        switched = tuple(observer.name for observer in observers if observer.name in SWITCHED)
    if switched:
        whole = parse_duration(wanted.budget) / 1e9
        seconds = switched_seconds(whole, len(switched), len(observers))
        load = _switched_load(wanted, seconds)
        budget = f"{max(1, round(whole - seconds))}s"
    data = experiment_data(
        base,
        [observer for observer in observers if observer.name != CATALOGUE],
        quiet,
        server=_own_settings() if choice.dsn is None else {},
        stop={
            "budget": budget,
            "practical": wanted.practical,
            "precision": wanted.precision,
            **({} if _is_experiment(wanted) else {"blocks": 4, "maximum_rounds": 200}),
        },
        seed=wanted.seed,
    )
    text = toml_text(data)
    spec = parse_spec(text, file=str(wanted.file or "observe-cost.toml"), read=str, overrides={})
    return Prepared(Source(spec, text, {}, Options()), skipped, idle, switched, load, catalogue)


def switched_seconds(whole: float, switched: int, observers: int) -> float:
    """Return how much of a budget, in seconds, is for switching; the rest is for the experiment."""
    share = _SWITCHED_SHARE if switched == observers else switched / observers
    return min(whole * share, whole - min(_DATA_S, whole / 2))


def switch_observers(prepared: Prepared, choice: ServerChoice, notify: Notify) -> Switching:
    """Switch observers on and off within one load, on a separate server.

    Raises:
        SetupError, ConnectError: if the server or an observer cannot be started.
        RunError: if the load or an observer stopped early.
    """
    if prepared.load is None:
        return Switching(())
    notify(f"switching {', '.join(prepared.switched)} on and off for {prepared.load.seconds:.0f} s")
    more = STATEMENTS_COUNTED if CATALOGUE in prepared.switched else {}
    with _server(choice, {}, more) as (target, conninfo):
        return measure_switched(prepared.load, target, conninfo, prepared.switched, notify)


def _switched_load(wanted: CostWanted, seconds: float) -> SwitchedLoad:
    script = None if wanted.file is not None else find(wanted.script)
    return build_from(
        SwitchedLoad,
        wanted,
        name="script" if script is None else script.name,
        text=script.text if script is not None else file_text(wanted.file or Path()),
        seconds=seconds,
    )


def _prepare_agent(wanted: CostWanted, choice: ServerChoice, notify: Notify) -> Prepared:
    if set(wanted.only) != {AGENT}:
        raise UsageError(
            "--only agent: the agent is measured in a service of its own; leave out the other observers"
        )
    if wanted.file is not None:
        raise UsageError("--only agent: the agent is measured in a service of its own; leave out -f")
    source = agent_source(
        clients=wanted.clients,
        practical=wanted.practical,
        budget=wanted.budget,
        precision=wanted.precision,
        seed=wanted.seed,
    )
    idle: dict[str, IdleCost] = {}
    if wanted.idle:
        with _server(choice, {}) as (target, _):
            notify("measuring an idle service with and without the agent")
            idle[AGENT] = idle_agent(target, wanted.seed)
    return Prepared(source, {}, idle)


def _own_settings() -> dict[str, Any]:
    return {name: value for name, value in QUIET.items() if name != "log_min_duration_statement"}


def _is_experiment(wanted: CostWanted) -> bool:
    return wanted.file is not None and wanted.file.suffix == ".toml"


def _base(wanted: CostWanted) -> dict[str, Any]:
    """Return the data of the experiment whose setup and workloads are measured."""
    if wanted.file is not None and _is_experiment(wanted):
        return _file_data(wanted.file)
    if wanted.file is None:
        script = find(wanted.script)
        name, text = script.name, script.text
    else:
        name, text = wanted.file.name, file_text(wanted.file)
    workload = script_workload(
        text, name=name, scale=wanted.scale, clients=wanted.clients, duration=wanted.duration
    )
    word = "".join(text if text.isalnum() or text in "-_" else "-" for text in Path(name).stem).strip("-_")
    named = word if word and word[0].isalpha() else "script"
    return {"setup": {"sql": pgbench_setup(wanted.scale)}, "workloads": {named[:40]: workload}}


def _file_data(path: Path) -> dict[str, Any]:
    text = file_text(path)
    parse_spec(text, file=str(path), read=lambda name: (path.parent / name).read_text(), overrides={})
    data = tomllib.loads(text)
    for section in (data["setup"], *data["workloads"].values()):
        if "file" in section:
            section["sql"] = (path.parent / section.pop("file")).read_text()
    return data


@contextmanager
def _server(
    choice: ServerChoice, base: Mapping[str, Any], more: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[tuple[Target, str]]:
    """Yield the server to observe. An embedded one has the settings `more` too, and is stopped afterwards."""
    if choice.dsn is not None:
        address = resolve(choice.dsn)
        describe(address.conninfo())
        pid = postmaster_of(address.conninfo())
        yield Target(address.database, asdict(address), pid), address.conninfo()
        return
    settings = {**base.get("server", {}).get("settings", {}), **_own_settings(), **more}
    server = EmbeddedServer(settings, binaries=choice.binaries, port=choice.port)
    server.start()
    try:
        address = resolve(server.conninfo())
        yield Target(address.database, asdict(address), server.pid), address.conninfo()
    finally:
        with uninterrupted():
            server.stop()


def _available(wanted: CostWanted, conninfo: str, target: Target) -> tuple[list[Observed], dict[str, str]]:
    found, skipped = [], {}
    for name, observer in SETTING_OBSERVERS.items():
        if wanted.only and name not in wanted.only:
            continue
        reason = refusal(conninfo, observer.settings)
        if reason is None:
            found.append(Observed(name, observer.title, observer.settings))
        else:
            skipped[name] = f"the server refuses it: {reason}"
    for name, title in TITLES.items():
        if wanted.only and name not in wanted.only:
            continue
        here = None if target.pid is not None else "the server's processes are not on this machine"
        reason = {"system": here, "perf": here or perf_trouble()}.get(name)
        if reason is None:
            found.append(Observed(name, title, {}, observe=name))
        else:
            skipped[name] = reason
    return found, skipped
