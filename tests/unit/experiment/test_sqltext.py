from hypothesis import given
from hypothesis import strategies as st

from fakes.goldens import compare_answers
from uncork.experiment.spec.sqltext import bind, names_in, substitute


def test_a_name_is_replaced_wherever_sql_can_hold_one_and_what_only_looks_like_one_stays():
    compare_answers("spec/names_in_sql", lambda sql: substitute(sql, {"name": "X", "int": "X"}))
    for sql in ("SELECT ':name'", "SELECT '1'::name", "SELECT /* a /* b */ :name */ 1", "SELECT $$ :name $$"):
        assert names_in(sql) == set()
        assert bind(sql, {"name": 0}) == (sql, [])


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
