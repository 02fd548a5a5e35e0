"""A statement is taken apart by PostgreSQL's grammar: what varies becomes a parameter, the rest stays."""

import pytest

from uncork.profile.statement_parts import logged_values, statement_parts


@pytest.mark.parametrize(
    ("statement", "text", "values"),
    [
        ("SELECT id FROM orders WHERE customer_id = 42 AND status = 'it''s' LIMIT 10;",
         "SELECT id FROM orders WHERE customer_id = :customer_id AND status = :status LIMIT 10",
         ["42", "it's"]),
        ("SELECT 'x' FROM t WHERE at > now() - interval '1 day' AND n IN (1, 2, -3)",
         "SELECT 'x' FROM t WHERE at > now() - interval '1 day' AND n IN (:n, :n2, -3)",
         ["1", "2"]),
        ("INSERT INTO t (a, b) VALUES (1, 'ö')", "INSERT INTO t (a, b) VALUES (:a, :b)",
         ["1", "ö"]),
        ("UPDATE t SET s = 'done' WHERE id = 7", "UPDATE t SET s = :s WHERE id = :id",
         ["done", "7"]),
        ("SELECT * FROM t WHERE a = $1 OR b = $1::int",
         "SELECT * FROM t WHERE a = :a OR b = :a::int", [None]),
        ('SELECT 1 FROM t WHERE "Größe" = 3', 'SELECT 1 FROM t WHERE "Größe" = :Gr__e', ["3"]),
        ("SELECT 1 FROM t WHERE change = 3", "SELECT 1 FROM t WHERE change = :p_change", ["3"]),
        (f"SELECT 1 FROM t WHERE a IN ({', '.join(map(str, range(50)))})",
         f"SELECT 1 FROM t WHERE a IN ({', '.join(map(str, range(50)))})", []),
    ],
)  # fmt: skip
def test_literals_that_vary_become_parameters(statement, text, values):
    found = statement_parts(statement)
    assert found.text == text
    assert [one.value for one in found.parts] == values


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
