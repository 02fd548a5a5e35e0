"""A counter in parts: the statement that adds to one, and the sums that must stay the same."""

from __future__ import annotations

import pytest

from uncork.experiment.cure.setups import Refused
from uncork.experiment.cure.transactions import split_counter

CHANGE = """CREATE TABLE counter_part WITH (fillfactor = 50) AS
  SELECT id, 0::smallint AS part, n FROM counter;
ALTER TABLE counter_part ADD PRIMARY KEY (id, part);
INSERT INTO counter_part (id, part, n) VALUES ($1, (random() * 15)::int, 1)
  ON CONFLICT (id, part) DO UPDATE SET n = counter_part.n + excluded.n;"""


@pytest.mark.parametrize(
    ("update", "values"),
    [
        ("UPDATE counter SET n = n + 1 WHERE id = 1", "1, (random() * 15)::int, 1"),
        ("update counter set n = n + $1 where id = $2;", "$2, (random() * 15)::int, $1"),
        ("UPDATE counter AS c SET n = c.n - $1 WHERE (c.id = $2)", "$2, (random() * 15)::int, -$1"),
        ("UPDATE ONLY counter SET n = counter.n + 2\n WHERE id = 'a b'", "'a b', (random() * 15)::int, 2"),
    ],
)
def test_what_is_added_and_to_which_key_comes_from_the_captured_statement(update, values):
    found = split_counter(update, CHANGE)
    assert f"INSERT INTO counter_part (id, part, n) VALUES ({values})\nON CONFLICT (id, part)" in found.sql
    assert found.setup.startswith("CREATE TABLE counter_part") and found.setup.count(";") == 2
    assert found.check == "SELECT id, sum(n) FROM counter_part GROUP BY id ORDER BY id"
    assert found.baseline_check == "SELECT id, sum(n) FROM counter GROUP BY id ORDER BY id"


@pytest.mark.parametrize(
    "update",
    [
        "UPDATE counter SET n = m + 1 WHERE id = 1",
        "UPDATE counter SET n = n + 1, at = now() WHERE id = 1",
        "UPDATE counter SET n = n + 1 WHERE id = 1 OR id = 2",
        "UPDATE counter SET n = n + 1 WHERE id > 1",
        "UPDATE counter SET n = n + 1 WHERE id = 1 RETURNING n",
        "UPDATE counter SET n = n + 1 WHERE id = (SELECT 1)",
    ],
)
def test_other_statements_are_refused(update):
    with pytest.raises(Refused, match="not of the form"):
        split_counter(update, CHANGE)


def test_a_counter_of_a_trigger_is_refused():
    with pytest.raises(Refused, match="within a function or a trigger"):
        split_counter("INSERT INTO sale (shop, price) VALUES (1, 2)", CHANGE)


def test_a_row_that_other_columns_choose_is_refused():
    with pytest.raises(Refused, match="by other columns"):
        split_counter("UPDATE counter SET n = n + 1 WHERE id = 1 AND kind = 2", CHANGE)
    with pytest.raises(Refused, match="no statement that adds"):
        split_counter("UPDATE counter SET n = n + 1 WHERE id = 1", "CREATE TABLE a (b int);")
