"""From stored trials to what gates are judged by."""

import pytest

from uncork.experiment.guard.gate_evidence import gate_evidence, size_evidence
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.gate_metrics import GATE_METRICS, trial_value
from uncork.model.tables.register import TRIALS
from uncork.stats.effect import Effect
from uncork.stats.gates.decision import Exact, Unknown
from uncork.stats.level import Level
from uncork.stats.proportion import ShareEffect

CONFIDENCE = 0.95


def rows(change, *, rounds=5, blocks=2):
    """Make trials of both sides; `change` takes (row, is it the candidate's) and returns other columns."""
    found = []
    for number in range(1, rounds + 1):
        for block in range(1, blocks + 1):
            for variant, again in (("old", False), ("old", True), ("new", False)):
                row = {"round": number, "block": block, "variant": variant, "again": again}
                row |= {"outcome": "complete", "started": 100, "succeeded": 100, "failed": 0}
                row |= {"elapsed_ns": 10**9, "executions": 100, "counted_operations": 120}
                found.append(row | change(row, variant == "new"))
    return found


def find(gate, found, **facts):
    return gate_evidence(
        parse_gate(gate), found, baseline="old", candidate="new", confidence=CONFIDENCE, **facts
    )


def times(row, new):
    return {"p99_ns": int(1e6 * (1.1 if new else 1.0) * (1 + 0.001 * row["round"]))}


def test_a_ratio_of_times_comes_from_the_rounds():
    found = find("p99 < +5%", rows(times))
    assert isinstance(found.evidence, Effect)
    assert (found.evidence.rounds, found.evidence.kind) == (5, "round")
    assert found.evidence.ratio == pytest.approx(1.1, rel=1e-6)
    assert found.candidate / found.baseline == pytest.approx(1.1, rel=1e-6)
    assert [number for number, _, _ in found.by_round] == [1, 2, 3, 4, 5]
    assert found.by_round[0][1:] == pytest.approx((1.001e6, 1.1011e6))


def test_without_restarts_blocks_are_the_units():
    found = find("p99 < +5%", rows(times), kind="block")
    assert (found.evidence.rounds, found.evidence.kind) == (10, "block")
    assert len(found.by_round) == 5


def on_hosts(found):
    """Number ten rounds by five hosts, which measured two waves."""
    numbers = sorted({row["round"] for row in found})
    hosts = {number: (number - 1) % 5 + 1 for number in numbers}
    return {"host": hosts, "wave": {number: (number - 1) // 5 + 1 for number in numbers}}


@pytest.mark.parametrize("gate", ["p99 < +5%", "p99 < 20ms", "success >= baseline", "success > 99%"])
def test_hosts_that_differ_widen_every_kind_of_evidence_and_two_waves_say_nothing(gate):
    def differs(row, new):
        host = (row["round"] - 1) % 5
        fails = 4 + 2 * host if new else 5
        return {"p99_ns": 10**6 * (10 + (host if new else 0)), "succeeded": 100 - fails, "failed": fails}

    trials = rows(differs, rounds=10)
    alone, hosts = find(gate, trials), find(gate, trials, groups=on_hosts(trials))
    assert (alone.evidence.kind, alone.evidence.rounds) == ("round", 10)
    assert (hosts.evidence.kind, hosts.evidence.rounds) == ("host", 5)
    assert hosts.evidence.low < alone.evidence.low and hosts.evidence.high > alone.evidence.high
    assert hosts.by_round == alone.by_round and hosts.candidate == alone.candidate


def test_equal_counts_stay_exact_on_hosts():
    trials = rows(lambda row, new: {"sent_bytes": 1_000 + new}, rounds=10)
    found = find("sent bytes <= baseline", trials, groups=on_hosts(trials))
    assert found.evidence == Exact(10.0, 10.01, 10)


def test_a_value_asks_for_the_candidate_alone():
    alone = [row for row in rows(times) if row["variant"] == "new"]
    found = find("p99 < 20ms", alone)
    assert isinstance(found.evidence, Level)
    assert found.evidence.value == pytest.approx(1.1033e6, rel=1e-3)
    assert (found.baseline, found.evidence.rounds) == (None, 5)


def test_counts_that_are_alike_are_exact_though_operations_differ():
    def statements(row, new):
        operations = 100 + row["round"]
        return {"counted_operations": operations, "queries": operations * (11 if new else 1)}

    found = find("queries <= baseline", rows(statements))
    assert found.evidence == Exact(1.0, 11.0, 5)
    assert find("queries <= 10", rows(statements)).evidence == Exact(None, 11.0, 5)


def test_counts_that_vary_have_an_interval():
    found = find("WAL <= baseline", rows(lambda row, new: {"wal_bytes": 12_000 + row["round"] * (1 + new)}))
    assert isinstance(found.evidence, Effect)
    assert found.evidence.warnings == ()


def test_where_some_trials_need_none_there_are_ratios_all_the_same():
    def hint_bits(row, new):
        return {"wal_bytes": 600 if row["round"] == 3 and row["block"] == 1 else 0}

    found = find("WAL <= baseline", rows(hint_bits))
    assert isinstance(found.evidence, Effect)
    assert found.evidence.ratio == pytest.approx(1.0, abs=1e-9)
    assert (
        "some trials have a value of 0, so 100 B was added to all values to form a ratio"
        in found.evidence.warnings
    )
    much = find("WAL <= baseline", rows(lambda row, new: {"wal_bytes": new * (240_000 + row["round"])}))
    assert much.evidence.ratio == pytest.approx(21.0, rel=1e-3)


def test_shares_come_as_counts():
    def failing(row, new):
        failed = 5 if new else 0
        return {"failed": failed, "succeeded": 100 - failed}

    for gate in ("success >= baseline", "errors <= baseline"):
        found = find(gate, rows(failing))
        assert isinstance(found.evidence, ShareEffect)
        assert found.evidence.difference == pytest.approx(-0.05)
        assert found.evidence.own == (950, 1000)
    assert find("errors < 1%", rows(failing)).candidate == pytest.approx(0.05)
    assert find("errors < 1%", rows(failing)).evidence.counts == (950, 1000)


@pytest.mark.parametrize(
    ("gate", "change", "reason"),
    [
        ("queries <= baseline", lambda row, new: {},
         "the server does not count statements: it requires pg_stat_"),
        ("server CPU < +5%", lambda row, new: {},
         "the server's processes are not visible from here"),
        ("service CPU < +5%", lambda row, new: {}, "no service ran beside it"),
        ("bytes received < +5%", lambda row, new: {}, "this driver does not count bytes"),
        ("p99 < +5%", lambda row, new: {"outcome": "errors"},
         "the candidate has no complete trial"),
        ("p99 < +5%", lambda row, new: {"outcome": "errors" if new else "complete"},
         "the candidate has no complete trial"),
        ("p99 < +5%", lambda row, new: {"executions": 0}, "no operation succeeded"),
        ("p99 < +5%", lambda row,
         new: times(row, new) | {"outcome": "errors" if row["again"] else "complete"},
         "no block was complete"),
    ],
)  # fmt: skip
def test_nothing_found_says_why(gate, change, reason):
    found = find(gate, rows(change)).evidence
    assert isinstance(found, Unknown)
    assert found.reason.startswith(reason)


def test_sizes_are_summed():
    relations = [
        {"variant": "old", "relation": "orders", "bytes": 8_000_000},
        {"variant": "new", "relation": "orders", "bytes": 8_000_000},
        {"variant": "new", "relation": "orders_by_day", "bytes": 1_000_000},
    ]
    found = size_evidence(relations, baseline="old", candidate="new")
    assert found.evidence == Exact(8e6, 9e6)
    assert isinstance(size_evidence([], baseline="old", candidate="new").evidence, Unknown)


def test_every_column_that_a_metric_needs_is_stored():
    stored = {column.name for column in TRIALS.columns}
    for metric in GATE_METRICS.values():
        assert {*metric.columns, metric.over} <= stored


def test_a_stored_trial_has_a_value_of_each_metric_that_its_columns_tell():
    trial = {
        **{"started": 100, "succeeded": 90, "failed": 10, "elapsed_ns": 2 * 10**9},
        **{"executions": 90, "sum_ns": 180_000_000, "p50_ns": 2 * 10**6, "p90_ns": 3 * 10**6},
        **{"p95_ns": 4 * 10**6, "p99_ns": 5 * 10**6, "p999_ns": 6},
        **{"client_user_ns": 100_000, "client_system_ns": 100_000, "server_user_ns": None},
        **{"sent_bytes": 1_000, "received_bytes": None, "counted_operations": 125},
        **{"shared_hit": 250, "shared_read": 0, "wal_bytes": 0},
    }
    assert {*trial} <= {column.name for column in TRIALS.columns}
    values = {name: trial_value(name, trial) for name in GATE_METRICS}
    assert {name: value for name, value in values.items() if value is not None} == {
        "latency_mean": 2e6,
        "latency_p50": 2e6,
        "latency_p90": 3e6,
        "latency_p95": 4e6,
        "latency_p99": 5e6,
        "latency_p999": 6.0,
        "throughput": 45.0,
        "success": 0.9,
        "errors": 0.1,
        "buffers": 2.0,
        "buffers_read": 0.0,
        "wal_bytes": 0.0,
        "client_cpu": 2_000.0,
        "sent_bytes": 10.0,
    }
