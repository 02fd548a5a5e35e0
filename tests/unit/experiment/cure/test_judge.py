"""Effects of statements become seconds per hour, a state with a reason, a choice and a set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uncork.experiment.cure.arms import Arm, combine, compatible, joined, leave_one_out, replaceable
from uncork.experiment.cure.judge import (
    account_of,
    choose,
    doubt,
    judge,
    kept,
    saved_by,
    state_of,
    times_longer,
)
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import Change, Net, StatementEffect
from uncork.stats.combined import Bounded, difference, total


def statement(number, *, mean_s=0.01, rate=3600.0, tables=("orders",), changes=False):
    return CapturedStatement(
        number, "SELECT", ((),), "none", rate, mean_s * 1e9, 0.1, tables, changes=changes
    )


def effect(number, ratio, low, high, *, before_s=0.01, rate=3600.0):
    return StatementEffect(
        number, "SELECT", False, rate, "none", before_s * 1e9, None, ratio, low, high
    )  # fmt: skip


def index(name, keys, table="orders", **more):
    sql = f"CREATE INDEX {name} ON {table} {keys};"
    return Arm(name, "index", f"Create {name}.", sql, f"DROP INDEX {name};", sql, tables=(table,), **more)


INDEX = index("a_idx", "(a)")


def test_limits_of_a_sum_combine_as_variances_do():
    assert total([Bounded(10, 7, 11), Bounded(20, 16, 20)]) == Bounded(30, 25, 31)
    assert difference(Bounded(10, 7, 11), Bounded(20, 20, 24)) == Bounded(-10, -15, -9)
    assert total([Bounded(1, 0, 3)]) == Bounded(1, 0, 3)


def test_a_gain_counts_with_the_time_of_the_source_and_a_loss_with_the_longer_one():
    slower_copy = effect(1, 0.5, 0.25, 1.5, before_s=0.02)
    assert saved_by(slower_copy, 0.01e9) == Bounded(18.0, -36.0, 27.0)
    faster_copy = effect(1, 2.0, 1.5, 3.0, before_s=0.001)
    assert saved_by(faster_copy, 0.01e9) == Bounded(-36.0, -72.0, -18.0)
    assert saved_by(effect(1, None, None, None), 1e9) is None
    assert saved_by(effect(1, 0.5, 0.1, None), 1e9) is None


def test_the_net_gain_names_what_it_does_not_know():
    captured = CapturedWorkload(
        (
            statement(1),
            statement(2, tables=("item",)),
            statement(3, mean_s=0.02, tables=("item",), changes=True),
        ),
        (), 60.0, 1.0,
    )  # fmt: skip
    account = account_of(INDEX, [effect(1, 0.5, 0.4, 0.6)], captured)
    assert account.net == Net(18.0, pytest.approx(14.4), pytest.approx(21.6), 36.0)
    assert (account.unknown, account.unmeasured) == (0.5, (3,))
    assert account_of(INDEX, [], captured).net is None


@pytest.mark.parametrize(
    ("effects", "state", "worst", "words"),
    [
        ([effect(1, 0.5, 0.4, 0.6)], "cured", None, "saves 18 s per hour, 50 % of 36 s"),
        ([effect(1, 0.99, 0.98, 1.0)], "not cured", None, "less than 3 % of the time"),
        ([effect(1, 0.97, 0.9, 1.05)], "unclear", None, "too short to decide"),
        ([effect(1, 0.5, 0.4, 0.6), effect(2, 1.5, 1.3, 1.7)], "harmful", 2, "1.5 times as long"),
        ([effect(1, 0.5, 0.4, 0.6), effect(2, 1.5, 1.3, 1.7, rate=36.0, before_s=0.01)], "cured", 2,
         "; it makes SELECT slower."),
        ([effect(1, 0.5, 0.4, 0.6), effect(2, 1.15, 1.1, 1.2)], "cured", 2, "it makes SELECT slower"),
        ([effect(1, 1.1, 1.05, 1.15)], "harmful", 1, "together take longer"),
        ([], "unclear", None, "No statement was measured"),
    ],
)  # fmt: skip
def test_a_change_is_judged_by_its_net_gain_and_its_worst_statement(effects, state, worst, words):
    captured = CapturedWorkload(
        tuple(statement(one.template, rate=one.calls_per_hour) for one in effects), (), 60.0, 1.0
    )
    found, reason, template = judge(INDEX, effects, account_of(INDEX, effects, captured).net)
    assert (found, template) == (state, worst)
    assert words in reason
    assert reason.endswith(".")


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (Net(-573, -940, -210, 1800),
         "it costs 573 s per hour, 32 % of 1 800 s (95 % interval: 210 s to 940 s)"),
        (Net(-5, -20, 10, 1000),
         "it costs 5 s per hour, 0 % of 1 000 s (95 % interval: 20 s more to 10 s less)"),
        (Net(14, -22, 51, 1000),
         "it saves 14 s per hour, 1 % of 1 000 s (95 % interval: 22 s more to 51 s less)"),
    ],
)  # fmt: skip
def test_no_saving_is_negative(net, words):
    _, reason, _ = judge(INDEX, [], net)
    assert words in reason


def test_a_refusal_comes_before_every_figure():
    net = Net(18.0, 14.0, 21.0, 36.0)
    why = "It returns other rows than the present state."
    assert judge(INDEX, [effect(1, 0.5, 0.4, 0.6)], net, refused=why) == ("refused", why, None)


def test_what_was_not_measured_is_said_with_the_verdict():
    _, reason, _ = judge(INDEX, [effect(1, 0.5, 0.4, 0.6)], Net(18, 14, 21, 36), unknown=0.25)
    assert reason.endswith("Statements with 25 % of the time were not measured.")


def change(name, state, low=None, kind="index"):
    net = None if low is None else Net(low + 1, low, low + 2, 100)
    return Change(name, kind, "", "", "", state, "", net)


def test_the_best_change_is_the_proven_one_that_surely_saves_most():
    changes = [
        change("a", "cured", 5), change("b", "cured", 9), change("c", "unclear", 50),
        change("d", "refused"), change("e", "cured", 90, kind="control"),
    ]  # fmt: skip
    best = choose(changes)
    assert best is not None
    assert (best.name, state_of(changes)) == ("b", "cured")
    assert state_of(changes[2:]) == "unclear"
    assert (choose([]), state_of([])) == (None, "not tried")


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (INDEX, index("b_idx", "(b)"), True),
        (INDEX, index("ab_idx", "(a, b)"), False),
        (index("ab_idx", "(a, b)"), INDEX, False),
        (INDEX, index("part_idx", "(A) WHERE b = ')'"), False),
        (INDEX, index("gin_idx", "USING gin (a)"), True),
        (INDEX, index("item_idx", "(a)", "item"), True),
        (INDEX, index("public_idx", "(a)", 'public."orders"'), False),
        (index("x", "(lower(a, ','), b)"), index("y", "(lower(a, ','))"), False),
        (index("x", "(lower(a))"), index("y", "(a)"), True),
        (INDEX, INDEX, False),
        (Arm("s", "setting", "", "", "", settings={"jit": "off"}),
         Arm("t", "setting", "", "", "", settings={"jit": "on"}), False),
        (Arm("s", "setting", "", "", "", settings={"jit": "off"}),
         Arm("t", "setting", "", "", "", settings={"work_mem": "8MB"}), True),
        (Arm("s", "statement", "", "", "", statements={1: "a"}),
         Arm("t", "statement", "", "", "", statements={1: "b"}), False),
        (replace(INDEX, setup="CREATE EXTENSION IF NOT EXISTS pg_trgm; CREATE INDEX a ON t (a);"),
         replace(INDEX, setup="CREATE EXTENSION IF NOT EXISTS pg_trgm; CREATE INDEX b ON t (b);"), True),
    ],
)  # fmt: skip
def test_changes_that_replace_each_other_are_not_made_together(one, other, together):
    assert compatible(one, other) == compatible(other, one) == together


def test_a_set_takes_the_surest_changes_first():
    arms = [INDEX, index("ab_idx", "(a, b)"), index("b_idx", "(b)"), index("c_idx", "(c)")]
    proven = {"a_idx": Net(9, 5, 10, 99), "ab_idx": Net(8, 7, 9, 99), "b_idx": Net(6, 1, 9, 99)}
    found = combine(proven, arms)
    assert [arm.name for arm in found] == ["ab_idx", "b_idx"]
    whole = joined(found)
    assert (whole.kind, whole.name, whole.tables) == ("set", "set", ("orders",))
    assert whole.setup == "CREATE INDEX ab_idx ON orders (a, b);\nCREATE INDEX b_idx ON orders (b);"
    assert whole.undo == "DROP INDEX b_idx;\nDROP INDEX ab_idx;"
    rest = leave_one_out(found)
    assert {name: arm.setup for name, arm in rest.items()} == {
        "ab_idx": found[1].setup, "b_idx": found[0].setup,
    }  # fmt: skip
    assert [arm.name for arm in rest.values()] == ["without-ab_idx", "without-b_idx"]
    assert leave_one_out(found[:1]) == {}


def test_a_member_that_contributes_nothing_leaves_the_set_one_at_a_time():
    whole = Net(50, 48, 52, 100)
    needed = Net(20, 18, 22, 100)
    assert kept(whole, {"a": needed, "b": needed}) == ("a", "b")
    assert kept(whole, {"a": needed, "b": Net(50, 49.5, 51, 100)}) == ("a",)
    assert kept(whole, {"a": Net(50.5, 50, 51, 100), "b": Net(50, 49.5, 51, 100)}) == ("b",)
    assert kept(whole, {"a": needed, "b": Net(49, 30, 60, 100)}) == ("a", "b")
    assert kept(whole, {"a": Net(0, 0, 0, 100)}) == ("a",)


def test_only_changes_that_alter_the_same_plans_can_replace_each_other():
    planned = {"a": frozenset({1, 2}), "b": frozenset({2}), "c": frozenset({3}), "d": frozenset()}
    assert replaceable(planned) == {"a", "b", "d"}
    assert replaceable({"a": frozenset({1}), "b": frozenset({2})}) == frozenset()


@pytest.mark.parametrize(
    ("origin", "mean_s", "doubted"),
    [("drawn", 0.2, True), ("rows", 0.2, True), ("seen", 0.2, False), ("drawn", 0.05, False)],
)
def test_a_change_without_gain_is_doubted_if_drawn_values_are_much_faster_than_the_server(
    origin, mean_s, doubted
):
    own = replace(INDEX, templates=(1,))
    there = statement(1, mean_s=mean_s)
    without_gain = replace(effect(1, 1.0, 0.99, 1.01), origin=origin)
    reason = doubt(own, [without_gain], [there], "not cured")
    assert ("--logs" in reason) is doubted
    assert doubt(INDEX, [without_gain], [there], "not cured") == "", "it is no statement of the finding"
    assert doubt(own, [without_gain], [there], "cured") == "", "a busy server can be slower for all of it"


@pytest.mark.parametrize(
    ("here", "there", "doubted"),
    [(7.0, 2_100.0, True), (0.0, 90.0, True), (0.2, 5.0, False), (700.0, 2_100.0, False), (None, 9.0, False)],
)
def test_a_cure_is_doubted_if_drawn_values_find_far_fewer_rows_than_the_server(here, there, doubted):
    own = replace(INDEX, templates=(1,))
    cured = replace(effect(1, 0.1, 0.09, 0.11), origin="drawn", before_rows=here)
    sent = replace(statement(1, mean_s=0.001), rows=there)
    for state in ("cured", "not cured"):
        assert ("a call on the copy, but" in doubt(own, [cured], [sent], state)) is doubted
    assert doubt(own, [replace(cured, origin="seen")], [sent], "cured") == ""


@pytest.mark.parametrize(
    ("net", "times"),
    [
        (Net(20, 5, 35, 100), None),  # proven
        (Net(1, 0, 2, 100), None),  # saves too little, surely
        (Net(20, -20, 60, 100), pytest.approx(4.0)),  # its interval must be half as wide to exclude 0
        (Net(1, -3, 5, 100), pytest.approx(4.0)),  # and to exclude the 3 s that matter
        (Net(20, -100, 140, 100), None),  # 36 times as long is no plan
        (Net(2.99, -50, 50, 100), None),
    ],
)
def test_how_many_times_as_long_a_measurement_must_be(net, times):
    assert times_longer(net) == times
