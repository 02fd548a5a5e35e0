"""A statement is taken apart by PostgreSQL's grammar: what varies becomes a parameter, the rest stays."""

import pytest

from fakes.goldens import compare_answers
from uncork.profile.statement_parts import logged_values, statement_parts


def test_literals_that_vary_become_parameters():
    def answer(statement):
        found = statement_parts(statement)
        return "\n".join([found.text, *(f"{part.name}: {part.value}" for part in found.parts)])

    compare_answers("profile/parts", answer)


def test_a_parameter_knows_what_it_is_compared_with():
    found = statement_parts(
        "SELECT 1 FROM shop.orders o JOIN customer c ON c.id = o.c WHERE c.mail LIKE 'a%' AND o.n = $1"
    )
    assert found.tables == ("shop.orders", "customer")
    mail, n = found.parts
    assert (mail.column, mail.table, mail.equals) == ("mail", "customer", False)
    assert (n.column, n.table, n.equals, n.number) == ("n", "shop.orders", True, 1)


def test_a_query_of_with_is_no_table_and_a_change_is_known_as_one():
    found = statement_parts("WITH a AS (SELECT * FROM b) DELETE FROM c USING a WHERE c.id = a.id")
    assert set(found.tables) == {"b", "c"}
    assert found.changes
    assert not statement_parts("SELECT 1 FROM b").changes


@pytest.mark.parametrize(
    "text", ["BEGIN", "VACUUM t", "SELECT 1; SELECT 2", "SELECT 'cut of", "<unknown>", ""]
)
def test_other_statements_cannot_be_sent_by_an_experiment(text):
    assert statement_parts(text) is None


def test_a_template_has_a_question_mark_for_each_value():
    found = statement_parts("select id from orders where customer_id = ? and status in (?)", template=True)
    assert found.text == "select id from orders where customer_id = :customer_id and status in (:status)"


def test_the_values_of_a_log_are_read_except_truncated_ones():
    assert logged_values("$1 = '42', $2 = 'o''pen, $3', $3 = NULL, $4 = 'abc...'") == {
        1: "42",
        2: "o'pen, $3",
        3: None,
    }
