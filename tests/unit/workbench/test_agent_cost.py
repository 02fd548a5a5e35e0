"""An agent in a service: the experiment that measures it, and what its receiver's log tells."""

import importlib.util

import pytest

from uncork.errors import UsageError
from uncork.model.results.observer_cost import Pushes
from uncork.workbench.overhead.agent_cost import agent_source, pushes_of

ASKED = {"clients": 3, "practical": "2%", "budget": "30s", "precision": "1%", "seed": 9}


def test_off_and_on_differ_in_nothing_but_the_agent():
    pytest.importorskip("pyroscope")
    source = agent_source(**ASKED)
    spec = source.spec
    assert set(source.files) == {"service.py", "sink.py"}
    off, on = spec.variants["nothing"], spec.variants["agent"]
    assert off.baseline and (off.values, on.values) == ({"agent": "off"}, {"agent": "on"})
    same = {"title", "baseline", "values"}
    assert off.model_dump(exclude=same) == on.model_dump(exclude=same)
    assert (spec.workloads["work"].clients, spec.stop.practical, spec.experiment.seed) == (3, 0.02, 9)


def test_without_the_agent_installed_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="the module pyroscope is not installed"):
        agent_source(**ASKED)


def test_pushes_are_counted_from_the_receivers_log(tmp_path):
    assert pushes_of(tmp_path) is None
    (tmp_path / "services").mkdir()
    log = tmp_path / "services" / "agent.sink.log"
    log.write_text("")
    assert pushes_of(tmp_path) == Pushes(0, 0)
    log.write_text("/push.v1.PusherService/Push 378 bytes\n/push.v1.PusherService/Push 22 bytes\n")
    assert pushes_of(tmp_path) == Pushes(2, 400)
