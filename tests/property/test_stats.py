"""What must hold of the judge whatever was measured."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from uncork.model.verdict import Verdict
from uncork.stats.compare import e_benjamini_hochberg, estimate, judge
from uncork.stats.interval import confidence_sequence
from uncork.stats.sample import Observation, Units, noise_units, round_units

log_ratios = st.integers(-3_000_000, 3_000_000).map(lambda millionths: millionths / 1e6)
samples = st.lists(log_ratios, min_size=1, max_size=25)
confidences = st.floats(0.5, 0.999)
metrics = st.floats(1e-6, 1e9)
e_values = st.lists(st.one_of(st.floats(0, 5), st.floats(0, 1e6)), max_size=40)


@st.composite
def experiments(draw, arms=("base", "base#2", "new")):
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=8))
    return [
        Observation(number, block, arm, draw(metrics))
        for number, blocks in enumerate(shape, start=1)
        for block in range(1, blocks + 1)
        for arm in arms
    ]


def variant(seen):
    return round_units(seen, baseline="base", again="base#2", variant="new")


@given(samples, confidences)
def test_the_interval_contains_the_estimate(sample, confidence):
    effect = estimate(Units(tuple(sample)), confidence)
    assert effect.low <= effect.ratio <= effect.high


@given(samples, confidences, confidences)
def test_more_confidence_is_a_wider_interval(sample, one, other):
    small, large = sorted((one, other))
    narrow, wide = confidence_sequence(sample, small), confidence_sequence(sample, large)
    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


@given(samples, confidences)
def test_the_interval_excludes_none_exactly_when_the_e_value_says_so(sample, confidence):
    effect = estimate(Units(tuple(sample)), confidence)
    assume(abs(effect.e_value * (1 - confidence) - 1) > 1e-6)
    assert effect.excludes_none == (effect.e_value > 1 / (1 - confidence))


@given(experiments())
def test_swapping_the_two_baselines_inverts_the_ratio(seen):
    forth = estimate(noise_units(seen, baseline="base", again="base#2"), 0.95)
    back = estimate(noise_units(seen, baseline="base#2", again="base"), 0.95)
    assert forth.ratio * back.ratio == pytest.approx(1)
    assert forth.e_value == pytest.approx(back.e_value)
    if math.isfinite(forth.high):
        assert forth.high * back.low == pytest.approx(1)


@given(experiments(), st.data())
def test_a_factor_common_to_a_block_changes_nothing(seen, data):
    places = sorted({(o.round, o.block) for o in seen})
    factor = {place: data.draw(st.floats(1e-3, 1e3)) for place in places}
    scaled = [Observation(o.round, o.block, o.arm, o.value * factor[o.round, o.block]) for o in seen]
    assert variant(scaled).values == pytest.approx(variant(seen).values, abs=1e-9)


@given(experiments(), st.randoms(use_true_random=False))
def test_the_order_of_observations_changes_nothing(seen, random):
    shuffled = random.sample(seen, len(seen))
    assert variant(shuffled) == variant(seen)


@given(experiments(), st.data())
def test_blocks_are_complete_or_dropped(seen, data):
    left = [o for o in seen if data.draw(st.booleans())]
    units = variant(left)
    assert units.complete_blocks + units.dropped_blocks == len({(o.round, o.block) for o in left})
    assert len(units) <= units.complete_blocks


@given(e_values, st.floats(0.001, 0.5))
def test_e_bh_keeps_the_largest(values, alpha):
    kept = e_benjamini_hochberg(values, alpha)
    ranked = [keep for _, keep in sorted(zip(values, kept, strict=True), reverse=True)]
    assert ranked == sorted(ranked, reverse=True)
    assert all(
        value >= len(values) / (sum(kept) * alpha) - 1e-9
        for value, keep in zip(values, kept, strict=True)
        if keep
    )


@given(e_values, st.floats(0.001, 0.5))
def test_e_bh_keeps_no_fewer_than_a_correction_by_the_number_of_comparisons(values, alpha):
    kept = e_benjamini_hochberg(values, alpha)
    assert all(keep for value, keep in zip(values, kept, strict=True) if value >= len(values) / alpha)


@given(
    st.lists(samples, min_size=1, max_size=8),
    st.sampled_from(["lower", "higher"]),
    st.floats(0, 0.5),
    st.integers(1, 8),
)
def test_verdicts_say_no_more_than_the_intervals(sets, better, practical, minimum_rounds):
    effects = [estimate(Units(tuple(sample)), 0.95) for sample in sets]
    judged = judge(
        effects,
        better=[better] * len(sets),
        practical=practical,
        confidence=0.95,
        minimum_rounds=minimum_rounds,
    )
    for effect, judgement in zip(effects, judged, strict=True):
        assert judgement.reason
        if judgement.verdict in (Verdict.FASTER, Verdict.SLOWER):
            assert effect.excludes_none
            lower = effect.high < 1
            assert (judgement.verdict is Verdict.FASTER) == (lower == (better == "lower"))
        if judgement.verdict is Verdict.NO_PRACTICAL_DIFFERENCE:
            assert effect.low >= 1 / (1 + practical)
            assert effect.high <= 1 + practical
        if effect.rounds < minimum_rounds:
            assert judgement.verdict is Verdict.NOT_ENOUGH_EVIDENCE
