"""Statements of a server to templates: by its number of them, by the grammar, and without any literal."""

import pytest

from uncork.profile.grammar import template_text
from uncork.profile.server_templates import TemplateBook, is_normalised


@pytest.mark.parametrize(
    ("statement", "template"),
    [
        ("SELECT  1 ; ", "select ?"),
        ("SELECT \"Ab\".x::text, 'it''s', $1", 'select "Ab".x::text, ?, ?'),
        ("select a -- why\n from t /* 'x' */ where b = E'\\''", "select a from t where b = ?"),
        (
            "SELECT 1 WHERE a IN (1, 2,3) AND b = ANY(ARRAY[1, 2])",
            "select ? where a in (?) and b = any(array[?])",
        ),
        ("select 1 where a in (b, 3, 4)", "select ? where a in (b, ?, ?)"),
        ("insert into t values (1, 'a'), (2, 'b'), (3, 'c')", "insert into t values (?, ?)"),
        ("update t set password = 'secret", "update t set password ="),
        ("select $tag$ secret", "select"),
        ("select 1 /* secret", "select ?"),
        ("select U&'d\\0061t', B'01', X'1F', 1.5e3", "select ?, ?, ?, ?"),
        ("", ""),
    ],
)
def test_a_template_holds_no_literal(statement, template):
    assert template_text(statement) == template


def test_statements_are_one_template_by_number_by_text_or_by_the_grammar():
    book = TemplateBook()
    assert book.number(7, "select * from t where a in ($1, $2)") == 0
    assert book.number(7, None) == 0
    assert book.number(8, "SELECT * FROM t WHERE a IN ($1)") == 0
    assert book.number(None, "select * from t where a in (5)") == 0
    assert book.number(9, "select * from t2 where a in (5)") == 1
    assert book.number(10, None) is None
    assert book.number(None, "") is None
    assert (book.texts, len(set(book.identities))) == (
        ["select * from t where a in (?)", "select * from t2 where a in (?)"],
        2,
    )


def test_what_is_cut_short_is_a_template_by_its_text():
    book = TemplateBook()
    assert book.number(None, "select * from t where a = 'abc") == book.number(
        None, "select * from t where a = 'x"
    )
    assert book.identities == [None]


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("SELECT * FROM item WHERE id = $1", True),
        ("/* shop */ (select 1) union select $1", True),
        ("-- by hand\nWITH found AS (SELECT $1) SELECT * FROM found", True),
        ("ALTER ROLE shop PASSWORD 'secret'", False),
        ("selection", False),
    ],
)
def test_only_statements_without_literals_are_kept(statement, kept):
    assert is_normalised(statement) is kept
