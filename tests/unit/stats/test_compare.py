import math
import random

import pytest

from uncork.model.verdict import Verdict
from uncork.stats.compare import e_benjamini_hochberg, estimate, judge, precise_enough, settled
from uncork.stats.sample import Units

SPREAD = (-0.01, 0.02, 0.0, -0.02, 0.01, 0.015, -0.005, -0.01)


def effect(ratio, spread=1.0, count=8, confidence=0.95):
    return estimate(Units(tuple(math.log(ratio) + spread * value for value in SPREAD[:count])), confidence)


def verdict_of(one, better="lower"):
    (judgement,) = judge([one], better=[better], practical=0.03, confidence=0.95)
    return judgement.verdict, judgement.reason


@pytest.mark.parametrize(("ratio", "better", "verdict"), [
    (1.2, "lower", Verdict.SLOWER),
    (0.8, "lower", Verdict.FASTER),
    (1.2, "higher", Verdict.FASTER),
    (0.8, "higher", Verdict.SLOWER),
])  # fmt: skip
def test_direction(ratio, better, verdict):
    found, reason = verdict_of(effect(ratio), better)
    assert found is verdict
    assert reason.startswith("the interval excludes 1: ")


@pytest.mark.parametrize(("found", "options", "verdict", "direction", "reason"), [
    (effect(0.59), {}, Verdict.FASTER, "faster", "the interval excludes 1: 0.58 to 0.60"),
    (effect(0.99, spread=0.1), {}, Verdict.FASTER, "faster",
     "faster, but by less than the practical threshold of 3%: 0.99 to 0.99"),
    (effect(1.001, spread=0.5), {}, Verdict.NO_PRACTICAL_DIFFERENCE, None,
     "the interval lies within the practical threshold of 3%: 0.99 to 1.01"),
    (effect(1.01), {}, Verdict.NOT_ENOUGH_EVIDENCE, None, "the interval still contains 1: 0.99 to 1.03"),
    (effect(2.0, count=4), {}, Verdict.NOT_ENOUGH_EVIDENCE, "slower",
     "slower so far (1.88 to 2.12); the size is not settled after 4 of 5 rounds"),
    (effect(0.59, count=4), {"better": ["higher"]}, Verdict.NOT_ENOUGH_EVIDENCE, "slower",
     "slower so far (0.55 to 0.63); the size is not settled after 4 of 5 rounds"),
    (effect(0.99, count=4), {}, Verdict.NOT_ENOUGH_EVIDENCE, None, "only 4 rounds; a verdict needs 5"),
    (effect(2.0, count=3), {}, Verdict.NOT_ENOUGH_EVIDENCE, None, "only 3 rounds; a verdict needs 5"),
    (effect(2.0, count=1), {}, Verdict.NOT_ENOUGH_EVIDENCE, None, "only 1 round; a verdict needs 5"),
    (effect(2.0, count=1), {"minimum_rounds": 1}, Verdict.NOT_ENOUGH_EVIDENCE, None,
     "the interval still contains 1: unbounded"),
])  # fmt: skip
def test_a_verdict_has_its_reason_and_a_direction_may_be_known_before(
    found, options, verdict, direction, reason
):
    (judged,) = judge([found], **{"better": ["lower"], "practical": 0.03, "confidence": 0.95, **options})
    assert (judged.verdict, judged.direction, judged.reason) == (verdict, direction, reason)


def test_a_direction_is_corrected_for_the_number_of_comparisons():
    early, unclear = effect(0.59, count=4), effect(1.0, spread=5.0)
    judged = judge([early, *[unclear] * 29], better=["lower"] * 30, practical=0.03, confidence=0.95)
    assert (judged[0].direction, judged[0].reason) == (None, "only 4 rounds; a verdict needs 5")
    judged = judge([early] * 10 + [unclear] * 20, better=["lower"] * 30, practical=0.03, confidence=0.95)
    assert [one.direction for one in judged] == ["faster"] * 10 + [None] * 20


@pytest.mark.parametrize(("found", "alone", "spread", "reason"), [
    (effect(1.027), Verdict.SLOWER, 5.0,
     "excludes 1, but the evidence is too weak after correcting for 30 comparisons"),
    (effect(1.0, spread=1.3), Verdict.NO_PRACTICAL_DIFFERENCE, 9.0,
     "within the practical threshold of 3%, but the evidence is too weak"),
])  # fmt: skip
def test_one_of_many_needs_clearer_evidence_than_one_alone(found, alone, spread, reason):
    assert verdict_of(found)[0] is alone
    others = [effect(1.0, spread=spread)] * 29
    judged = judge([found, *others], better=["lower"] * 30, practical=0.03, confidence=0.95)
    assert judged[0].verdict is Verdict.NOT_ENOUGH_EVIDENCE
    assert reason in judged[0].reason


def test_doubts_travel_with_the_judgement():
    same = estimate(Units((0.1,) * 9), 0.95)
    (judgement,) = judge([same], better=["lower"], practical=0.03, confidence=0.95)
    assert judgement.verdict is Verdict.SLOWER
    assert judgement.warnings == same.warnings != ()


def test_wrong_calls_are_errors():
    with pytest.raises(ValueError, match="1 effects but 2 directions"):
        judge([effect(1.0)], better=["lower", "lower"], practical=0.03, confidence=0.95)
    with pytest.raises(ValueError, match="at the confidence of the judgement"):
        judge([effect(1.0, confidence=0.9)], better=["lower"], practical=0.03, confidence=0.95)
    with pytest.raises(ValueError, match="zero or more"):
        judge([effect(1.0)], better=["lower"], practical=-0.03, confidence=0.95)
    assert judge([], better=[], practical=0.03, confidence=0.95) == []


@pytest.mark.parametrize(("e_values", "kept"), [
    ([], []), ([20.0], [True]), ([19.9], [False]),
    ([39.0, 1.0], [False, False]), ([40.0, 1.0], [True, False]),
    ([21.0, 1.0, 25.0, 30.0], [False] * 4), ([27.0, 1.0, 27.0, 30.0], [True, False, True, True]),
])  # fmt: skip
def test_e_bh(e_values, kept):
    assert e_benjamini_hochberg(e_values, 0.05) == kept


@pytest.mark.parametrize(("e_value", "alpha", "said"), [
    (-1.0, 0.05, "zero or more"), (math.nan, 0.05, "zero or more"), (1.0, 0.0, "alpha"),
])  # fmt: skip
def test_what_is_no_e_value_is_refused(e_value, alpha, said):
    with pytest.raises(ValueError, match=said):
        e_benjamini_hochberg([e_value], alpha)


def settled_of(*effects, precision=0.03, practical=0.03):
    many = len(effects)
    return settled(effects, precision=[precision] * many, practical=[practical] * many, confidence=0.95)


def test_stop_when_precise_not_when_significant():
    wide, narrow = effect(1.5, spread=9.0), effect(1.0)
    assert wide.excludes_none
    assert settled_of(wide, narrow, None) == [False, True, False]
    assert precise_enough(effect(1.0, spread=0.1, count=4), 0.03)
    assert settled_of(effect(1.0, spread=0.1, count=4)) == [False]
    assert not precise_enough(effect(1.0, count=1), 0.03)


def test_a_large_effect_is_settled_when_its_size_is_known_to_a_third():
    third = effect(3.0, spread=12.0)
    assert 0.2 < third.relative_width < 1 / 3
    assert third.half_width > 0.2
    assert settled_of(third) == [True]
    half = effect(1.5, spread=7.0)
    assert half.beyond(0.03)
    assert 1 / 3 < half.relative_width < 0.5
    assert settled_of(half) == [False]


def test_no_practical_difference_is_settled_though_its_interval_is_wider_than_asked():
    same = effect(1.0, spread=1.3)
    assert settled_of(same, precision=0.001) == [True]
    assert settled_of(effect(1.0, spread=3.0), precision=0.001) == [False]


def test_a_claim_that_its_number_of_comparisons_leaves_open_goes_on():
    # Five rounds that are all alike are precise, but an e-value of 441 does not decide one of 30.
    alike = estimate(Units((0.5,) * 5), 0.95)
    open_ones = [effect(1.0, spread=5.0)] * 29
    assert settled_of(alike)[0]
    assert not settled_of(alike, *open_ones)[0]
    assert settled_of(*[alike] * 2, *open_ones[1:])[:2] == [True, True]


def test_what_is_settled_stays_so_and_keeps_its_verdict():
    generator = random.Random(20260821)
    for _ in range(40):
        truths = [generator.choice((0.0, 0.0, 0.05, 0.4, -0.7)) for _ in range(12)]
        std_dev = [generator.choice((0.01, 0.03, 0.1)) for _ in range(12)]
        series = [[] for _ in truths]
        left = {}
        for _ in range(15):
            for place, truth in enumerate(truths):
                if place not in left:
                    series[place].append(generator.gauss(truth, std_dev[place]))
            effects = [estimate(Units(tuple(one)), 0.95) for one in series]
            judged = judge(effects, better=["lower"] * 12, practical=0.03, confidence=0.95)
            done = settled_of(*effects)
            assert all(done[place] for place in left)
            assert all(judged[place].verdict is verdict for place, verdict in left.items() if verdict)
            for place, (is_done, one) in enumerate(zip(done, judged, strict=True)):
                decided = one.verdict is not Verdict.NOT_ENOUGH_EVIDENCE
                if is_done and place not in left:
                    far = effects[place].beyond(0.03) or effects[place].inside(0.03)
                    assert decided or not far
                    left[place] = one.verdict if far else None
        assert left
