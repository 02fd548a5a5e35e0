"""The door to the core, without a server: the fake driver has known answers."""

import json

import pyarrow as pa
import pytest

from uncork import _native
from uncork.errors import ConnectError, CoreMismatch, LoadError

EMPTY = pa.table({})


ONLY = {"name": "only", "sql": "SELECT 1", "parameters": []}


def plan(statements=(ONLY,), transaction=False, **changes):
    script = {"name": "script", "weight": 1, "statements": list(statements), "transaction": transaction}
    return {
        "driver": "fake",
        "clients": 1,
        "threads": 1,
        "protocol": "prepared",
        "scripts": [script],
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
    totals, statements, _ = measured(table, **changes)
    return totals, statements


def measured(table=EMPTY, **changes):
    totals, statements, series, *_ = _native.run_load(json.dumps(plan(**changes)).encode(), table)
    totals = json.loads(totals)
    assert totals["started"] == totals["succeeded"] + totals["failed"]
    if totals["arrivals"] is not None:
        assert totals["arrivals"] == totals["started"] + totals["skipped"] + totals["unsent"]
    return totals, pa.table(statements), pa.table(series)


def rows_of(statements):
    return {row["kind"]: row for row in statements.to_pylist()}


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
    for row in statements.to_pylist()[:-1]:
        assert row["executions"] == 100
        assert row["sum_ns"] == sum(milliseconds) * 1_000_000
        assert (row["min_ns"], row["max_ns"]) == (1_000_000, 100_000_000)
        for quantile, value in (("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99), ("p999", 100)):
            assert row[f"{quantile}_ns"] == pytest.approx(value * 1_000_000, rel=0.001)


def test_the_statement_table_has_the_agreed_columns():
    statements = load()[1]
    quantiles = [f"{name}_ns" for name in ("min", "max", "p50", "p90", "p95", "p99", "p999", "p9999")]
    words = ["kind", "script", "name", "line"]
    counts = ["executions", "errors", "rows", "sum_ns", "sum_squares_ns2"]
    assert statements.column_names == [*words, *counts, *quantiles, "histogram"]
    kinds = ["statement", "script", "operation", "service", "connect"]
    assert statements.column("kind").to_pylist() == kinds
    assert statements.column("name").to_pylist() == ["only", "script", *kinds[2:]]
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
    assert statements.column("errors").to_pylist() == [25, 25, 25, 25, 0]
    _, statements = load(fake={"latencies_ns": [7], "fail_every": 1})
    assert statements.column("p50_ns").to_pylist() == [None] * 5


def test_a_trial_can_be_cut_short():
    totals, _ = load(fake={"latencies_ns": [5], "lose_at": 20}, clients=3)
    assert totals["outcome"] == "connection lost"
    assert totals["message"] == "the fake connection was lost (SQLSTATE 08006)"
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


# ---- open loops, in virtual time ----

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND


def open_loop(rate=1000, kind="constant", **changes):
    return measured(arrivals={"kind": kind, "rate": rate}, **{"stop": {"duration_ns": SECOND}, **changes})


def test_an_open_loop_that_keeps_up_waits_for_nobody():
    totals, statements, _ = open_loop(fake={"latencies_ns": [200_000]})
    assert (totals["arrivals"], totals["succeeded"], totals["unsent"]) == (1000, 1000, 0)
    rows = rows_of(statements)
    for kind in ("operation", "service"):
        assert (rows[kind]["min_ns"], rows[kind]["max_ns"]) == (200_000, 200_000)
    assert rows["lateness"]["max_ns"] == 0
    assert rows["lateness"]["executions"] == 1000


def test_waiting_for_a_connection_is_latency_but_not_service_time():
    # One connection serves 500 a second; 1000 arrive.
    totals, statements, _ = open_loop(fake={"latencies_ns": [2 * MILLISECOND]})
    assert totals["arrivals"] == 1000
    assert totals["started"] == 500
    assert totals["unsent"] == 500
    rows = rows_of(statements)
    assert rows["service"]["max_ns"] == 2 * MILLISECOND
    assert rows["operation"]["max_ns"] == 2 * MILLISECOND + 499 * MILLISECOND
    # Only the first found a free connection.
    assert rows["lateness"]["executions"] == 1


def test_a_stall_gives_the_quantiles_that_arithmetic_predicts():
    # 20 s, of which the server stands still for 2 s: 10 % of arrivals wait, evenly from 0 to 2 s.
    latencies = [100_000] * 20_000
    latencies[5000] = 2 * SECOND
    totals, statements, _ = open_loop(
        stop={"duration_ns": 20 * SECOND}, fake={"latencies_ns": latencies}, kind="poisson"
    )
    operation = rows_of(statements)["operation"]
    assert operation["p99_ns"] == pytest.approx(1.8 * SECOND, rel=0.02)
    assert totals["unsent"] == 0
    assert rows_of(statements)["service"]["p99_ns"] == pytest.approx(100_000, rel=0.001)


def test_connections_grow_to_the_cap_while_arrivals_wait():
    totals, statements, _ = open_loop(fake={"latencies_ns": [5 * MILLISECOND]}, max_clients=20)
    assert totals["connections"]["most"] in (5, 6)
    assert totals["unsent"] == 0
    assert rows_of(statements)["operation"]["max_ns"] <= 6 * MILLISECOND
    totals, _, _ = open_loop(fake={"latencies_ns": [5 * MILLISECOND]}, max_clients=3)
    assert totals["connections"]["most"] == 3
    assert totals["unsent"] == pytest.approx(400, abs=5)


def test_arrivals_that_are_too_late_are_skipped_and_counted():
    totals, statements, _ = open_loop(
        fake={"latencies_ns": [2 * MILLISECOND]}, latency_limit_ns=10 * MILLISECOND
    )
    assert totals["skipped"] > 400
    assert totals["late"] > 0
    assert totals["unsent"] <= 12
    assert rows_of(statements)["operation"]["max_ns"] <= 12 * MILLISECOND


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["poisson", "constant"])
def test_a_number_of_arrivals_is_sent_to_the_last(threads, kind):
    totals, _, _ = open_loop(
        kind=kind,
        stop={"operations_each": 50},
        clients=4,
        threads=threads,
        fake={"latencies_ns": [MILLISECOND]},
    )
    assert (totals["arrivals"], totals["succeeded"], totals["unsent"]) == (200, 200, 0)


def test_bursts_and_traces_arrive_as_told():
    fake = {"latencies_ns": [MILLISECOND]}
    bursts = {"kind": "bursts", "rate": 1000, "size": 10}
    totals, statements, _ = measured(arrivals=bursts, stop={"duration_ns": SECOND}, fake=fake)
    assert totals["started"] + totals["unsent"] == 1000
    assert rows_of(statements)["operation"]["max_ns"] == 10 * MILLISECOND
    trace = {"kind": "trace", "offsets_ns": [0, 0, 5 * MILLISECOND, 20 * MILLISECOND]}
    totals, _, _ = measured(arrivals=trace, stop={"duration_ns": SECOND}, fake=fake)
    assert totals["succeeded"] == 4
    assert totals["elapsed_ns"] < SECOND
    falling = {"kind": "trace", "offsets_ns": [5, 4]}
    with pytest.raises(LoadError, match="earlier than"):
        measured(arrivals=falling, fake=fake)


def test_the_series_adds_up_to_the_totals_and_progress_is_told():
    told = []
    text = json.dumps(
        plan(
            clients=3,
            threads=2,
            fake={"latencies_ns": [MILLISECOND], "fail_every": 10},
            stop={"duration_ns": 200 * SECOND},
            deadline_ns=400 * SECOND,
            interval_ns=SECOND,
            progress_intervals=2,
        )
    )
    totals, _, series, *_ = _native.run_load(text.encode(), EMPTY, lambda news, _: told.append(news))
    totals, rows = json.loads(totals), pa.table(series).to_pylist()
    assert [row["interval"] for row in rows][:10] == list(range(10))
    for column in ("started", "succeeded", "failed", "statements"):
        assert sum(row[column] for row in rows) == totals[column]
    assert rows[3]["start_ns"] == 3 * SECOND
    assert told
    for news in map(json.loads, told):
        assert news["seconds"] == 2.0
        assert news["p50_ns"] == pytest.approx(MILLISECOND, rel=0.001)


def test_scripts_are_chosen_by_their_weight_and_by_the_seed():
    def shares(seed):
        scripts = [
            {"name": name, "weight": weight, "statements": [ONLY], "transaction": False}
            for name, weight in (("often", 3), ("never", 0), ("seldom", 1))
        ]
        _, statements, _ = measured(scripts=scripts, stop={"operations": 4000}, seed=seed)
        return {r["name"]: r["executions"] for r in statements.to_pylist() if r["kind"] == "script"}

    first = shares(1)
    assert first == shares(1)
    assert first != shares(2)
    assert first["often"] == pytest.approx(3000, abs=120)
    assert (first["never"], sum(first.values())) == (0, 4000)


def test_each_client_carries_out_its_number_of_operations():
    totals, _ = load(clients=3, threads=2, stop={"operations_each": 7})
    assert (totals["started"], totals["elapsed_ns"]) == (21, 7 * MILLISECOND)


def test_an_hdr_log_has_a_line_for_each_interval():
    histogram = load()[1].column("histogram")[0].as_py()
    log = _native.hdr_log(1_700_000_000.5, [("a b", 0.0, 1.0, histogram), ("", 1.0, 1.0, histogram)])
    lines = [line for line in log.decode().splitlines() if not line.startswith("#")]
    assert lines[-2].startswith("Tag=a_b,0.000,1.000,")
    assert len(lines) >= 2
    with pytest.raises(LoadError, match="number 0"):
        _native.hdr_log(0.0, [("a", 0.0, 1.0, b"rubbish")])


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
