"""The door to the core, without a server: the fake driver has known answers."""

import json

import pyarrow as pa
import pytest

from uncork import _native
from uncork.errors import ConnectError, CoreMismatch, LoadError

EMPTY = pa.table({})


def plan(**changes):
    return {
        "driver": "fake",
        "clients": 1,
        "threads": 1,
        "protocol": "prepared",
        "statements": [{"name": "only", "sql": "SELECT 1", "parameters": []}],
        "transaction": False,
        "warmup_operations": 0,
        "stop": {"operations": 100},
        "deadline_ns": 60_000_000_000,
        "digest": "none",
        "watch_pid": None,
        "fake": {"latencies_ns": [1_000_000]},
        "connection": None,
        **changes,
    }


def load(table=EMPTY, **changes):
    totals, statements = _native.run_load(json.dumps(plan(**changes)).encode(), table)
    totals = json.loads(totals)
    assert totals["started"] == totals["succeeded"] + totals["failed"]
    return totals, pa.table(statements)


def test_the_core_says_what_it_is():
    built = json.loads(_native.build_info())
    assert set(built) == {"version", "plan_version", "profile", "postgresql_version", "target"}
    assert built["plan_version"] == _native.PLAN_VERSION


@pytest.mark.parametrize(
    "built", [{"version": "0.0.1", "plan_version": 1}, {"version": "1", "plan_version": 0}]
)
def test_a_core_of_another_build_is_refused(built):
    with pytest.raises(CoreMismatch, match="make build"):
        _native._check(built, "1")


def test_known_latencies_come_back():
    milliseconds = list(range(1, 101))
    totals, statements = load(fake={"latencies_ns": [n * 1_000_000 for n in milliseconds]})
    assert totals["outcome"] == "complete"
    assert totals["message"] is None
    assert totals["elapsed_ns"] == sum(milliseconds) * 1_000_000
    assert totals["rows"] == 100
    for row in statements.to_pylist():
        assert row["executions"] == 100
        assert row["sum_ns"] == sum(milliseconds) * 1_000_000
        assert (row["min_ns"], row["max_ns"]) == (1_000_000, 100_000_000)
        for quantile, value in (("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99), ("p999", 100)):
            assert row[f"{quantile}_ns"] == pytest.approx(value * 1_000_000, rel=0.001)


def test_the_statement_table_has_the_agreed_columns():
    statements = load()[1]
    quantiles = [f"{name}_ns" for name in ("min", "max", "p50", "p90", "p95", "p99", "p999")]
    counts = ["executions", "errors", "rows", "sum_ns"]
    assert statements.column_names == ["kind", "name", *counts, *quantiles, "histogram"]
    assert statements.column("kind").to_pylist() == ["statement", "operation"]
    assert statements.column("name").to_pylist() == ["only", "operation"]
    assert statements.schema.field("histogram").type == pa.binary()
    assert statements.schema.field("p50_ns").type == pa.uint64()


def test_clients_work_side_by_side():
    totals, _ = load(clients=4, stop={"operations": 100})
    assert totals["elapsed_ns"] == 25 * 1_000_000
    totals, _ = load(clients=4, threads=3, stop={"duration_ns": 10_000_000}, warmup_operations=8)
    assert totals["started"] == 40


def test_failures_are_counted_and_leave_no_latency():
    totals, statements = load(fake={"latencies_ns": [7], "fail_every": 4}, transaction=True)
    assert (totals["succeeded"], totals["failed"], totals["errors"]) == (75, 25, {"40001": 25})
    assert totals["first_error"] == "only: a declared failure (SQLSTATE 40001)"
    assert statements.column("errors").to_pylist() == [25, 25]
    _, statements = load(fake={"latencies_ns": [7], "fail_every": 1})
    assert statements.column("p50_ns").to_pylist() == [None, None]


def test_a_trial_can_be_cut_short():
    totals, _ = load(fake={"latencies_ns": [5], "lose_at": 20}, clients=3)
    assert totals["outcome"] == "connection lost"
    assert totals["message"] == "the fake connection was lost"
    assert (totals["succeeded"], totals["failed"]) == (20, 3)
    totals, _ = load(deadline_ns=10_500_000)
    assert totals["outcome"] == "deadline"
    assert (totals["succeeded"], totals["failed"]) == (10, 1)


def test_the_digest_does_not_depend_on_who_did_what():
    alone = load(digest="multiset")[0]["digest"]
    assert len(alone) == 32
    assert load(digest="multiset", clients=7, threads=2)[0]["digest"] == alone
    assert load(digest="multiset", stop={"operations": 99})[0]["digest"] != alone
    assert load()[0]["digest"] is None


def test_histograms_merge_without_loss():
    parts = [load(fake={"latencies_ns": [n * 1000]})[1].column("histogram")[0].as_py() for n in (1, 3)]
    merged = pa.table(_native.merge_histograms(parts))
    assert merged.column_names == ["quantile", "value_ns", "cumulative_count"]
    points = merged.to_pylist()
    assert points[-1]["quantile"] == 1.0
    assert points[-1]["cumulative_count"] == 200
    assert points[-1]["value_ns"] == pytest.approx(3000, rel=0.001)
    assert points[0]["value_ns"] == pytest.approx(1000, rel=0.001)
    assert pa.table(_native.merge_histograms([])).num_rows == 0
    with pytest.raises(LoadError, match="number 0"):
        _native.merge_histograms([b"rubbish"])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.null()])
def test_texts_of_every_kind_are_parameters(kind):
    value = None if kind == pa.null() else "x"
    statements = [{"name": "s", "sql": "SELECT $1", "parameters": [0]}]
    table = pa.table({"a": pa.array([value, None], kind)})
    assert load(table, statements=statements)[0]["succeeded"] == 100


@pytest.mark.parametrize(
    ("changes", "table", "expected"),
    [
        ({"clientz": 1}, EMPTY, "unknown field `clientz`"),
        ({"clients": 0}, EMPTY, "clients must be at least 1"),
        ({"stop": {"operation": 1}}, EMPTY, "unknown variant"),
        ({"driver": "postgres"}, EMPTY, "needs a connection"),
        ({"fake": None}, EMPTY, "latencies_ns"),
        ({}, pa.table({"a": [1]}), 'column "a" holds Int64'),
        (
            {"statements": [{"name": "s", "sql": "SELECT $1", "parameters": [3]}]},
            pa.table({"a": ["x"]}),
            "column 3, but the table has 1",
        ),
        (
            {"statements": [{"name": "s", "sql": "SELECT $1", "parameters": [0]}]},
            pa.table({"a": pa.array([], pa.string())}),
            "no rows",
        ),
    ],
)
def test_a_wrong_plan_is_refused_by_name(changes, table, expected):
    with pytest.raises(LoadError, match=expected):
        load(table, **changes)


def test_a_server_that_is_not_there_is_a_connect_error():
    connection = {
        "host": "/nowhere",
        "port": 5432,
        "user": "u",
        "database": "d",
        "password": "secret",
        "options": "",
        "connect_timeout_ns": 1_000_000_000,
        "sslmode": "prefer",
    }
    with pytest.raises(ConnectError, match=r"cannot connect to /nowhere/\.s\.PGSQL\.5432") as caught:
        load(driver="postgres", fake=None, connection=connection)
    assert "secret" not in str(caught.value)
