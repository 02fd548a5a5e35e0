"""Measure what a profiler's agent costs the service it runs in: off and on, under load and idle.

The service, a receiver for the agent's pushes, and the experiment are in `agent/`.
"""

from __future__ import annotations

import importlib.util
import random
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from uncork.engines.services.local import LocalServices
from uncork.errors import SetupError, UsageError
from uncork.experiment.observe import NOTHING, toml_text
from uncork.experiment.spec.schema import parse_spec
from uncork.model.extras import install_extra
from uncork.model.results.observer_cost import IdleCost, Pushes
from uncork.model.server import Target
from uncork.model.service import Served, ServiceJob
from uncork.requests.source import Options, Source
from uncork.spawn.child import scratch_folder
from uncork.stats.interval import radius, summary

AGENT: Final = "agent"
_FOLDER: Final = Path(__file__).parent / "agent"
_WINDOW_S: Final = 2.0
_WINDOWS: Final = 12
"""The number of windows of an idle service, and their length: the agent pushes every 15 s."""
_SETTLE_S: Final = 2.0


def agent_source(*, clients: int, practical: str, budget: str, precision: str, seed: int) -> Source:
    """Return the experiment that loads a service without the agent and with it.

    Raises UsageError if the agent is not installed.
    """
    if importlib.util.find_spec("pyroscope") is None:
        raise UsageError(f"--only agent: the module pyroscope is not installed: {install_extra('pyroscope')}")
    data = tomllib.loads((_FOLDER / "experiment.toml").read_text())
    data["experiment"]["seed"] = seed
    data["workloads"]["work"]["clients"] = clients
    data["stop"] |= {"practical": practical, "budget": budget, "precision": precision}
    text = toml_text(data)
    spec = parse_spec(text, file="observe-cost.toml", read=_read, overrides={})
    return Source(spec, text, dict(spec.files), Options())


def idle_agent(database: Target, seed: int) -> IdleCost:
    """Measure two idle services at the same time, one with the agent and one without.

    Raises:
        SetupError: if their processor time cannot be read.
        ServiceCrash: if one of them ends.
    """
    chance = random.Random(seed)
    with scratch_folder("uncork-agent-") as logs:
        services = LocalServices(logs)
        try:
            # In random order, so that which one starts first makes no difference.
            names = chance.sample([NOTHING, AGENT], 2)
            running = {name: services.serve(name, _jobs(name == AGENT), database, {}) for name in names}
            time.sleep(_SETTLE_S)
            differences = [_window(services, running) for _ in range(_WINDOWS)]
        finally:
            services.stop()
    count, mean, deviation = summary(differences)
    half = float(radius(count, deviation, 0.95))
    return IdleCost(count, 0.0, None, mean, half if half < float("inf") else None)


def pushes_of(folder: Path) -> Pushes | None:
    """Return what the agent pushed during a run, from its receiver's log; None if there is no log."""
    log = folder / "services" / f"{AGENT}.sink.log"
    if not log.is_file():
        return None
    sizes = [int(line.split()[-2]) for line in log.read_text().splitlines() if line.endswith(" bytes")]
    return Pushes(len(sizes), sum(sizes))


def _read(name: str) -> str:
    return (_FOLDER / name).read_text()


def _jobs(agent: bool) -> Sequence[ServiceJob]:
    def job(name: str, file: str, **more: Any) -> ServiceJob:
        return ServiceJob(name, ("{python}", file), files={file: _read(file)}, **more)

    environment = (("AGENT", "on" if agent else "off"),)
    api = job("api", "service.py", environment=environment, ready="/ready", after=("sink",))
    return [job("sink", "sink.py"), api]


def _window(services: LocalServices, running: dict[str, Served]) -> float:
    """Return how much more processor time per second the service with the agent used."""
    before, begun = {name: _used(services, served) for name, served in running.items()}, time.monotonic_ns()
    time.sleep(_WINDOW_S)
    passed = time.monotonic_ns() - begun
    used = {name: _used(services, served) - before[name] for name, served in running.items()}
    return (used[AGENT] - used[NOTHING]) / passed * 1e9


def _used(services: LocalServices, served: Served) -> int:
    found = services.cpu_ns(served)
    if found is None:
        raise SetupError("the processor time of services cannot be read on this machine: use --no-idle")
    return sum(found)
