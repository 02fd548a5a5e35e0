"""Observers switched on and off under a load: a real server, uncork's own samplers, and a planted one."""

import hashlib
import os
import threading
import time
from dataclasses import asdict

import pytest

from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.errors import RunError, UncorkError
from uncork.load.builtin import find
from uncork.model.server import Target
from uncork.workbench.overhead.observers import SESSIONS_HZ
from uncork.workbench.overhead.switched import SwitchedLoad, judge_switched, measure_switched
from uncork.workbench.overhead.switches import switches

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]


@pytest.fixture(scope="module")
def server():
    one = EmbeddedServer({"fsync": False})
    one.start()
    yield one
    one.stop()


@pytest.fixture
def measure(server):
    address = resolve(server.conninfo())
    target = Target(address.database, asdict(address), server.pid)

    def run(seconds, names=(), others=None):
        load = SwitchedLoad("select-only", find("select-only").text, 1, 2, 1, seconds)
        return measure_switched(load, target, address.conninfo(), names, lambda _: None, others)

    return run


class Burner:
    """Takes most of every processor while it is on.

    Of a single one is not enough: a busy neighbour keeps a virtual processor awake, which can help the load.
    """

    def __init__(self):
        self.on, self.ended = threading.Event(), False
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in os.sched_getaffinity(0)]
        for one in self.threads:
            one.start()

    def switch(self, on):
        self.on.set() if on else self.on.clear()

    def work(self):
        block = b"x" * 1_000_000  # hashing so much lets go of the interpreter
        while not self.ended:
            if self.on.wait(0.1):
                hashlib.sha256(block).digest()


def test_what_takes_most_of_the_processors_is_found(measure):
    burner, slices = Burner(), []
    try:
        for _ in range(20):  # a few are enough where nothing else runs; beside other tests it takes more
            found = measure(5, others={"burner": burner})
            assert not found.interrupted
            slices.extend(found.slices)
            cost = judge_switched(slices, "burner", 0.95, 0.99)
            assert cost.quadruples * 4 == len(slices)
            if cost.sure and cost.sure.high < 1 and cost.processor_sure.low > 1:
                break
        else:
            pytest.fail(f"not found in {cost.quadruples} quadruples: {cost}")
    finally:
        burner.ended = True
        for one in burner.threads:
            one.join()
    assert judge_switched(slices, "another", 0.95, 0.99) is None


def test_uncorks_own_samplers_are_switched_and_an_observer_that_breaks_off_is_told(measure):
    found = measure(3.5, names=("system", "sessions"))
    assert {name for one in found.slices for name in one.on} == {"system", "sessions"}
    for one in found.slices:
        assert one.operations > 0
        assert one.length_ns > 80e6
        assert one.work_ns > 0

    class Broken:
        def switch(self, on):
            raise UncorkError("it fell over")

    with pytest.raises(RunError, match="an observer stopped early: it fell over"):
        measure(3.5, others={"broken": Broken()})


def test_samplers_work_while_they_are_on_only(server):
    address = resolve(server.conninfo())
    with switches(("sessions",), Target(address.database, asdict(address), server.pid)) as found:
        sessions, looked = found["sessions"], found["sessions"]._found.samples
        sessions.switch(False)
        time.sleep(0.2)
        assert not looked
        begun = time.monotonic()
        sessions.switch(True)
        while len(looked) < 4 and time.monotonic() < begun + 60:
            time.sleep(0.05)
        sessions.switch(False)
        many, seconds = len(looked), time.monotonic() - begun
        assert 4 <= many <= SESSIONS_HZ * seconds + 1
        time.sleep(0.3)
        assert len(looked) <= many + 1
