"""What a guard makes of two measurements, and how its command is shown."""

from dataclasses import replace
from functools import partial

import pytest

from uncork.analysis.guard.gates import SAME_ANSWER, Judged, Place, check_of
from uncork.experiment.guard.acknowledged import Known
from uncork.experiment.guard.gate_evidence import GateEvidence
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateOutcome, guard_status
from uncork.model.trial import Cell
from uncork.requests.guard import command_text
from uncork.stats.effect import Effect
from uncork.stats.gates.decision import Decision
from uncork.workbench.guard.confirming import Judgement, measure_and_confirm, unconfirmed

PLACE = Place(parse_gate("p50 < +5%"), Cell((("rows", "10"),)), "get")
KEPT, BROKEN, UNDECIDED = GateOutcome.KEPT, GateOutcome.BROKEN, GateOutcome.UNDECIDED


def judged(outcome, place=PLACE, ratio=1.2, high=1.4):
    effect = Effect(ratio, 1.1, high, 0.95, 8, 0.02, 100.0)
    shown = GateEvidence(effect, 100.0, 100.0 * ratio, ((1, 100.0, 120.0),))
    return Judged(place, shown, Decision(outcome, "because", ratio, 1.1, high, 8, (), f"{ratio}"))


def judgement(one):
    return Judgement(one.place, one.decision, partial(check_of, one))


def guarded(first, second, *, acknowledged=(), twice=True):
    """Guard with measurements that find this; return the checks, and what was measured and said."""
    measured, said = [], []

    def measure(broken):
        measured.append(broken)
        return list(map(judgement, first if broken is None else second))

    def acknowledge(checks):
        return Known(
            tuple(
                replace(one, outcome=GateOutcome.ACKNOWLEDGED) if one.gate.text in acknowledged else one
                for one in checks
            ),
            (),
        )

    return measure_and_confirm(measure, acknowledge, said.append, twice=twice), measured, said


def test_what_is_broken_twice_alarms_with_the_second_measurement():
    (check,), measured, said = guarded([judged(BROKEN)], [judged(BROKEN, ratio=1.15)])
    assert (check.outcome, check.confirmed, check.ratio, check.candidate) == (
        BROKEN,
        True,
        1.15,
        pytest.approx(115.0),
    )
    assert guard_status([check]) == 3
    assert measured == [None, {PLACE}]
    assert said == ['looks broken: "p50 < +5%"; measuring again to confirm']


@pytest.mark.parametrize("second", [KEPT, UNDECIDED])
def test_what_is_not_broken_again_is_not_decided(second):
    (check,), _, _ = guarded([judged(BROKEN)], [judged(second)])
    assert (check.outcome, check.confirmed) == (UNDECIDED, False)
    verb = "confirm" if second is KEPT else "decide"
    assert f"it looked broken (1.2), but a second measurement did not {verb} it" in check.reason
    assert guard_status([check]) == 4


def test_what_was_refused_once_only_is_not_decided():
    place = Place(SAME_ANSWER, PLACE.cell, "get")
    (check,), _, _ = guarded([judged(BROKEN, place)], [])
    assert (check.outcome, check.confirmed, check.unit) == (UNDECIDED, False, "")
    assert check.reason == "it looked broken (because), but a second measurement did not find it"


def test_only_what_looks_broken_is_measured_again_and_replaced():
    other = Place(parse_gate("p99 < +5%"), PLACE.cell, "get")
    checks, measured, _ = guarded([judged(KEPT, other), judged(BROKEN)], [judged(BROKEN)])
    assert [(one.outcome, one.confirmed) for one in checks] == [(KEPT, None), (BROKEN, True)]
    assert measured == [None, {PLACE}]


@pytest.mark.parametrize("options", [{"acknowledged": ("p50 < +5%",)}, {"twice": False}])
def test_what_needs_no_second_measurement_stays_as_it_was(options):
    checks, measured, said = guarded([judged(KEPT), judged(UNDECIDED), judged(BROKEN)], [], **options)
    assert [one.outcome for one in checks] == [KEPT, UNDECIDED, BROKEN]
    assert [one.confirmed for one in checks] == [None] * 3
    assert (measured, said) == ([None], [])
    assert guard_status(checks[:2]) == 4
    assert guard_status(checks[:1]) == guard_status([]) == 0


def test_an_interrupted_guard_alarms_nothing():
    check, kept = unconfirmed(
        [judgement(judged(BROKEN)), judgement(judged(KEPT))], "the guard was interrupted"
    )
    assert (check.outcome, check.confirmed) == (UNDECIDED, False)
    assert check.reason == "it looks broken (because), but the guard was interrupted"
    assert kept.outcome is KEPT


def test_an_interval_without_end_has_no_ends():
    check = check_of(judged(UNDECIDED, high=float("inf")))
    assert (check.low, check.high) == (None, None)
    assert check.cell == (("rows", "10"),)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--candidate", "dsn=host=h password=hush"], '--candidate "dsn=host=h password=${PGPASSWORD:?}"'),
        (
            ["--candidate=dsn=postgresql://u:hush@h/db"],
            '"--candidate=dsn=postgresql://u:${PGPASSWORD:?}@h/db"',
        ),
        (["--dsn", "postgres://u:hush@h"], '--dsn "postgres://u:${PGPASSWORD:?}@h"'),
        (["--dsn=postgres://u:hush@h"], '"--dsn=postgres://u:${PGPASSWORD:?}@h"'),
        (["--candidate", "env=app.TOKEN:hush"], '--candidate "env=app.TOKEN:${TOKEN:?}"'),
        (["--baseline=env=app.API_KEY:hush"], '"--baseline=env=app.API_KEY:${API_KEY:?}"'),
        (["--header", "Authorization: Bearer hush"], '--header "Authorization: ${AUTHORIZATION:?}"'),
        (["--candidate", "env=app.MODE:a b"], "--candidate 'env=app.MODE:a b'"),
        (["--gate", "p99 < +5%"], "--gate 'p99 < +5%'"),
        (["--url", "http://h:1/tokens"], "--url http://h:1/tokens"),
    ],
)
def test_the_command_is_shown_without_secrets(words, told):
    assert command_text(["uncork", *words]) == f"uncork {told}"
