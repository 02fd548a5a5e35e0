from collections import Counter

import pytest

from uncork.errors import SetupError
from uncork.experiment.run.parameters import ROWS_FOR_A_DURATION, draw
from uncork.experiment.spec.schema import Generator, Parameter, Workload


def workload(parameter=None, **changes):
    facts = {"sql": "SELECT :it", "operations": 100, "warmup_operations": 20, **changes}
    return Workload(parameters={} if parameter is None else {"it": parameter}, **facts)


def generated(kind, rows=1000, stream="s", seed=1, **limits):
    parameter = Parameter(generator=Generator(kind=kind, **limits))
    (column,) = draw(workload(parameter), {}, seed=seed, stream=stream, rows=rows)
    return [int(value) for value in column]


def picked(pick, pool, rows=1000, stream="s", seed=1, **more):
    parameter = Parameter(query="SELECT 1", pick=pick, **more)
    (column,) = draw(workload(parameter), {"it": pool}, seed=seed, stream=stream, rows=rows)
    return column


def test_a_trial_draws_what_it_executes():
    drawn = draw(workload(Parameter(query="SELECT 1")), {"it": ["a"]}, seed=1, stream="s")
    assert [len(column) for column in drawn] == [120]


def test_a_trial_that_ends_by_time_draws_a_fixed_number_of_rows():
    timed = workload(Parameter(query="SELECT 1"), operations=None, duration="1s")
    assert [len(column) for column in draw(timed, {"it": ["a"]}, seed=1, stream="s")] == [ROWS_FOR_A_DURATION]


def test_a_workload_without_parameters_draws_nothing():
    assert draw(workload(), {}, seed=1, stream="s") == []


@pytest.mark.parametrize("pick", ["uniform", "zipfian", "permutation", "sequence"])
def test_the_same_stream_gives_the_same_positions_whatever_the_pool_holds(pick):
    text = [f"name {number}" for number in range(50)]
    binary = [f"\\x{number:02x}" for number in range(50)]
    positions = [text.index(value) for value in picked(pick, text)]
    assert positions == [binary.index(value) for value in picked(pick, binary)]
    assert len(set(positions)) > 10


@pytest.mark.parametrize("pick", ["uniform", "zipfian", "permutation"])
def test_another_stream_or_seed_gives_other_positions(pick):
    pool = [str(number) for number in range(50)]
    first = picked(pick, pool)
    assert first == picked(pick, pool)
    assert first != picked(pick, pool, stream="t")
    assert first != picked(pick, pool, seed=2)


def test_two_parameters_of_a_trial_are_drawn_apart():
    both = workload().model_copy(
        update={"parameters": {name: Parameter(query="SELECT 1") for name in ("one", "other")}}
    )
    pool = [str(number) for number in range(50)]
    one, other = draw(both, {"one": pool, "other": pool}, seed=1, stream="s")
    assert one != other


def test_a_permutation_repeats_nothing_before_everything_was_drawn():
    drawn = generated("permutation", rows=250, min=1, max=100)
    assert sorted(drawn[:100]) == sorted(drawn[100:200]) == list(range(1, 101))
    assert drawn[:100] != drawn[100:200]
    assert len(set(drawn[200:])) == 50


def test_a_permutation_of_a_pool_takes_every_row_once():
    pool = [str(number) for number in range(40)]
    assert sorted(picked("permutation", pool, rows=40)) == sorted(pool)


def test_zipfian_prefers_the_low_numbers_the_more_the_higher_its_exponent():
    mild, steep = (
        Counter(generated("zipfian", rows=20_000, min=1, max=100, exponent=exponent)) for exponent in (1.0, 2)
    )
    assert mild[1] / mild[2] == pytest.approx(2, rel=0.15)
    assert mild[1] / 20_000 == pytest.approx(1 / sum(1 / rank for rank in range(1, 101)), rel=0.1)
    assert steep[1] / steep[2] == pytest.approx(4, rel=0.15)


def test_a_sequence_counts_up_and_begins_again():
    assert generated("sequence", rows=7, min=5, max=7) == [5, 6, 7, 5, 6, 7, 5]


@pytest.mark.parametrize("kind", ["uniform", "zipfian", "permutation", "sequence"])
def test_generated_numbers_reach_their_limits_and_stay_within_them(kind):
    drawn = generated(kind, min=-2, max=3)
    assert set(drawn) == set(range(-2, 4))


def test_rows_that_are_null_stay_null():
    assert set(picked("uniform", [None, "a"], rows=50)) == {None, "a"}


def test_an_empty_pool_names_the_parameter():
    with pytest.raises(SetupError, match="parameter it: its query returned no rows to draw from"):
        picked("uniform", [])


def test_a_permutation_too_large_to_hold_is_refused():
    with pytest.raises(SetupError, match="a permutation of 60000000 numbers is too large; use kind"):
        generated("permutation", rows=1, min=1, max=60_000_000)
