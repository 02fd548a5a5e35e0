"""A rewritten statement gets the parameters and values of the captured one."""

from __future__ import annotations

import pytest

from fakes.goldens import compare_answers
from uncork.experiment.cure.setups import Refused, with_captured_parameters

TEMPLATE = "SELECT a FROM t WHERE b = ? AND c > ? LIMIT ?"
NEW = "SELECT a FROM t AS x WHERE c > $2 AND b = $1 LIMIT $3"


def test_values_that_are_part_of_the_captured_text_are_part_of_the_new_one():
    compare_answers(
        "answers/experiment/values_that_are_part_of_the_captured_text_are_part_of_the_ne",
        lambda captured: with_captured_parameters(NEW, TEMPLATE, captured),
    )


@pytest.mark.parametrize(
    "captured",
    [
        "SELECT a FROM t WHERE b = ANY ($1) AND c > $2 LIMIT $3",
        "SELECT a FROM t WHERE b = $1 AND c > $2",
        "SELECT a FROM t WHERE b = $1 AND c > $2 LIMIT $3 OFFSET 5",
        "SELECT a FROM t WHERE b = x AND c > $1 LIMIT $2",
    ],
)
def test_a_captured_statement_of_another_form_does_not_fit(captured):
    with pytest.raises(Refused, match="another form"):
        with_captured_parameters(NEW, TEMPLATE, captured)


def test_a_value_that_nobody_captured_must_come_from_the_application():
    with pytest.raises(Refused, match=r"value for \$4"):
        with_captured_parameters(f"{NEW} OFFSET $4", TEMPLATE, TEMPLATE.replace("?", "$1"))
    assert with_captured_parameters("SELECT $2", "", "SELECT $1, $2") == "SELECT $2"
