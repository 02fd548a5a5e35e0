"""From slices to what is told of an observer that was switched."""

import json
import math

import numpy as np
import pytest

from uncork.experiment.plan.switching import turns
from uncork.model.results.observer_cost import ObserverCost, Slice
from uncork.workbench.overhead.costs import _by_switching
from uncork.workbench.overhead.session import switched_seconds
from uncork.workbench.overhead.switched import SLICES_FILE, judge_switched, write_slices

LENGTH_NS = 100_000_000


def slices(count, cost, *, noise=0.01, seed=1):
    """Return quadruples in which `system` costs what is said and `sessions` 5 %, among bursts of others."""
    generator = np.random.default_rng(seed)
    order = turns(("sessions", "system"), seed)
    found = []
    for quadruple in range(count):
        for on in next(order):
            others = generator.uniform(0, 0.4)
            slowed = (1 - cost * ("system" in on)) * (1 - 0.05 * ("sessions" in on)) * math.exp(-others)
            done = 4000 * slowed * math.exp(generator.normal(0, noise))
            work = 190_000_000 * (1 - others)
            found.append(
                Slice(
                    quadruple, tuple(sorted(on)), LENGTH_NS, done, round(work), round(others * LENGTH_NS), 0
                )
            )
    return found


def test_each_observer_is_told_by_itself():
    seen = slices(200, 0.004)
    system, sessions = (judge_switched(seen, name, 0.95, 0.99) for name in ("system", "sessions"))
    assert system.quadruples == sessions.quadruples == 200
    assert system.slice_ns == LENGTH_NS
    assert system.adjusted.low < 0.996 < system.adjusted.high
    assert sessions.adjusted.low < 0.95 < sessions.adjusted.high
    assert system.adjusted.high - system.adjusted.low < 0.005
    # What others took is most of the noise of what was counted.
    assert system.plain.high - system.plain.low > 5 * (system.adjusted.high - system.adjusted.low)
    assert system.sure.low < system.adjusted.low and system.adjusted.high < system.sure.high
    assert system.others == pytest.approx(0.2, abs=0.02) and system.stolen == 0
    assert not system.apart
    assert judge_switched(seen, "perf", 0.95, 0.99) is None
    assert judge_switched([], "system", 0.95, 0.99) is None


def test_processor_time_an_operation_grows_by_what_throughput_loses():
    system = judge_switched(slices(200, 0.03), "system", 0.95, 0.99)
    assert system.processor.low < 1 / 0.97 < system.processor.high


def test_of_all_processors_it_takes_the_part_that_the_load_had():
    seen = slices(200, 0.03)
    system = judge_switched(seen, "system", 0.95, 0.99, processors=4)
    assert system.work == pytest.approx(1.9 * 0.8, rel=0.02)
    for side in ("low", "high"):
        of_load, of_all = getattr(system.processor_sure, side), getattr(system.bound, side)
        assert of_all - 1 == pytest.approx((of_load - 1) * system.work / 4)
    assert judge_switched(seen, "system", 0.95, 0.99).bound is None
    assert judge_switched(slices(20, 0.03), "system", 0.95, 0.99, processors=4).bound is None


@pytest.mark.parametrize(
    ("cost", "verdict"), [(0.003, "costs less"), (0.03, "costs more"), (0.01, "not enough evidence")]
)
def test_verdicts_rest_on_what_switching_found(cost, verdict):
    found = judge_switched(slices(200, cost), "system", 0.95, 0.99)
    before = ObserverCost("system", "", "w", "all", None, None, "costs more", None, None, None, None)
    after = _by_switching(before, found, 0.01)
    if verdict == "not enough evidence":
        assert after.verdict in (verdict, "costs something")
    else:
        assert after.verdict == verdict
        assert after.processor_verdict == verdict
    assert after.switched == found


def test_few_quadruples_tell_nothing_and_empty_slices_break_nothing():
    few = judge_switched(slices(20, 0.003), "system", 0.95, 0.99)
    assert (few.quadruples, few.plain, few.adjusted, few.sure) == (20, None, None, None)
    seen = slices(40, 0.0)
    stopped = [Slice(one.quadruple, one.on, one.length_ns, 0.0, 0, 0, 0) for one in seen]
    still = judge_switched(stopped, "system", 0.95, 0.99)
    assert still.plain is None and still.quadruples == 40


def test_slices_are_kept_by_field(tmp_path):
    seen = slices(2, 0.0)
    write_slices(tmp_path, seen)
    stored = json.loads((tmp_path / SLICES_FILE).read_text())
    assert stored["operations"] == [one.operations for one in seen]
    assert [tuple(on) for on in stored["on"]] == [one.on for one in seen]


@pytest.mark.parametrize(
    ("whole", "switched", "observers", "seconds"),
    [(240, 2, 2, 204), (240, 2, 8, 60), (60, 1, 1, 30), (20, 2, 2, 10), (20, 1, 8, 2.5)],
)
def test_the_experiment_has_time_to_make_its_data(whole, switched, observers, seconds):
    assert switched_seconds(whole, switched, observers) == pytest.approx(seconds)
