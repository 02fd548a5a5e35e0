import pytest

from fakes.results import bare_result, comparison
from uncork.errors import UsageError
from uncork.model.verdict import Verdict
from uncork.workbench.experiment.gate import EXPECTATIONS, Expectation, check, parse_expectation

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
