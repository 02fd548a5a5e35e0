"""Trials with an observer beside them, and what the sampler says may have disturbed one: on fakes."""

from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from fakes.ports import FakeClock, FakeLoad, FakeServer, MemorySink
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.runner import Runner
from uncork.experiment.spec.schema import parse_spec
from uncork.model.measurement import Disturbance
from uncork.model.system import Strain

SECOND = 1_000_000_000
SPEC = """
[experiment]
name = "observers"
question = "What does it cost?"
[variants.nothing]
baseline = true
[variants.watched]
observe = "system"
[variants.other]
[setup]
sql = "SELECT 1"
[workloads.look]
sql = "SELECT 1"
operations = 10
state = "keep"
[stop]
blocks = 2
maximum_rounds = 5
"""


@dataclass
class Watching:
    cpu_ns: int | None = None


class FakeObservers:
    """Notes what was watched; each watch takes 7 ns."""

    def __init__(self):
        self.watched = []
        self.open = 0

    @contextmanager
    def beside(self, observer, target):
        self.watched.append((observer, target.database))
        self.open += 1
        watching = Watching()
        yield watching
        self.open -= 1
        watching.cpu_ns = 7


class StrainedLoad(FakeLoad):
    """Its trials were under a strain."""

    strain = None

    def run(self, request):
        return replace(super().run(request), strain=self.strain)


def kept(*, strain=None, observers=None):
    spec = parse_spec(SPEC, file="x", read=str, overrides={})
    clock, sink = FakeClock(10**12), MemorySink()
    server = FakeServer(clock)
    load = StrainedLoad(server, clock)
    load.strain = strain
    list(Runner(spec, server, load, sink, clock, Ledger(spec, "round"), observers=observers).events())
    return sink.kept


def test_only_trials_of_a_variant_that_says_so_are_watched():
    observers = FakeObservers()
    trials = kept(observers=observers)
    watched = [trial for trial, _ in trials if trial.arm.variant == "watched"]
    assert len(observers.watched) == len(watched) > 0
    assert {observer for observer, _ in observers.watched} == {"system"}
    assert observers.open == 0
    for trial, measurement in trials:
        assert measurement.observer_ns == (7 if trial.arm.variant == "watched" else None)


@pytest.mark.parametrize(
    ("strain", "expected"),
    [
        (Strain(0.0, 0.0, 2 * SECOND), set()),
        (Strain(None, None, 0), set()),
        (Strain(0.02, 0.0, 2 * SECOND), {Disturbance.MEMORY}),
        (Strain(0.0, 0.2, 2 * SECOND), {Disturbance.OTHERS}),
        # A fifth of a tenth of a second is two of the kernel's ticks: not enough to tell.
        (Strain(0.0, 0.2, SECOND // 10), set()),
    ],
)
def test_what_strained_the_machine_is_kept_with_the_trial(strain, expected):
    assert all(measurement.disturbances == expected for _, measurement in kept(strain=strain))
