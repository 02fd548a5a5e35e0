"""Sets of values that violate a constraint are left out of a workload, and counted."""

from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.workbench.cure.violations import leave_out

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
