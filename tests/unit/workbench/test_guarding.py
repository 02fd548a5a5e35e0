"""What a guard makes of two measurements, and how its command is shown."""

from __future__ import annotations

import pytest

from uncork.analysis.guard.gates import SAME_ANSWER, Judged, Place, check_of
from uncork.experiment.guard.gate_evidence import GateEvidence
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateOutcome, guard_status
from uncork.model.trial import Cell
from uncork.requests.guard import command_text
from uncork.stats.effect import Effect
from uncork.stats.gates.decision import Decision
from uncork.workbench.guard.experiment import _confirmed, _unconfirmed

PLACE = Place(parse_gate("p50 < +5%"), Cell((("rows", "10"),)), "get")
KEPT, BROKEN, UNDECIDED = GateOutcome.KEPT, GateOutcome.BROKEN, GateOutcome.UNDECIDED


def judged(outcome, place=PLACE, ratio=1.2, high=1.4):
    effect = Effect(ratio, 1.1, high, 0.95, 8, 0.02, 100.0)
    shown = GateEvidence(effect, 100.0, 100.0 * ratio, ((1, 100.0, 120.0),))
    return Judged(place, shown, Decision(outcome, "because", ratio, 1.1, high, 8, (), f"{ratio}"))


def test_what_is_broken_twice_alarms_with_the_second_measurement():
    (check,) = _confirmed([judged(BROKEN)], {PLACE: judged(BROKEN, ratio=1.15)}, {PLACE})
    assert (check.outcome, check.confirmed, check.ratio, check.candidate) == (
        BROKEN,
        True,
        1.15,
        pytest.approx(115.0),
    )
    assert guard_status([check]) == 3


@pytest.mark.parametrize("second", [KEPT, UNDECIDED])
def test_what_is_not_broken_again_is_not_decided(second):
    (check,) = _confirmed([judged(BROKEN)], {PLACE: judged(second)}, {PLACE})
    assert (check.outcome, check.confirmed) == (UNDECIDED, False)
    verb = "confirm" if second is KEPT else "decide"
    assert f"it looked broken (1.2), but a second measurement did not {verb} it" in check.reason
    assert guard_status([check]) == 4


def test_what_was_refused_once_only_is_not_decided():
    place = Place(SAME_ANSWER, PLACE.cell, "get")
    (check,) = _confirmed([judged(BROKEN, place)], {}, {place})
    assert (check.outcome, check.confirmed, check.unit) == (UNDECIDED, False, "")


def test_what_needs_no_second_measurement_stays_as_it_was():
    checks = _confirmed([judged(KEPT), judged(UNDECIDED), judged(BROKEN)], {}, set())
    assert [one.outcome for one in checks] == [KEPT, UNDECIDED, BROKEN], "broken, but acknowledged"
    assert [one.confirmed for one in checks] == [None] * 3
    assert guard_status(checks[:2]) == 4
    assert guard_status(checks[:1]) == guard_status([]) == 0


def test_an_interrupted_guard_alarms_nothing():
    (check,) = _unconfirmed([judged(BROKEN)], "the guard was interrupted")
    assert (check.outcome, check.confirmed) == (UNDECIDED, False)
    assert check.reason == "it looks broken (because), but the guard was interrupted"


def test_an_interval_without_end_has_no_ends():
    check = check_of(judged(UNDECIDED, high=float("inf")))
    assert (check.low, check.high) == (None, None)
    assert check.cell == (("rows", "10"),)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--candidate", "dsn=host=h password=hush"], "--candidate 'dsn=host=h password=***'"),
        (["--candidate=dsn=postgresql://u:hush@h/db"], "'--candidate=dsn=postgresql://u:***@h/db'"),
        (["--dsn", "postgres://u:hush@h"], "--dsn 'postgres://u:***@h'"),
        (["--dsn=postgres://u:hush@h"], "'--dsn=postgres://u:***@h'"),
        (["--candidate", "env=app.TOKEN:hush"], "--candidate 'env=app.TOKEN:***'"),
        (["--baseline=env=app.API_KEY:hush"], "'--baseline=env=app.API_KEY:***'"),
        (["--header", "Authorization: Bearer hush"], "--header 'Authorization:***'"),
        (["--candidate", "env=app.MODE:a b"], "--candidate 'env=app.MODE:a b'"),
        (["--gate", "p99 < +5%"], "--gate 'p99 < +5%'"),
        (["--url", "http://h:1/tokens"], "--url http://h:1/tokens"),
    ],
)
def test_the_command_is_shown_without_secrets(words, told):
    assert command_text(["uncork", *words]) == f"uncork {told}"
