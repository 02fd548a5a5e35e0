"""Guards from the request to what they keep."""

import os
from dataclasses import replace
from functools import partial

import pytest

from fakes.guards import everything
from fakes.results import bare_result, comparison
from uncork.analysis.guard.gates import SAME_ANSWER, Judged, Place, check_of
from uncork.engines import process
from uncork.errors import StoreError, UsageError
from uncork.experiment.guard.acknowledged import Known
from uncork.experiment.guard.gate_evidence import GateEvidence
from uncork.experiment.guard.sides import parse_side
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateOutcome, GuardSide, guard_status
from uncork.model.trial import Cell
from uncork.model.verdict import Verdict
from uncork.requests.guard import GuardRequest, command_text
from uncork.requests.source import Options
from uncork.stats.effect import Effect
from uncork.stats.gates.decision import Decision
from uncork.store.layout import Attempt, Manifest, write_manifest
from uncork.workbench.experiment.gate import EXPECTATIONS, Expectation, check, parse_expectation
from uncork.workbench.guard.confirming import Judgement, measure_and_confirm, unconfirmed
from uncork.workbench.guard.guards import carry_out_guard, guard_target, resume_guard
from uncork.workbench.guard.store import (
    StoredRequest,
    read_guard,
    read_request,
    refuse_guard,
    write_guard,
    write_request,
)

KEPT, BROKEN, UNDECIDED = 0, 3, 4
STATUS = {
    "faster": (KEPT, BROKEN, BROKEN, UNDECIDED, BROKEN, UNDECIDED),
    "slower": (BROKEN, KEPT, BROKEN, UNDECIDED, BROKEN, UNDECIDED),
    "not-slower": (KEPT, BROKEN, KEPT, UNDECIDED, BROKEN, UNDECIDED),
    "no-difference": (BROKEN, BROKEN, KEPT, UNDECIDED, BROKEN, UNDECIDED),
}
VERDICTS = (
    Verdict.FASTER,
    Verdict.SLOWER,
    Verdict.NO_PRACTICAL_DIFFERENCE,
    Verdict.NOT_ENOUGH_EVIDENCE,
    Verdict.REFUSED,
    Verdict.SKIPPED,
)
WAYS = [
    (expected, verdict, status)
    for expected, statuses in STATUS.items()
    for verdict, status in zip(VERDICTS, statuses, strict=True)
]


def test_every_expectation_is_tested_with_every_verdict():
    assert set(STATUS) == set(EXPECTATIONS)
    assert set(VERDICTS) == set(Verdict)


@pytest.mark.parametrize(("expected", "verdict", "status"), WAYS)
def test_a_verdict_keeps_breaks_or_leaves_open_an_expectation(expected, verdict, status):
    result = bare_result(comparison("uuid", verdict, reason="why"))
    found, sentences = check(result, [Expectation("uuid", expected)])
    assert found == status
    wanted = [] if status == KEPT else [f"expected {expected}: uuid on select is {verdict} (why)"]
    assert sentences == wanted


def test_a_sentence_names_the_cell():
    cell = (("rows", "10"), ("index", "none"))
    result = bare_result(comparison("uuid", Verdict.SLOWER, 1.2, 1.1, 1.3, cell=cell, reason="why"))
    assert check(result, [Expectation("uuid", "faster")])[1] == [
        "expected faster: uuid on select at rows=10,index=none is slower (why)"
    ]


def test_one_broken_comparison_is_enough_and_open_ones_are_not_mentioned_beside_it():
    result = bare_result(
        comparison("uuid", Verdict.FASTER, workload="select"),
        comparison("uuid", Verdict.NOT_ENOUGH_EVIDENCE, workload="insert"),
        comparison("uuid", Verdict.SLOWER, 1.2, 1.1, 1.3, workload="delete"),
    )
    status, sentences = check(result, [Expectation("uuid", "faster")])
    assert status == BROKEN
    assert [sentence.split()[4] for sentence in sentences] == ["delete"]


def test_other_variants_do_not_matter():
    result = bare_result(comparison("uuid"), comparison("bytea", Verdict.SLOWER, 1.2, 1.1, 1.3))
    assert check(result, [Expectation("uuid", "faster")]) == (KEPT, [])


def test_several_expectations_are_all_checked():
    result = bare_result(comparison("uuid"), comparison("bytea", Verdict.NOT_ENOUGH_EVIDENCE))
    assert check(result, [Expectation("uuid", "faster"), Expectation("bytea", "faster")])[0] == UNDECIDED
    assert check(result, [Expectation("uuid", "slower"), Expectation("bytea", "faster")])[0] == BROKEN
    assert check(result, []) == (KEPT, [])


def test_an_expectation_is_read_from_text():
    assert parse_expectation("uuid=not-slower", ["char", "uuid"]) == Expectation("uuid", "not-slower")


@pytest.mark.parametrize(("text", "message"), [
    ("uuid",
     "--expect uuid: write VARIANT=EXPECTATION with one of faster, slower, not-slower, no-difference"),
    ("uuid=better",
     "--expect uuid=better: write VARIANT=EXPECTATION with one of "
     "faster, slower, not-slower, no-difference"),
    ("uid=faster", '--expect uid=faster: there is no variant "uid"; did you mean "uuid"?'),
    ("x=faster", '--expect x=faster: there is no variant "x"; expected one of char, uuid'),
])  # fmt: skip
def test_an_expectation_that_makes_no_sense_is_refused(text, message):
    with pytest.raises(UsageError) as raised:
        parse_expectation(text, ["char", "uuid"])
    assert str(raised.value) == message


def test_an_expectation_about_nothing_that_was_compared_is_not_kept():
    result = bare_result(comparison("uuid"))
    assert check(result, [Expectation("char", "faster")])[0] != KEPT


PLACE = Place(parse_gate("p50 < +5%"), Cell((("rows", "10"),)), "get")
GUARDS_KEPT, GUARDS_BROKEN, GUARDS_UNDECIDED = GateOutcome.KEPT, GateOutcome.BROKEN, GateOutcome.UNDECIDED


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
    (check,), measured, said = guarded([judged(GUARDS_BROKEN)], [judged(GUARDS_BROKEN, ratio=1.15)])
    assert (check.outcome, check.confirmed, check.ratio, check.candidate) == (
        GUARDS_BROKEN,
        True,
        1.15,
        pytest.approx(115.0),
    )
    assert guard_status([check]) == 3
    assert measured == [None, {PLACE}]
    assert said == ['looks broken: "p50 < +5%"; measuring again to confirm']


@pytest.mark.parametrize("second", [GUARDS_KEPT, GUARDS_UNDECIDED])
def test_what_is_not_broken_again_is_not_decided(second):
    (check,), _, _ = guarded([judged(GUARDS_BROKEN)], [judged(second)])
    assert (check.outcome, check.confirmed) == (GUARDS_UNDECIDED, False)
    verb = "confirm" if second is GUARDS_KEPT else "decide"
    assert f"it looked broken (1.2), but a second measurement did not {verb} it" in check.reason
    assert guard_status([check]) == 4


def test_what_was_refused_once_only_is_not_decided():
    place = Place(SAME_ANSWER, PLACE.cell, "get")
    (check,), _, _ = guarded([judged(GUARDS_BROKEN, place)], [])
    assert (check.outcome, check.confirmed, check.unit) == (GUARDS_UNDECIDED, False, "")
    assert check.reason == "it looked broken (because), but a second measurement did not find it"


def test_only_what_looks_broken_is_measured_again_and_replaced():
    other = Place(parse_gate("p99 < +5%"), PLACE.cell, "get")
    checks, measured, _ = guarded(
        [judged(GUARDS_KEPT, other), judged(GUARDS_BROKEN)], [judged(GUARDS_BROKEN)]
    )
    assert [(one.outcome, one.confirmed) for one in checks] == [(GUARDS_KEPT, None), (GUARDS_BROKEN, True)]
    assert measured == [None, {PLACE}]


@pytest.mark.parametrize("options", [{"acknowledged": ("p50 < +5%",)}, {"twice": False}])
def test_what_needs_no_second_measurement_stays_as_it_was(options):
    checks, measured, said = guarded(
        [judged(GUARDS_KEPT), judged(GUARDS_UNDECIDED), judged(GUARDS_BROKEN)], [], **options
    )
    assert [one.outcome for one in checks] == [GUARDS_KEPT, GUARDS_UNDECIDED, GUARDS_BROKEN]
    assert [one.confirmed for one in checks] == [None] * 3
    assert (measured, said) == ([None], [])
    assert guard_status(checks[:2]) == 4
    assert guard_status(checks[:1]) == guard_status([]) == 0


def test_an_interrupted_guard_alarms_nothing():
    check, kept = unconfirmed(
        [judgement(judged(GUARDS_BROKEN)), judgement(judged(GUARDS_KEPT))], "the guard was interrupted"
    )
    assert (check.outcome, check.confirmed) == (GUARDS_UNDECIDED, False)
    assert check.reason == "it looks broken (because), but the guard was interrupted"
    assert kept.outcome is GUARDS_KEPT


def test_an_interval_without_end_has_no_ends():
    check = check_of(judged(GUARDS_UNDECIDED, high=float("inf")))
    assert (check.low, check.high) == (None, None)
    assert check.cell == (("rows", "10"),)


@pytest.mark.parametrize(("words", "told"), [
    (["--candidate", "dsn=host=h password=hush"], '--candidate "dsn=host=h password=${PGPASSWORD:?}"'),
    (["--candidate=dsn=postgresql://u:hush@h/db"],
     '"--candidate=dsn=postgresql://u:${PGPASSWORD:?}@h/db"'),
    (["--dsn", "postgres://u:hush@h"], '--dsn "postgres://u:${PGPASSWORD:?}@h"'),
    (["--dsn=postgres://u:hush@h"], '"--dsn=postgres://u:${PGPASSWORD:?}@h"'),
    (["--candidate", "env=app.TOKEN:hush"], '--candidate "env=app.TOKEN:${TOKEN:?}"'),
    (["--baseline=env=app.API_KEY:hush"], '"--baseline=env=app.API_KEY:${API_KEY:?}"'),
    (["--header", "Authorization: Bearer hush"], '--header "Authorization: ${AUTHORIZATION:?}"'),
    (["--candidate", "env=app.MODE:a b"], "--candidate 'env=app.MODE:a b'"),
    (["--gate", "p99 < +5%"], "--gate 'p99 < +5%'"),
    (["--url", "http://h:1/tokens"], "--url http://h:1/tokens"),
])  # fmt: skip
def test_the_command_is_shown_without_secrets(words, told):
    assert command_text(["uncork", *words]) == f"uncork {told}"


def test_a_guard_is_read_as_it_was_written(tmp_path):
    write_guard(tmp_path, everything())
    assert read_guard(tmp_path) == everything()


def test_a_guard_of_another_version_is_refused(tmp_path):
    write_guard(tmp_path, replace(everything(), version=2))
    with pytest.raises(StoreError, match="format version 2, but this uncork reads version 1"):
        read_guard(tmp_path)


TEXT = """
[experiment]
name = "guard-sorts"
question = "Still as fast?"

[variants.baseline]
baseline = true
[variants.candidate]
settings = { work_mem = "64kB" }

[setup]
sql = "CREATE TABLE t (id int)"

[workloads.sort]
sql = "SELECT 1"
duration = "100ms"

[guard]
gates = ["p50 < +5%"]
"""
ASKED = StoredRequest(
    baseline=GuardSide("baseline", "as it is", commit="1a2b3c"),
    candidate=GuardSide("candidate", "work_mem = 64kB", ("work_mem = 64kB",)),
    overridden=("the files differ",),
    command="uncork guard sorts.toml --candidate setting=work_mem:64kB",
    confirm=True,
    acknowledged="/somewhere/known.toml",
)
ENDED = Attempt("2026-06-01T10:00:00+00:00", 90 * 10**9, 3, "interrupted", "interrupted")


@pytest.fixture
def run(tmp_path):
    """The run of a guard that was interrupted after 90 seconds."""
    folder = tmp_path / "guard-sorts-20260601-100000"
    folder.mkdir()
    manifest = Manifest(
        id=folder.name, name="guard-sorts", question="Still as fast?", status="interrupted",
        started_at=ENDED.started_at, seed=1, unit="round", server="embedded", uncork_version="1",
        options=Options(budget_ns=100 * 10**9).stored(), attempts=(ENDED,),
    )  # fmt: skip
    write_manifest(folder, manifest)
    (folder / "experiment.toml").write_text(TEXT)
    write_request(folder, ASKED)
    return folder, manifest


def resume(folder, sides=(), **changes):
    def never(_session):
        raise AssertionError("nothing should be measured")

    baseline, candidate = (
        parse_side(role, sides[at : at + 1]) for at, role in enumerate(("baseline", "candidate"))
    )
    wanted = GuardRequest(folder.name, baseline, candidate, resume=True, **changes)
    return resume_guard(folder, wanted, never, lambda _: None)


def test_how_it_was_asked_is_read_back(run):
    folder, _ = run
    assert read_request(folder) == ASKED
    assert read_request(folder.parent) is None


def test_an_experiment_is_not_resumed_where_it_is_a_guards(run):
    folder, _ = run
    with pytest.raises(UsageError, match=f"resume that: uncork guard --resume {folder.name}$"):
        refuse_guard(folder)
    refuse_guard(folder.parent)


HERE = process.identity(os.getpid())


@pytest.mark.parametrize(("asked", "manifest", "sides", "told"), [
    ({"confirms": "guard-1"}, {}, (),
     "is the second measurement of guard guard-1, which cannot be resumed"),
    ({"checkouts": True}, {}, (), "uses checkouts of commits or a working tree, which may have changed"),
    ({}, {"status": "complete", "owner": HERE}, (),
     "the second measurement of guard-sorts-20260601-100000 had begun"),
    ({}, {"status": "running", "owner": HERE}, (), "is still"),
    ({}, {"attempts": (replace(ENDED, elapsed_ns=99 * 10**9),)}, (),
     r"has used 99.* s of its budget of 100 s, .* --budget 200s"),
    ({}, {}, ("dsn=host=a", "dsn=host=b"), r"was measured on another server \(embedded\)"),
])  # fmt: skip
def test_what_cannot_be_the_same_or_has_ended_does_not_go_on(run, asked, manifest, sides, told):
    folder, known = run
    write_request(folder, replace(ASKED, **asked))
    write_manifest(folder, replace(known, **manifest))
    with pytest.raises(UsageError, match=told) as caught:
        resume(folder, sides)
    if asked:
        assert str(caught.value).endswith(f"; guard again: {ASKED.command}")


def test_what_is_no_guard_of_an_experiment_is_told(run):
    folder, _ = run
    (folder / "guard-request.json").unlink()
    with pytest.raises(
        UsageError, match="is not a guard of an experiment; resume an experiment with uncork run"
    ):
        resume(folder)


@pytest.mark.parametrize(("asked", "told"), [
    ({"gates": ("p50 < +5%",)}, "--gate"),
    ({"confirm": False}, "--no-confirm"),
    ({"options": Options(seed=0)}, "--seed"),
    ({"candidate": parse_side("candidate", ["setting=work_mem:1MB"])}, "--candidate"),
    ({"everything": True}, "--all"),
])  # fmt: skip
def test_what_would_make_it_another_guard_is_refused(tmp_path, asked, told):
    sides = {role: parse_side(role, []) for role in ("baseline", "candidate")}
    wanted = GuardRequest("last", **{**sides, **asked}, resume=True)
    with pytest.raises(UsageError, match=f"own options: leave out {told} "):
        carry_out_guard(tmp_path, wanted, lambda _: None, lambda _: None)


def test_either_a_target_or_a_guard_to_go_on_with_is_named():
    assert (guard_target("a.toml", None), guard_target(None, "last")) == ("a.toml", "last")
    for target, resume, told in (
        (None, None, "name an experiment file"),
        ("a.toml", "last", "leave out a.toml"),
    ):
        with pytest.raises(UsageError, match=told):
            guard_target(target, resume)
