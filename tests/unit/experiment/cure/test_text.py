"""The experiment file about changes and a captured workload is valid, and keeps parameter sets together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.goldens import compare_cases
from uncork.experiment.cure.arms import Arm, control
from uncork.experiment.cure.text import BASELINE, experiment_of_arms, guard_toml
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
CUSTOM = replace(JIT, settings={"plan_cache_mode": "force_custom_plan"})
SWAP = replace(INDEX, name="swap", kind="ddl", check="SELECT a[1:b] FROM t")
SKIPS = replace(
    TEXT,
    name="skips",
    statements={8: "UPDATE orders SET note = $1 WHERE id = $2 AND note IS DISTINCT FROM $1"},
    check="SELECT note FROM orders",
    other_counts=True,
)
USED_UP = (
    "INSERT INTO orders VALUES ($1, $2) ON CONFLICT DO NOTHING",
    "WITH x AS (DELETE FROM orders WHERE id = $1 RETURNING *) INSERT INTO gone SELECT id, $2 FROM x",
    "MERGE INTO orders USING (SELECT $1 AS id) AS new USING (id) WHEN MATCHED AND note = $2 THEN DELETE",
)
DELETES = (
    "DELETE FROM orders WHERE id = $1 AND note = $2",
    "WITH x AS (SELECT 1) DELETE FROM orders WHERE id = $1 AND note = $2",
)
NEW_KEY = "INSERT INTO orders VALUES (gen_random_uuid(), $1, $2)"
DSN = "host=/tmp dbname=copy"


def text_of(statements, arms, **options):
    return experiment_of_arms("cure", 'Which "change"?', DSN, statements, arms, budget_s=90, **options)


def spec_of(statements, arms, **options):
    text = text_of(statements, arms, **options)
    return parse_spec(text, file="cure.toml", read=lambda _: "", overrides={})


def workloads(statement, *arms):
    """Return the part of a file about how a statement is sent, after the whole file was read."""
    spec_of([statement], arms)
    _, start, rest = text_of([statement], arms).partition("[workloads.")
    return start + rest.partition("[stop]")[0]


def test_files_are_as_written():
    whole = [READ, WRITE, ITEM], [INDEX, JIT, TEXT]
    spec = spec_of(*whole)
    assert (spec.compared("s7"), spec.compared("s9")) == (tuple(spec.variants), (BASELINE, "no-jit"))
    controlled = [INDEX, control(CapturedWorkload((READ,), (), 1.0, 1.0), [INDEX])]
    assert spec_of([READ, ITEM], controlled).compared("s9") == (BASELINE, "control")
    guard = guard_toml("keep", "Is it still fast?", DSN, [READ, ITEM])
    assert parse_spec(guard, file="guard.toml", read=lambda _: "", overrides={}, alone=True).guard.gates
    compare_cases("cure/experiments", [
        ("every change is a variant and every statement a workload",
         text_of(*whole, clients=4, precision=0.04, seed=9)),
        ("a guard has a gate for each statement", guard),
        ("a set that a statement uses up is executed once before the data is restored",
         *(workloads(replace(WRITE, sql=sql, sets=READ.sets * 2), INDEX) for sql in USED_UP)),
        ("a delete is rolled back and its deferred constraints are checked",
         *(
             text_of([replace(WRITE, sql=sql)],
                     [replace(TEXT, statements={8: f"{sql} AND id > 0"})]) for sql in DELETES)),
        ("an update and an insert with new keys may repeat their sets", workloads(WRITE, INDEX),
         workloads(replace(WRITE, sql=NEW_KEY), INDEX)),
        ("a finding about generic plans prepares its statement", workloads(WRITE, CUSTOM)),
        ("what a change must leave the same is compared after statements that write",
         workloads(READ, SWAP), workloads(WRITE, SWAP)),
        ("an update that skips equal rows is judged by the rows that it leaves",
         text_of([READ, WRITE], [SKIPS])),
        ("a function that changes rows executes each set once before the data is restored",
         workloads(replace(READ, sql="SELECT archive($1, $2)", changes=True, by_function=True),
                   INDEX)),
    ])  # fmt: skip


def test_the_values_of_a_set_stay_together_in_every_trial():
    spec = spec_of([READ], [INDEX])
    workload = spec.workloads["s7"]
    assert workload.parameters["p1"].query == "VALUES ('open'), ('it''s'), ('\"\\')"
    assert workload.parameters["p2"].query == "VALUES ('1'), (NULL), ('3')"
    pools = {f"p{number + 1}": [each[number] for each in READ.sets] for number in range(2)}
    for stream in ("one", "another"):
        columns = draw(workload, pools, seed=3, stream=stream, rows=10)
        assert set(zip(*columns, strict=True)) == set(READ.sets)


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
    with pytest.raises(ValueError, match="needs a statement"):
        guard_toml("keep", "?", DSN, [])


@pytest.mark.parametrize(("mean_s", "timeout_s"), [(0.001, 60), (1.0, 200), (100.0, 300)])
def test_a_trial_of_slow_statements_may_take_longer(mean_s, timeout_s):
    slow = replace(ITEM, mean_ns=mean_s * 1e9)
    assert spec_of([READ, slow], [INDEX, JIT]).stop.trial_timeout == timeout_s * 10**9


@pytest.mark.parametrize(("mean_s", "answers"), [(0.001, 20), (0.25, 20), (0.5, 10), (3.0, 5)])
def test_fewer_answers_of_slow_statements_are_compared(mean_s, answers):
    slow = replace(ITEM, mean_ns=mean_s * 1e9)
    assert spec_of([READ, slow], [INDEX, JIT]).setup.answers == answers
