"""The experiment file about changes and a captured workload is valid, and keeps parameter sets together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uncork.experiment.cure.arms import Arm, control
from uncork.experiment.cure.text import BASELINE, experiment_of_arms, guard_toml, workload_name
from uncork.experiment.run.parameters import draw
from uncork.experiment.spec.schema import parse_spec
from uncork.model.database.workload import CapturedStatement, CapturedWorkload

READ = CapturedStatement(
    7,
    "SELECT tags[1:size] FROM orders WHERE customer = $2 AND note <> ':x $1' AND state = $1::text",
    (("open", "1"), ("it's", None), ('"\\', "3")),
    "executed",
    100,
    1e6,
    0.5,
    ("orders",),
    changes=False,
)
WRITE = replace(
    READ, template=8, sql="UPDATE orders SET note = $1 WHERE id = $2", changes=True, origin="seen"
)
ITEM = replace(READ, template=9, sql="SELECT 1 FROM item", sets=((),), origin="none", tables=("item",))
INDEX = Arm("customer_idx", "index", "Index it.", "", "", "CREATE INDEX i ON orders (customer);",
            tables=("orders",))  # fmt: skip
JIT = Arm(
    "no-jit", "setting", "No jit.", "", "", settings={"jit": "off", "pg_trgm.similarity_threshold": "0.5"}
)
TEXT = Arm("rewritten", "statement", "Rewrite.", "", "", statements={7: "SELECT 1 WHERE $2 = $1"})
DSN = "host=/tmp dbname=copy"


def spec_of(statements, arms, **options):
    text = experiment_of_arms("cure", 'Which "change"?', DSN, statements, arms, budget_s=90, **options)
    return parse_spec(text, file="cure.toml", read=lambda _: "", overrides={})


def test_every_change_is_a_variant_and_every_statement_a_workload():
    spec = spec_of([READ, WRITE, ITEM], [INDEX, JIT, TEXT], clients=4, precision=0.04, seed=9)
    assert list(spec.variants) == [BASELINE, "customer_idx", "no-jit", "rewritten"]
    assert spec.variants["customer_idx"].values == {"change": f"\n{INDEX.setup}\n".removeprefix("\n")}
    assert spec.variants["no-jit"].settings == JIT.settings
    assert spec.statements("s7", "rewritten") == ("SELECT 1 WHERE :p2 = :p1\n",)
    assert (spec.setup.copy_of, spec.setup.statistics, spec.setup.sql) == (DSN, "keep", ":change")
    assert [workload_name(one.template) for one in (READ, WRITE, ITEM)] == list(spec.workloads)
    read, write, item = spec.workloads.values()
    assert (read.sql or "").strip() == (
        "SELECT tags[1: size] FROM orders WHERE customer = :p2 AND note <> ':x $1' AND state = :p1::text"
    )
    assert [one.state for one in (read, write, item)] == ["keep", "reset", "keep"]
    assert [one.metric for one in (read, write, item)] == ["latency_mean"] * 3
    assert [one.protocol for one in (read, write, item)] == ["prepared", "extended", "extended"]
    assert spec.compared("s7") == tuple(spec.variants)
    assert spec.compared("s9") == (BASELINE, "no-jit")
    assert (spec.stop.budget, spec.stop.precision, spec.experiment.seed) == (90 * 10**9, 0.04, 9)
    assert {one.clients for one in spec.workloads.values()} == {4}


def test_the_values_of_a_set_stay_together_in_every_trial():
    spec = spec_of([READ], [INDEX])
    workload = spec.workloads["s7"]
    assert workload.parameters["p1"].query == "VALUES ('open'), ('it''s'), ('\"\\')"
    assert workload.parameters["p2"].query == "VALUES ('1'), (NULL), ('3')"
    pools = {f"p{number + 1}": [each[number] for each in READ.sets] for number in range(2)}
    for stream in ("one", "another"):
        columns = draw(workload, pools, seed=3, stream=stream, rows=10)
        assert set(zip(*columns, strict=True)) == set(READ.sets)


@pytest.mark.parametrize("sql", [
    "INSERT INTO orders VALUES ($1, $2) ON CONFLICT DO NOTHING",
    "WITH x AS (DELETE FROM orders WHERE id = $1 RETURNING *) INSERT INTO gone SELECT id, $2 FROM x",
    "MERGE INTO orders USING (SELECT $1 AS id) AS new USING (id) WHEN MATCHED AND note = $2 THEN DELETE",
])  # fmt: skip
def test_a_set_that_a_statement_uses_up_is_executed_once_before_the_data_is_restored(sql):
    twice = replace(WRITE, sql=sql, sets=(*READ.sets, *READ.sets))
    workload = spec_of([twice], [INDEX]).workloads["s8"]
    assert (workload.operations, workload.warmup_operations, workload.state) == (3, 0, "reset")
    assert workload.parameters["p2"].query == "VALUES ('1'), (NULL), ('3')"


@pytest.mark.parametrize("sql", [
    "DELETE FROM orders WHERE id = $1 AND note = $2",
    "WITH x AS (SELECT 1) DELETE FROM orders WHERE id = $1 AND note = $2",
])  # fmt: skip
def test_a_delete_is_rolled_back_and_its_deferred_constraints_are_checked(sql):
    rewrite = replace(TEXT, statements={8: f"{sql} AND id > 0"})
    spec = spec_of([replace(WRITE, sql=sql)], [rewrite])
    begin, sent, *end = spec.workloads["s8"].statements
    assert (begin, end) == ("BEGIN", ["SET CONSTRAINTS ALL IMMEDIATE", "ROLLBACK"])
    assert sent.strip() == sql.replace("$", ":p")
    assert (spec.workloads["s8"].state, spec.workloads["s8"].operations) == ("keep", None)
    (changed,) = (name for name in spec.variants if name != "current")
    assert [one.strip() for one in spec.statements("s8", changed)][1].endswith("AND id > 0")


@pytest.mark.parametrize("sql", [WRITE.sql, "INSERT INTO orders VALUES (gen_random_uuid(), $1, $2)"])
def test_an_update_and_an_insert_with_new_keys_may_repeat_their_sets(sql):
    workload = spec_of([replace(WRITE, sql=sql)], [INDEX]).workloads["s8"]
    assert (workload.operations, workload.state) == (None, "reset")


def test_a_finding_about_generic_plans_prepares_its_statement():
    custom = replace(JIT, settings={"plan_cache_mode": "force_custom_plan"})
    assert spec_of([WRITE], [custom]).workloads["s8"].protocol == "prepared"


@pytest.mark.parametrize(
    ("sql", "by_index", "by_text"),
    [
        ("SELECT a FROM t", "same", "same"),
        ("SELECT a FROM t LIMIT 5", "may differ", "may differ"),
        ("SELECT a FROM t ORDER BY a LIMIT 5", "may differ", "same"),
        ("SELECT a FROM t WHERE b > now()", "may differ", "may differ"),
        ("SELECT a, current_date FROM t", "may differ", "may differ"),
        ("SELECT string_agg(a, ',') FROM t", "may differ", "may differ"),
        ("SELECT nowhere FROM random_things", "same", "same"),
        ("INSERT INTO t DEFAULT VALUES RETURNING id", "may differ", "may differ"),
    ],
)
def test_answers_are_compared_unless_right_answers_can_differ(sql, by_index, by_text):
    statement = replace(ITEM, sql=sql, tables=("t",))
    rewritten = replace(TEXT, statements={9: "SELECT 2"})
    assert spec_of([statement], [replace(INDEX, tables=("t",))]).workloads["s9"].answer == by_index
    assert spec_of([statement], [rewritten]).workloads["s9"].answer == by_text


def test_many_sets_are_thinned_evenly():
    many = replace(READ, sets=tuple((str(number), "1") for number in range(2500)))
    query = spec_of([many], [INDEX]).workloads["s7"].parameters["p1"].query or ""
    assert query.count("(") == 1000
    assert "('2497')" in query


def test_a_statement_without_values_cannot_be_sent():
    with pytest.raises(ValueError, match="statement 7 has no values"):
        spec_of([replace(READ, sets=())], [INDEX])
    with pytest.raises(ValueError, match="needs a statement and a change"):
        spec_of([], [INDEX])


def test_the_control_is_part_of_an_experiment():
    workload = CapturedWorkload((READ,), (), 1.0, 1.0)
    spec = spec_of([READ, ITEM], [INDEX, control(workload, [INDEX])])
    assert spec.compared("s9") == (BASELINE, "control")


def test_a_guard_has_a_gate_for_each_statement():
    text = guard_toml("keep", "Is it still fast?", DSN, [READ, ITEM])
    spec = parse_spec(text, file="guard.toml", read=lambda _: "", overrides={}, alone=True)
    assert list(spec.workloads) == ["s7", "s9"]
    assert spec.guard.gates == ["mean < +10% on s7", "mean < +10% on s9"]
    with pytest.raises(ValueError, match="needs a statement"):
        guard_toml("keep", "?", DSN, [])


@pytest.mark.parametrize(("mean_s", "timeout_s"), [(0.001, 60), (1.0, 200), (100.0, 300)])
def test_a_trial_of_slow_statements_may_take_longer(mean_s, timeout_s):
    slow = replace(ITEM, mean_ns=mean_s * 1e9)
    assert spec_of([READ, slow], [INDEX, JIT]).stop.trial_timeout == timeout_s * 10**9


def test_what_a_change_must_leave_the_same_is_compared_after_statements_that_write():
    swap = Arm(
        "swap", "ddl", "Count once.", "", "", "SELECT 1;", tables=("orders",), check="SELECT a[1:b] FROM t"
    )
    spec = spec_of([READ, WRITE], [INDEX, swap])
    assert (spec.workloads["s7"].check, spec.workloads["s8"].check) == (None, "SELECT a[1: b] FROM t\n")


def test_an_update_that_skips_equal_rows_is_judged_by_the_rows_that_it_leaves():
    skips = Arm(
        "skips",
        "statement",
        "Skip equal rows.",
        "",
        "",
        statements={8: "UPDATE orders SET note = $1 WHERE id = $2 AND note IS DISTINCT FROM $1"},
        check="SELECT note FROM orders",
        other_counts=True,
    )
    spec = spec_of([READ, WRITE], [skips])
    assert [spec.workloads[name].answer for name in ("s7", "s8")] == ["same", "check"]
    assert spec.workloads["s8"].check == "SELECT note FROM orders\n"


def test_a_function_that_changes_rows_executes_each_set_once_before_the_data_is_restored():
    called = replace(READ, sql="SELECT archive($1, $2)", changes=True, by_function=True)
    workload = spec_of([called], [INDEX]).workloads["s7"]
    assert (workload.state, workload.operations, workload.warmup_operations) == ("reset", 3, 0)


@pytest.mark.parametrize(("mean_s", "answers"), [(0.001, 20), (0.25, 20), (0.5, 10), (3.0, 5)])
def test_fewer_answers_of_slow_statements_are_compared(mean_s, answers):
    slow = replace(ITEM, mean_ns=mean_s * 1e9)
    assert spec_of([READ, slow], [INDEX, JIT]).setup.answers == answers
