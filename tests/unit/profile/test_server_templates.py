"""Statements of a server to templates: by its number of them, by the grammar, and without any literal."""

from fakes.goldens import compare_answers
from uncork.profile.grammar import template_text
from uncork.profile.server_templates import TemplateBook, is_normalised


def test_a_template_holds_no_literal():
    compare_answers("profile/templates", template_text)


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


def test_only_statements_without_literals_are_kept():
    compare_answers("answers/profile/only_statements_without_literals_are_kept", is_normalised)
