import inspect

import pytest

from fakes.ports import FakeClock, FakeLoad, FakeServer, FakeServices, MemorySink
from uncork.engines.postgres import PostgresServer
from uncork.engines.router import EngineRouter
from uncork.engines.services.local import LocalServices
from uncork.experiment.ports import Clock, Load, Observers, Server, Services, Sink
from uncork.store.write import RunWriter
from uncork.workbench.experiment.session import MonotonicClock, TrialLoad
from uncork.workbench.overhead.observers import LocalObservers


def methods(port):
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in vars(port).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("port", "adapters"),
    [
        (Server, (PostgresServer, EngineRouter, FakeServer)),
        (Load, (TrialLoad, FakeLoad)),
        (Sink, (RunWriter, MemorySink)),
        (Clock, (MonotonicClock, FakeClock)),
        (Observers, (LocalObservers,)),
        (Services, (LocalServices, FakeServices)),
    ],
)
def test_adapters_and_fakes_have_every_method_of_their_port_with_its_arguments(port, adapters):
    wanted = methods(port)
    assert wanted
    for adapter in adapters:
        found = {name: list(inspect.signature(getattr(adapter, name)).parameters) for name in wanted}
        assert found == wanted
