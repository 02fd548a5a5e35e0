"""SQL text for engines with a Python driver."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.engines.drivers.dialect import Piece, may_write, place, returns_rows, split_script

SCRIPT = """-- all; of it
CREATE TABLE t (a text DEFAULT ';');  /* a; b */

INSERT INTO t VALUES ('it''s; fine');;
  (SELECT 1);
CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a = CASE WHEN 1 THEN ';' END; SELECT 1; END;
SELECT $$;$$
-- the end;
"""


def test_a_script_is_split_at_its_own_semicolons_only():
    pieces = split_script(SCRIPT)
    assert [piece.line for piece in pieces] == [2, 4, 5, 6, 7]
    assert pieces[1] == Piece(4, "/* a; b */\n\nINSERT INTO t VALUES ('it''s; fine')")
    assert pieces[2].text == "(SELECT 1)"
    assert pieces[3].text.endswith("SELECT 1; END")
    assert split_script("-- nothing\n;;") == []


@given(st.lists(st.text("ab ;'\n", max_size=9).map(lambda text: "'" + text.replace("'", "''") + "'")))
def test_strings_survive_splitting_whatever_they_hold(literals):
    script = ";\n".join(f"SELECT {literal}" for literal in literals)
    connection = sqlite3.connect(":memory:")
    expected = [literal[1:-1].replace("''", "'") for literal in literals]
    assert [connection.execute(piece.text).fetchone()[0] for piece in split_script(script)] == expected
    connection.close()


@pytest.mark.parametrize(("style", "text", "order"), [
    ("dollar", "SELECT '$1', $2, 7 % $1, $2", [0, 1]),
    ("qmark", "SELECT '$1', ?, 7 % ?, ?", [1, 0, 1]),
    ("numeric", "SELECT '$1', :2, 7 % :1, :2", [0, 1]),
    ("named", "SELECT '$1', :p2, 7 % :p1, :p2", [0, 1]),
    ("format", "SELECT '$1', %s, 7 %% %s, %s", [1, 0, 1]),
    ("pyformat", "SELECT '$1', %(p2)s, 7 %% %(p1)s, %(p2)s", [0, 1]),
])  # fmt: skip
def test_parameters_are_written_as_each_driver_takes_them(style, text, order):
    assert place("SELECT '$1', $2, 7 % $1, $2", style, 2) == (text, order)


def test_without_parameters_a_text_stays_as_it_is():
    assert place("SELECT 7 % 2, '%s'", "format", 0) == ("SELECT 7 % 2, '%s'", [])


@pytest.mark.parametrize(("statement", "writes", "rows"), [
    ("SELECT 1 -- insert", False, True),
    ("/* x */ with a as (select 1) select * from a", False, True),
    ("FROM sale", False, True),
    ("SELECT 'delete'", False, True),
    ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", True, False),
    ("INSERT INTO t VALUES (1) RETURNING a", True, True),
    ("SELECT * INTO t FROM s", True, False),
    ("TRUNCATE t", True, False),
    ("CALL anything()", True, False),
    ("PRAGMA user_version", True, True),
])  # fmt: skip
def test_what_does_not_clearly_only_read_may_write(statement, writes, rows):
    assert (may_write([statement]), returns_rows(statement)) == (writes, rows)
