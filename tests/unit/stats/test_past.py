"""A run beside its past: what stands for it, and what becomes of gates."""

import math

import pytest

from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateOutcome
from uncork.stats.gates.decision import Exact, GateQuestion
from uncork.stats.gates.history import Past, beside_past, past_of, share_beside_past
from uncork.stats.gates.history_gates import judge_past, ratio_beside, share_beside, value_beside
from uncork.stats.run_comparison import ComparableRun, log_odds

DAY = 86_400.0
USUAL = (1.01, 0.99, 1.02, 0.98, 1.0, 1.015, 0.99, 1.0)
CONFIDENCE = 0.95


def runs(*values, start=0):
    return [ComparableRun(DAY * (start + n), math.log(value)) for n, value in enumerate(values)]


def judged(text, found, **options):
    (one,) = judge_past([ratio_beside(parse_gate(text), found, practical=0.03)], confidence=CONFIDENCE)
    return one


def beside(value, past=USUAL, **options):
    (new,) = runs(value, start=len(past))
    return beside_past([new], past_of(runs(*past)), confidence=CONFIDENCE, **options)


def test_the_past_begins_with_the_last_change():
    past = past_of(runs(*USUAL, *(1.5 * value for value in USUAL)))
    assert (past.before, len(past.runs)) == (8, 8)
    assert math.exp(past.median) == pytest.approx(1.5, rel=0.01)
    assert past_of(runs(*USUAL)).before == 0


def test_one_spoiled_run_moves_the_median_hardly_at_all():
    usual, spoiled = past_of(runs(*USUAL)), past_of(runs(*USUAL[:-1], 3.0))
    assert spoiled.before == 0
    assert spoiled.median == pytest.approx(usual.median, abs=0.01)
    assert beside(1.3, (*USUAL[:-1], 3.0)).differs > 0.05


def test_several_runs_in_a_row_are_taken_as_one():
    past = past_of(runs(*USUAL))
    new = runs(1.2, 9.0, 1.21, start=8)
    found = beside_past(new, past, confidence=CONFIDENCE)
    assert found.ratio == pytest.approx(1.21, rel=0.01)
    assert found.error == beside(1.21).error


def test_a_run_of_the_past_that_people_chose_is_left_out_of_its_scatter():
    past = past_of(runs(*USUAL))
    chosen = past.runs[3]
    (new,) = runs(0.98, start=8)
    found = beside_past([new], past, confidence=CONFIDENCE, baseline=chosen)
    assert found.ratio == pytest.approx(1.0)
    assert found.error == pytest.approx(math.sqrt(2) * past.std_dev(chosen).std_dev)
    assert past.std_dev(chosen).runs == 7


@pytest.mark.parametrize(("text", "value", "outcome", "said"), [
    ("p99 < +5%", 1.30, GateOutcome.BROKEN, "shown worse than before, and by more than +5 %: +30"),
    ("p99 < +40%", 1.20, GateOutcome.KEPT, "the interval lies within +40 %"),
    ("p99 < +25%", 1.23, GateOutcome.UNDECIDED, "worse than before, but perhaps within +25 %"),
    ("p99 < +5%", 1.0, GateOutcome.KEPT, "the interval lies within +5 %"),
    ("p99 < +5%", 1.02, GateOutcome.UNDECIDED, "the interval reaches beyond +5 %"),
    ("p99 < +5%", 0.5, GateOutcome.KEPT, "the interval lies within +5 %"),
    ("p99 <= baseline", 1.10, GateOutcome.BROKEN, "shown worse than before: +10"),
    ("p99 <= baseline", 0.96, GateOutcome.KEPT, "within what matters in practice (3 %)"),
    ("p99 < -10%", 1.0, GateOutcome.BROKEN, "by more than −10 %"),
    ("throughput > -5%", 0.7, GateOutcome.BROKEN, "by more than −5 %: −30"),
    ("throughput > -5%", 1.3, GateOutcome.KEPT, "within −5 %"),
])  # fmt: skip
def test_a_gate_on_a_ratio(text, value, outcome, said):
    found = judged(text, beside(value))
    assert found.outcome is outcome
    assert said in found.reason
    assert found.low < found.ratio < found.high


def test_a_gate_on_a_value_asks_for_one_more_such_run():
    limit = math.log(20e6)
    past = tuple(20e6 * value for value in USUAL)
    for value, outcome in (
        (14e6, GateOutcome.KEPT),
        (20e6, GateOutcome.UNDECIDED),
        (30e6, GateOutcome.BROKEN),
    ):
        one = value_beside(parse_gate("p99 < 20ms"), beside(value, past, limit=limit))
        (found,) = judge_past([one], confidence=CONFIDENCE)
        assert found.outcome is outcome
        assert found.ratio is None
        assert f"{value / 1e6:.0f}" in found.span


@pytest.mark.parametrize(("text", "failed", "outcome"), [
    ("success >= baseline", 10, GateOutcome.KEPT),
    ("success >= baseline", 900, GateOutcome.BROKEN),
    ("errors < +20 points", 500, GateOutcome.KEPT),
    ("errors < +1 points", 900, GateOutcome.BROKEN),
    ("errors < 5%", 900, GateOutcome.BROKEN),
    ("success > 95%", 900, GateOutcome.BROKEN),
    ("success > 50%", 10, GateOutcome.KEPT),
])  # fmt: skip
def test_a_gate_on_a_share(text, failed, outcome):
    of, before = 10_000, (9, 11, 10, 12, 8, 10, 9, 11)
    past = Past(tuple(ComparableRun(DAY * n, log_odds(count, of)) for n, count in enumerate(before)))
    gate = parse_gate(text)
    if gate.bound == "value":
        limit = gate.limit if gate.metric == "errors" else 1 - gate.limit
        at = (round(limit * 10**9), 10**9)
        found = share_beside_past((failed, of), 8 * DAY, at, past, confidence=CONFIDENCE)
        one = value_beside(gate, found, failures=True)
    else:
        old = (sum(before), of * len(before))
        found = share_beside_past((failed, of), 8 * DAY, old, past, confidence=CONFIDENCE)
        one = share_beside(gate, found, old[0] / old[1], practical=0.01)
        sign = 1 if gate.metric == "errors" else -1
        assert one.estimate == pytest.approx(sign * (failed / of - 0.001), abs=1e-3)
    (decision,) = judge_past([one], confidence=CONFIDENCE)
    assert decision.outcome is outcome, decision.reason


def test_a_short_past_decides_nothing_and_counts_need_none():
    found = beside(3.0, USUAL[:4])
    exact = GateQuestion(parse_gate("sent < +5%"), Exact(100.0, 120.0))
    noisy, counted = judge_past(
        [ratio_beside(parse_gate("p99 < +5%"), found, practical=0.03), exact], confidence=CONFIDENCE
    )
    assert noisy.outcome is GateOutcome.UNDECIDED
    assert "only 4 are stored" in noisy.reason
    assert counted.outcome is GateOutcome.BROKEN


def test_many_gates_are_judged_together():
    """What would alarm alone does not among twenty that say nothing."""
    gate = parse_gate("p99 < +1%")
    value = next(1.0 + n / 1000 for n in range(20, 300) if beside(1.0 + n / 1000).differs < 0.045)
    worse = ratio_beside(gate, beside(value), practical=0.03)
    nothing = ratio_beside(gate, beside(1.01), practical=0.03)
    (alone,) = judge_past([worse], confidence=CONFIDENCE)
    assert alone.outcome is GateOutcome.BROKEN
    first, *_ = judge_past([worse, *[nothing] * 19], confidence=CONFIDENCE)
    assert first.outcome is GateOutcome.UNDECIDED
    assert "after correcting for 20 gates" in first.reason
