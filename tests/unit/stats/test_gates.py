"""What becomes of gates: broken, kept, not decided, from effects, levels, shares and exact values."""

import math
from dataclasses import replace

import pytest

from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateOutcome
from uncork.stats.effect import estimate
from uncork.stats.gates.decision import CONFIRMATION, Exact, GateQuestion, Same, Unknown, confirm, decide
from uncork.stats.gates.words import range_words
from uncork.stats.level import share_level, value_level
from uncork.stats.proportion import ShareUnits, estimate_share
from uncork.stats.sample import Units

CONFIDENCE = 0.95
WOBBLE = (0.0, 0.011, -0.009, 0.004, -0.012, 0.008, -0.002, 0.006, -0.007, 0.001)


def ratio(percent, *, std_dev=1.0, rounds=10, confidence=CONFIDENCE):
    values = tuple(math.log1p(percent / 100) + std_dev * wobble for wobble in WOBBLE[:rounds])
    return estimate(Units(values), confidence)


def shares(own, base, rounds=8):
    each, other = own / 1000, base / 1000
    values = tuple(each - other + wobble / 100 for wobble in WOBBLE[:rounds])
    return estimate_share(ShareUnits(values, (own * 20, 20_000), (base * 40, 40_000)), CONFIDENCE)


def one(gate, evidence, *, practical=0.03):
    return decide([GateQuestion(parse_gate(gate), evidence, practical)], confidence=CONFIDENCE)[0]


@pytest.mark.parametrize(("gate", "percent", "outcome", "reason"), [
    ("p99 < +5%", 8, "broken", "shown worse than the baseline, and by more than +5 %: +"),
    ("p99 < +5%", 0, "kept", "the interval lies within +5 %: "),
    ("p99 < +5%", 2, "kept", "the interval lies within +5 %: "),
    ("p99 < +5%", 4.5, "not decided", "worse than the baseline, but perhaps within +5 %: +"),
    ("p99 < +5%", -8, "kept", "the interval lies within +5 %: −"),
    ("p99 <= baseline", 3, "broken", "shown worse than the baseline: +"),
    ("p99 <= baseline", 0, "kept", "no worse than the baseline by what matters in practice (3 %): "),
    ("p99 <= baseline", -8, "kept", "no worse than the baseline"),
    ("p99 < baseline", 0, "not decided", "the interval reaches beyond the baseline: "),
    ("p99 < baseline", -8, "kept", "the interval lies within the baseline: −"),
    ("p99 < -5%", 0, "broken", "shown to miss −5 %: "),
    ("p99 < -5%", -8, "kept", "the interval lies within −5 %: −"),
    ("throughput > -3%", -8, "broken", "shown worse than the baseline, and by more than −3 %: −"),
    ("throughput > -3%", 8, "kept", "the interval lies within −3 %: +"),
    ("throughput > -3%", -1, "kept", "the interval lies within −3 %: −"),
    ("throughput > +5%", 0, "broken", "shown to miss +5 %: "),
    ("server CPU <= baseline", 3, "broken", "shown worse than the baseline: +"),
])  # fmt: skip
def test_a_ratio_is_held_to_its_bound(gate, percent, outcome, reason):
    decision = one(gate, ratio(percent))
    assert (decision.outcome, decision.reason[: len(reason)]) == (outcome, reason)
    assert decision.rounds == 10
    assert decision.low < decision.ratio < decision.high
    assert ("overstates" in " ".join(decision.warnings)) == (outcome == "broken")


def test_counts_that_vary_are_not_worse_by_next_to_nothing():
    barely = ratio(0.3, std_dev=0.01)
    assert barely.low > 1.0
    assert one("buffers <= baseline", barely).outcome is GateOutcome.KEPT
    assert one("p50 <= baseline", barely).outcome is GateOutcome.BROKEN
    assert one("buffers <= baseline", ratio(2.0, std_dev=0.01)).outcome is GateOutcome.BROKEN


def test_few_rounds_decide_nothing():
    decision = one("p99 < +5%", ratio(30, rounds=4))
    assert (decision.outcome, decision.reason) == (GateOutcome.UNDECIDED, "only 4 rounds; a decision needs 5")


def test_what_is_not_decided_says_how_many_rounds_would_do():
    decision = one("p99 < +5%", ratio(2, std_dev=5))
    assert decision.outcome is GateOutcome.UNDECIDED
    needed = int(decision.reason.split("about ")[1].split(" rounds would decide it")[0])
    assert 20 < needed < 100


def test_many_gates_need_clearer_evidence():
    lone, others = ratio(3.4, std_dev=2.3), [ratio(0, std_dev=20)] * 19
    gate = parse_gate("p99 < +3%")
    alone = decide([GateQuestion(gate, lone)], confidence=CONFIDENCE)[0]
    among = decide([GateQuestion(gate, effect) for effect in [lone, *others]], confidence=CONFIDENCE)[0]
    assert alone.outcome is GateOutcome.BROKEN
    assert among.outcome is GateOutcome.UNDECIDED
    assert among.reason.endswith("would decide a single gate, but is too weak after correcting for 20 gates")


def test_exact_gates_do_not_weigh_on_the_others():
    gate, exact = parse_gate("p99 < +3%"), GateQuestion(parse_gate("queries <= baseline"), Exact(1.0, 1.0, 5))
    asked = [GateQuestion(gate, ratio(3.4, std_dev=2.3)), *[exact] * 19]
    assert decide(asked, confidence=CONFIDENCE)[0].outcome is GateOutcome.BROKEN


@pytest.mark.parametrize(("gate", "own", "base", "outcome"), [
    ("success >= baseline", 950, 1000, "broken"),
    ("success >= baseline", 1000, 1000, "kept"),
    ("success >= baseline", 1000, 950, "kept"),
    ("success > -1 points", 970, 1000, "broken"),
    ("success > -10 points", 970, 1000, "kept"),
    ("errors <= baseline", 950, 1000, "broken"),
    ("errors <= baseline", 1000, 1000, "kept"),
    ("errors < +10 points", 970, 1000, "kept"),
    ("errors < +1 points", 970, 1000, "broken"),
])  # fmt: skip
def test_shares_are_held_to_points(gate, own, base, outcome):
    decision = one(gate, shares(own, base), practical=0.01)
    assert decision.outcome == outcome
    assert decision.ratio == pytest.approx((base - own if "errors" in gate else own - base) / 1000, abs=1e-4)
    assert decision.low <= decision.ratio <= decision.high


@pytest.mark.parametrize(("gate", "values", "outcome", "reason"), [
    ("p99 < 20ms", [18e6, 18.2e6, 17.9e6, 18.1e6, 18e6], "kept",
     "the interval lies within 20.0 ms: 18.0 ms"),
    ("p99 < 20ms", [22e6, 22.2e6, 21.9e6, 22.1e6, 22e6], "broken",
     "shown to be beyond 20.0 ms: 22.0 ms"),
    ("p99 < 20ms", [15e6, 25e6, 19e6, 22e6, 18e6], "not decided",
     "the interval reaches beyond 20.0 ms: 19"),
    ("throughput > 900/s", [1000, 1010, 990, 1005, 1001], "kept",
     "the interval lies within 900/s: 1 001/s"),
    ("throughput > 900/s", [800, 810, 790, 805, 801], "broken", "shown to be beyond 900/s: 801/s"),
    ("WAL < 8kB", [7e3, 7.01e3, 7.02e3, 7.01e3, 7e3], "kept",
     "the interval lies within 8.00 kB: 7.01 kB"),
])  # fmt: skip
def test_a_value_is_held_by_the_candidate_alone(gate, values, outcome, reason):
    decision = one(gate, value_level(values, CONFIDENCE))
    assert (decision.outcome, decision.reason[: len(reason)]) == (outcome, reason)
    assert decision.ratio is None
    assert decision.low < sum(values) / len(values) < decision.high, "the candidate's own interval"


@pytest.mark.parametrize(("gate", "succeeded", "outcome"), [
    ("success > 99%", 10_000, "kept"),
    ("success > 99%", 9_500, "broken"),
    ("success > 99.999%", 10_000, "not decided"),
    ("errors < 1%", 10_000, "kept"),
    ("errors < 1%", 9_500, "broken"),
    ("errors < 7%", 9_500, "kept"),
])  # fmt: skip
def test_a_share_is_held_to_a_value(gate, succeeded, outcome):
    level = share_level([(succeeded // 5 + step, 2_000) for step in (0, 0, 0, -1, 0)], CONFIDENCE)
    assert one(gate, level).outcome == outcome


@pytest.mark.parametrize(("gate", "base", "own", "outcome", "reason"), [
    ("queries <= baseline", 3.0, 3.0, "kept", "3, the same as the baseline"),
    ("queries <= baseline", 3.0, 2.0, "kept", "2 instead of 3"),
    ("queries <= baseline", 1.0, 11.0, "broken", "11 instead of 1"),
    ("queries <= baseline", 0.0, 0.0, "kept", "0, the same as the baseline"),
    ("queries <= baseline", 0.0, 1.0, "broken", "1 instead of 0"),
    ("queries < baseline", 3.0, 3.0, "broken", "3, the same as the baseline, which misses the baseline"),
    ("queries <= 3", None, 3.0, "kept", "3, within 3"),
    ("queries < 3", None, 3.0, "broken", "3, beyond 3"),
    ("size < +10%", 8e6, 8.4e6, "kept", "8.40 MB instead of 8.00 MB, within +10 %"),
    ("size < +10%", 8e6, 8.8e6, "broken", "8.80 MB instead of 8.00 MB, beyond +10 %"),
    ("size <= +10%", 8e6, 8.8e6, "kept", "8.80 MB instead of 8.00 MB, within +10 %"),
    ("size < +10%", 0.0, 0.0, "kept", "0 B, the same as the baseline"),
    ("buffers < +10%", 0.0, 1.0, "broken", "1 instead of 0, beyond +10 %"),
    ("queries <= baseline", None, 1.0, "not decided", "the baseline has no value"),
])  # fmt: skip
def test_exact_values_are_compared_exactly(gate, base, own, outcome, reason):
    decision = one(gate, Exact(base, own, 5))
    assert (decision.outcome, decision.reason) == (outcome, reason)


def test_plans_and_what_nothing_is_known_of():
    assert one("plan unchanged", Same(True, "the plan is the same")).outcome is GateOutcome.KEPT
    assert one("plan unchanged", Same(False, "a sequential scan")).reason == "a sequential scan"
    assert one("plan unchanged", Same(False, "a sequential scan")).outcome is GateOutcome.BROKEN
    assert one("queries <= baseline", Unknown("no statements")).outcome is GateOutcome.UNDECIDED


def test_no_gate_at_all_is_decided():
    assert decide([], confidence=CONFIDENCE) == []


def test_another_confidence_is_refused():
    with pytest.raises(ValueError, match="must be estimated at the confidence of the guard"):
        decide([GateQuestion(parse_gate("p99 < +5%"), ratio(0))], confidence=0.9)


def again(gate, percent, **facts):
    effect = ratio(percent, confidence=CONFIRMATION, **facts)
    return decide([GateQuestion(parse_gate(gate), effect)], confidence=CONFIRMATION)[0]


def test_what_is_found_twice_is_broken():
    first = one("p99 < +5%", ratio(8))
    decision, found = confirm(first, again("p99 < +5%", 7))
    assert found
    assert decision.outcome is GateOutcome.BROKEN
    assert decision.ratio == pytest.approx(1.07, abs=0.002)
    assert decision.reason.endswith(f" in a second measurement, after {first.span} in the first")


def test_what_is_not_found_again_is_not_decided_and_says_so():
    first = one("p99 < +5%", ratio(8))
    decision, found = confirm(first, again("p99 < +5%", 0))
    assert not found
    assert decision.outcome is GateOutcome.UNDECIDED
    assert decision.reason.startswith(
        f"it looked broken ({first.span}), but a second measurement did not confirm it: the interval lies "
        "within"
    )


def test_an_exact_gate_is_confirmed_by_the_same_again():
    broken = one("queries <= baseline", Exact(1.0, 11.0, 5))
    decision, found = confirm(broken, broken)
    assert (found, decision.reason) == (True, "11 instead of 1, in both measurements")
    decision, found = confirm(
        broken, replace(broken, outcome=GateOutcome.KEPT, reason="1, the same as the baseline")
    )
    assert (found, decision.outcome) == (False, GateOutcome.UNDECIDED)


@pytest.mark.parametrize("percent", [-3, -0.4, 0, 0.4, 3, 40])
def test_a_gate_and_its_mirror_agree(percent):
    """What is a gate on latency is the mirrored gate on throughput."""
    latency = one("p99 < 1.25x", ratio(percent))
    throughput = one("throughput > 0.8x", ratio((1 / (1 + percent / 100) - 1) * 100, std_dev=-1.0))
    assert latency.outcome == throughput.outcome


@pytest.mark.parametrize(("figures", "words"), [
    ((1.12, 1.08, 1.16), "+12.0 % (+8.0 to +16.0 %)"),
    ((31.2, 27.1, 35.4), "×31.2 (×27.1 to ×35.4)"),
    ((2.0, 0.5, 40.0), "×2 (×0.5 to ×40)"),
    ((120.4, 90.0, 160.0), "×120 (×90 to ×160)"),
    ((4.0, 0.0, math.inf), "×4 (unbounded)"),
])  # fmt: skip
def test_large_changes_are_told_as_times(figures, words):
    assert range_words(parse_gate("p99 < +5%"), *figures) == words
