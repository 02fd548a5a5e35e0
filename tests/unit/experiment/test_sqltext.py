import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.experiment.spec.sqltext import bind, names_in, substitute


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ':name'",
        "SELECT 'it''s :name'",
        'SELECT ":name"',
        'SELECT "a "" quote :name"',
        "SELECT 1 -- :name",
        "SELECT /* :name */ 1",
        "SELECT /* a * star / and :name */ 1",
        "SELECT /* outer /* inner */ :name */ 1",
        "SELECT /* a /* b /* c */ :name */ :name */ 1",
        "SELECT /*/ :name */ 1",
        "SELECT 1 /* never closed :name",
        r"SELECT E'it\'s :name'",
        r"SELECT e'\\', ':name'",
        "SELECT $$ :name $$",
        "SELECT $body$ $$ :name $$ $body$",
        "SELECT $f1$ :name $f1$",
        "SELECT $größe$ :name $größe$",
        "SELECT '1'::name",
        "SELECT '{1}'::int[]",
        "CALL make(rows := name)",
        "SELECT list[1:2]",
        "SELECT list[1 : name]",
        "SELECT 12:34",
    ],
)
def test_what_only_looks_like_a_name_stays(sql):
    assert names_in(sql) == set()
    assert substitute(sql, {"name": "X", "int": "X"}) == sql
    assert bind(sql, {"name": 0, "int": 1}) == (sql, [])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (":name", "X"),
        ("SELECT :name::text", "SELECT X::text"),
        ("SELECT ':name', :name", "SELECT ':name', X"),
        ("/* one */ :name /* two */", "/* one */ X /* two */"),
        ("/* one /* two */ */ :name", "/* one /* two */ */ X"),
        ("SELECT 1 -- no\n, :name", "SELECT 1 -- no\n, X"),
        ("SELECT $$ $$, :name, $$ $$", "SELECT $$ $$, X, $$ $$"),
        ("SELECT $1, :name, $2", "SELECT $1, X, $2"),
        (r"SELECT a LIKE'\' AND b = :name AND c = ''", r"SELECT a LIKE'\' AND b = X AND c = ''"),
        ("SELECT list[:name:2]", "SELECT list[X:2]"),
        ("SELECT list[1:name]", "SELECT list[1X]"),
        ("make(rows := :name)", "make(rows := X)"),
        ("a:name.b", "aX.b"),
        (":names", ":names"),
    ],
)
def test_a_name_is_replaced_wherever_sql_can_hold_one(sql, expected):
    assert substitute(sql, {"name": "X"}) == expected


def test_a_text_that_is_put_in_is_not_looked_through_again():
    assert substitute(":a :b", {"a": ":b", "b": ":a"}) == ":b :a"


def test_names_without_a_text_stay():
    assert substitute("SELECT :known, :unknown", {"known": "1"}) == "SELECT 1, :unknown"
    assert names_in("SELECT :known, :unknown, :known") == {"known", "unknown"}


def test_a_name_used_twice_is_bound_once():
    assert bind("SELECT :b, :a, :b, :a", {"a": 0, "b": 1}) == ("SELECT $1, $2, $1, $2", [1, 0])


def test_only_parameters_that_are_used_are_bound():
    assert bind("SELECT :b, :other", {"a": 0, "b": 1}) == ("SELECT $1, :other", [1])


@given(st.text(alphabet=st.characters(exclude_characters=":"), max_size=60))
def test_text_without_a_colon_is_unchanged(sql):
    assert names_in(sql) == set()
    assert substitute(sql, {"name": "X"}) == sql
    assert bind(sql, {"name": 0}) == (sql, [])


@given(st.text(alphabet=" ab:'\"$/*-\\eE\n", max_size=40))
def test_replacing_a_name_by_itself_changes_nothing(sql):
    assert substitute(sql, {name: f":{name}" for name in names_in(sql)}) == sql
