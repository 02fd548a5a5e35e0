"""Two ways of a client are compared on a scratch database: returned rows, rows left behind, types."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from uncork.engines.copying.scratch import ScratchDatabase, unstable_columns
from uncork.errors import SetupError
from uncork.experiment.cure.loops import batches_of, many_rows
from uncork.model.database.workload import CapturedStatement
from uncork.workbench.cure.loops import compare_rows

pytestmark = pytest.mark.postgres

TABLES = """
CREATE TABLE event (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind int, body text,
  at timestamptz DEFAULT now());
CREATE TABLE total AS SELECT n AS kind, 0 AS events FROM generate_series(0, 9) AS n;
CREATE FUNCTION tally() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE total SET events = events + 1 WHERE kind = NEW.kind; RETURN NEW; END $$;
CREATE TRIGGER tallying AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION tally();
CREATE TABLE item AS SELECT n AS id, n % 7 AS customer, 'note ' || n AS note
  FROM generate_series(1, 500) AS n;
"""


@pytest.fixture(scope="module")
def scratch(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        control.execute("CREATE DATABASE answers")
    with psycopg.connect(embedded.conninfo("answers"), autocommit=True) as own:
        own.execute(TABLES)
    with ScratchDatabase(embedded.conninfo("answers")) as found:
        yield found


def captured(sql, sets):
    changes = not sql.startswith("SELECT")
    return CapturedStatement(1, sql, tuple(sets), "drawn", 1, 1, 1, ("item",), changes)


def compared(scratch, sql, sets, many=None):
    """Return the difference between single statements and each way to send many rows."""
    types = dict(enumerate(scratch.parameter_types(sql), start=1))
    ways = many_rows(sql, types)
    batches = batches_of(captured(sql, sets), types, ways)
    return [compare_rows(scratch, one if many is None else many, batches) for one in ways]


@pytest.mark.parametrize(
    ("sql", "sets"),
    [
        ("INSERT INTO event (kind, body) VALUES ($1, $2)", [(str(n % 5), "it's") for n in range(20)]),
        ("UPDATE item SET note = $1, customer = $2 WHERE id = $3",
         [(None if n == 3 else f"a\\\"{n}", "1", str(n)) for n in range(1, 25)]),
        ("UPDATE item SET customer = customer + $1 WHERE id = $2", [("5", str(n)) for n in range(1, 25)]),
        ("DELETE FROM item WHERE id = $1 AND customer < $2", [(str(n), str(n % 9)) for n in range(1, 25)]),
        ("SELECT note FROM item WHERE id = $1", [(str(n),) for n in range(490, 520)]),
        ("SELECT customer, count(*) FROM item WHERE customer = $1 GROUP BY 1", [(str(n),) for n in range(9)]),
        ("SELECT id FROM item WHERE customer = $1 AND id > $2 ORDER BY id LIMIT 2",
         [(str(n % 7), str(n)) for n in range(30)]),
    ],
)  # fmt: skip
def test_one_statement_for_many_rows_does_what_the_single_ones_do(scratch, sql, sets):
    found = compared(scratch, sql, sets)
    assert [one.error for one in found] == [""] * len(found)
    assert all(one.compared >= 4 for one in found)


def test_times_are_left_out_and_named(scratch):
    (found,) = compared(scratch, "INSERT INTO event (kind, body) VALUES ($1, $2)", [("1", "x"), ("2", "y")])
    assert found.left_out == {"event.at"}


def test_what_an_earlier_statement_changed_is_not_compared(scratch):
    """The server reports a session's changes at most once a second, and shows them to it until then."""
    scratch.left_behind(["UPDATE item SET note = note"])
    assert scratch.left_behind(["UPDATE total SET events = 1"]).rows.keys() == {"total"}


def test_other_rows_are_found(scratch):
    sql = "UPDATE item SET note = $1 WHERE id = $2"
    (way,) = many_rows(sql, {1: "text", 2: "integer"})
    wrong = replace(way, sql=way.sql.replace("id = batch.p2", "id = batch.p2 + 1"))
    sets = [(f"new {n}", str(n)) for n in range(1, 25)]
    (found,) = compared(scratch, sql, sets, wrong)
    assert found.error == "It leaves other rows in item than the single statements"
    read = "SELECT note FROM item WHERE id = $1"
    lookup = many_rows(read, {1: "integer"})[0]
    twice = replace(lookup, sql=f"{lookup.sql} OR id = 1")
    found = compared(scratch, read, [(str(n),) for n in range(2, 30)], twice)[0]
    assert found.error.startswith("It returns 21 rows, but")


def test_a_refused_statement_is_an_error_in_the_servers_words(scratch):
    with pytest.raises(SetupError, match="does not exist"):
        scratch.parameter_types("SELECT nothing FROM item WHERE id = $1")
    assert scratch.parameter_types("SELECT 1 FROM item WHERE id = $1 AND note = $2") == ("integer", "text")
    first = scratch.left_behind(["UPDATE item SET note = note"])
    assert not unstable_columns(first, scratch.left_behind(["UPDATE item SET note = note"]))
