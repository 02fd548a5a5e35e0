"""The statements in the bodies of functions, and the parameters that their variables become."""

from fakes.goldens import compare_answers
from uncork.profile.shapes.bodies import body_statements, function_statements, with_parameters

TABLES = {
    "orders": ("id", "customer_id", "total", "note"),
    "totals": ("customer_id", "n"),
    "log.entry": ("id", "at"),
}


def test_statements_are_found_whatever_is_around_them():
    compare_answers("profile/bodies", lambda body: "\n".join(body_statements(body)))


def test_a_name_that_no_table_has_is_a_variable():
    compare_answers("profile/variables", lambda sql: with_parameters(sql, TABLES))


def test_statements_of_a_body_have_shapes_and_those_that_the_grammar_rejects_are_left_out():
    ((sql, shape),) = function_statements(
        "BEGIN DELETE FROM orders WHERE id = v; SELECT FROM FROM; END", TABLES
    )
    assert sql == "DELETE FROM orders WHERE id = v"
    assert [(one.column, one.value) for one in shape.predicates] == [("id", "parameter")]
