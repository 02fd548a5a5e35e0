"""Values drawn for the parameters of statements."""

import pytest

from uncork.model.database.plan import ColumnValues
from uncork.profile.parameter_values import compared_parameters, drawn_values, with_values

DAYS = ColumnValues((), tuple(f"day {n}" for n in range(11)))
KINDS = ColumnValues(("usual", "O'Hara \\", "rare"), ())


def quoted(value):
    return "'" + value.replace("'", "''") + "'"


def drawn(statement, statistics, rows=None):
    values = drawn_values(compared_parameters(statement), statistics, rows)
    return [with_values(statement, one, quoted) for one in values]


def test_a_range_is_one_step_of_the_histogram_at_its_end_then_in_the_middle_then_at_the_beginning():
    assert drawn("SELECT * FROM t WHERE d >= $1 AND d < $2 OFFSET $4 LIMIT $3", {("t", "d"): DAYS}, 9.6) == [
        f"SELECT * FROM t WHERE d >= 'day {low}' AND d < 'day {high}' OFFSET '0' LIMIT '10'"
        for low, high in ((9, 10), (4, 5), (1, 2))
    ]
    assert drawn("SELECT * FROM t WHERE d BETWEEN $1::date AND $2", {("t", "d"): DAYS})[0] == (
        "SELECT * FROM t WHERE d BETWEEN 'day 9'::date AND 'day 10'"
    )


def test_equality_takes_the_most_common_values_first_and_lists_different_ones():
    first, second = drawn("SELECT $1 FROM t WHERE k IN ($2, $3) AND l LIKE $4", {("t", "k"): KINDS})
    # Parameters without a value are numbered anew.
    assert first == "SELECT $1 FROM t WHERE k IN ('usual', 'O''Hara \\') AND l LIKE $2"
    assert second == "SELECT $1 FROM t WHERE k IN ('rare', 'O''Hara \\') AND l LIKE $2"
    (of_array,) = drawn_values(
        compared_parameters("SELECT 1 FROM t WHERE k = ANY ($1)"),
        {("t", "k"): ColumnValues(('say "no\\"',), ())},
        None,
    )
    assert of_array == {1: '{"say \\"no\\\\\\""}'}


def test_a_column_without_a_table_is_the_one_table_that_has_it():
    statement = "SELECT 1 FROM t JOIN u ON u.id = t.id WHERE d < $1"
    assert drawn(statement, {("u", "d"): DAYS})[0].endswith("d < 'day 10'")
    assert drawn(statement, {("u", "d"): DAYS, ("t", "d"): DAYS}) == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES ($1)",
        "UPDATE t SET d = $1",
        "SELECT 1 FROM t WHERE d = $1 + $2",
        "SELECT 1 FROM t WHERE d LIKE $1",
        "SELECT 1 FROM t LIMIT $1",
        "SELECT 1 FROM t WHERE d =",
        "SELECT 1 FROM t",
    ],
)
def test_nothing_is_drawn_for_what_is_not_compared_with_a_column(statement):
    assert drawn(statement, {("t", "d"): DAYS}) == []


def test_a_value_that_is_none_is_null():
    assert with_values("UPDATE t SET k = $2 WHERE id = $1 AND l = $3", {1: "7", 2: None}, quoted) == (
        "UPDATE t SET k = NULL WHERE id = '7' AND l = $1"
    )
