"""Which levels a sweep visits, and what it finds, on systems whose truth is known."""

import math

import numpy as np
import pytest

from fakes.sweeps import law, processors, spec, step, strongest, swept
from uncork.experiment.plan.sweep import chosen_levels, findings, next_step
from uncork.model.sweep import parse_objectives


@pytest.fixture
def generator():
    return np.random.default_rng(7)


def test_it_explores_by_doubling_until_power_and_throughput_have_gone_past_their_top(generator):
    steps = swept(processors(4), spec(), generator, noise=0.01)
    explored = [one.level for one in steps if not one.round]
    assert explored[:5] == [1, 2, 4, 8, 16]
    assert max(explored) <= 32
    assert min(one.round for one in steps) == 0 and max(one.round for one in steps) >= 5


def test_each_round_visits_the_same_levels_once_in_an_order_of_its_own(generator):
    steps = swept(law, spec(), generator, noise=0.02)
    orders = {}
    for one in steps:
        orders.setdefault(one.round, []).append(one.level)
    rounds = [order for number, order in orders.items() if number]
    assert all(sorted(order) == list(chosen_levels(steps, spec())) for order in rounds)
    assert len({tuple(order) for order in rounds}) > 1


def test_the_same_seed_gives_the_same_visits():
    one, other = (
        [(v.round, v.level) for v in swept(law, spec(seed=3), np.random.default_rng(1), noise=0.02)]
        for _ in range(2)
    )
    assert one == other


@pytest.mark.parametrize(("throughput", "near"), [(processors(2), 2), (processors(60), 64), (law, 13.6)])
def test_the_knee_is_where_power_is_greatest(throughput, near, generator):
    found = findings(swept(throughput, spec(), generator, noise=0.005), spec())
    assert found.knee.low < strongest(throughput) < found.knee.high
    assert found.knee.level / near == pytest.approx(1, rel=0.5)


def test_without_a_bend_the_end_of_the_sweep_is_no_knee(generator):
    wanted = spec(end=64.0)
    found = findings(swept(lambda load: 1000.0 * load, wanted, generator, noise=0.01), wanted)
    assert found.knee.level == 64
    assert found.knee.high is None


def test_a_cliff_is_searched_between_the_last_level_that_works_and_the_first_that_breaks(generator):
    wanted = spec()
    steps = swept(processors(500), wanted, generator, breaks_at=97)
    found = findings(steps, wanted)
    assert found.cliff.holds < 97 <= found.cliff.gives_way <= 1.25 * found.cliff.holds
    assert not any(one.round for one in steps if one.level >= 97)


def test_an_objective_is_judged_on_both_sides_of_its_edge(generator):
    # With p99 = 2.5 x load / throughput and 10 processors, 25 ms are reached at 100 clients.
    wanted = spec(objectives=parse_objectives("p99<25ms, errors<0.1%"))
    found = findings(swept(processors(10), wanted, generator, noise=0.02), wanted)
    judged = found.objectives["p99 < 25ms"]
    holds = max(level for level, told in judged.items() if told == "yes")
    fails = min(level for level, told in judged.items() if told == "no")
    assert holds < 100 < fails <= 1.6 * holds
    assert set(found.objectives["errors < 0.1%"].values()) == {"yes"}


def test_a_server_that_never_works_ends_the_sweep_at_once(generator):
    wanted = spec()
    steps = swept(processors(4), wanted, generator, breaks_at=1)
    assert [one.level for one in steps] == [1]
    assert findings(steps, wanted).knee is None


def test_a_round_cut_short_is_not_judged():
    steps = [
        step(1, 0, 1, 1000),
        step(2, 0, 2, 1900),
        step(3, 0, 4, 2000),
        step(4, 0, 8, 2000),
    ]
    steps += [step(5 + at, 1, level, 1000 * min(level, 2)) for at, level in enumerate((1, 2, 4, 8))]
    steps.append(step(9, 2, 4, 2000))
    assert findings(steps, spec()).knee.rounds == 1


def test_rates_are_told_with_three_digits(generator):
    wanted = spec(axis="rate", start=130.0, end=1e6)
    levels = []
    steps = []
    while (place := next_step(steps, wanted)) is not None and not place[0]:
        levels.append(place[1])
        busy = place[1] / 20_000
        seen = step(len(steps) + 1, 0, place[1], place[1], failed=0.3 if busy >= 1 else 0.0)
        steps.append(seen if busy >= 1 else _queued(seen, busy))
    assert levels[:3] == [130, 260, 520]
    assert all(float(f"{level:.3g}") == level for level in levels)
    assert any(18_000 <= level < 20_000 for level in levels) or max(levels) > 20_000


def _queued(seen, busy):
    from dataclasses import replace

    return replace(seen, mean_ns=1e6 / (1 - busy))


def test_objectives_are_read_or_refused_with_what_could_stand_there():
    p99, errors = parse_objectives(" p99 < 250ms , errors<0.1%")
    assert (p99.quantity, p99.limit) == ("p99", 250e6)
    assert (errors.quantity, errors.limit) == ("errors", pytest.approx(0.001))
    for text, said in (
        ("p99", "is not an objective"),
        ("speed<5ms", "is not a quantity of an objective"),
        ("p99<5", "unit"),
        ("errors<5ms", "%"),
        ("p99<0ms", "above zero"),
    ):
        with pytest.raises(ValueError, match=said):
            parse_objectives(text)


def test_power_falls_where_latency_grows_faster_than_throughput():
    assert math.isclose(strongest(law), 13.6, rel_tol=0.01)
