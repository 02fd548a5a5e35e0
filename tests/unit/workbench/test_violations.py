"""Sets of values that violate a constraint are left out; those that find no row are replaced."""

from dataclasses import replace

from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.workbench.cure.violations import finds_too_few, leave_out, with_matching

SETS = (("1",), ("2",), ("1",), ("3",))
DELETE = CapturedStatement(
    4, "DELETE FROM t WHERE id = $1", SETS, "drawn", 9.0, 1e6, 0.25, ("t",), changes=True
)
WORKLOAD = CapturedWorkload((DELETE,), (), 60.0, 1.0)


def test_sets_that_violate_nothing_stay():
    assert leave_out(WORKLOAD, {}) == (WORKLOAD, ())
    assert leave_out(WORKLOAD, {4: {}, 5: {("1",): "no"}}) == (WORKLOAD, ())


def test_some_sets_are_left_out_with_all_their_repetitions():
    found, (counted,) = leave_out(WORKLOAD, {4: {("1",): "it violates k"}})
    assert found.statements[0].sets == (("2",), ("3",))
    assert counted.what == "2 of 4 sets of values of DELETE FROM t WHERE id = $1"
    assert "it violates k" in counted.lost


def test_a_statement_without_any_set_is_missing_with_its_share():
    found, counted = leave_out(WORKLOAD, {4: dict.fromkeys(SETS, "it violates k")})
    assert (found.statements, counted) == ((), ())
    (missing,) = found.missing
    assert (missing.template, missing.share) == (4, 0.25) and "it violates k" in missing.reason


def test_values_that_find_fewer_rows_than_on_the_server_are_noticed():
    one = replace(DELETE, rows=1.0)
    assert finds_too_few(one, {("1",): 0, ("2",): 0, ("3",): 1})
    assert not finds_too_few(one, {("1",): 1, ("2",): 0})
    assert not finds_too_few(replace(one, rows=0.1), {("1",): 0, ("2",): 1})
    assert not finds_too_few(one, {}) and not finds_too_few(DELETE, {("1",): 0})
    assert not finds_too_few(
        replace(one, sql="INSERT INTO t VALUES ($1) ON CONFLICT DO NOTHING"), {("1",): 0}
    )


def test_values_of_the_copys_rows_take_their_place():
    one = replace(DELETE, rows=1.0)
    found = with_matching(one, {("1",): 0, ("2",): 1}, [("7",), ("8",)])
    assert (found.sets, found.origin) == ((("2",), ("7",), ("8",)), "rows")
    assert with_matching(one, {("1",): 0}, []) is None
    some = with_matching(replace(one, rows=0.5), {("1",): 0, ("2",): 0, ("3",): 0}, [("7",), ("8",)])
    assert some.sets == (("7",), ("8",), ("1",), ("2",))  # half of the calls find none
