import pytest

from fakes.ports import measured
from uncork.model.server import Target
from uncork.model.tables.register import TABLES
from uncork.model.trial import Arm, Cell, Trial


def test_a_cell_is_named_after_its_levels():
    assert Cell.of({"rows": "10", "index": "none"}).name == "rows=10,index=none"
    assert Cell().name == "all"


def test_a_cell_knows_its_levels():
    cell = Cell.of({"rows": "10", "index": "none"})
    assert cell.level("index") == "none"
    with pytest.raises(KeyError):
        cell.level("clients")


def test_a_cell_matches_when_every_chosen_factor_it_has_fits():
    cell = Cell.of({"rows": "10", "index": "none"})
    assert cell.matches({})
    assert cell.matches({"rows": frozenset({"10", "20"})})
    assert cell.matches({"clients": frozenset({"1"})})
    assert not cell.matches({"rows": frozenset({"10"}), "index": frozenset({"key"})})


def test_the_baselines_second_run_is_an_arm_of_its_own():
    assert Arm("char").name == "char"
    assert Arm("char", again=True).name == "char#2"
    assert Arm("char") != Arm("char", again=True)


def test_trials_of_one_cell_and_workload_are_judged_together():
    one, other = (Trial(1, 1, n, Cell(), "read", Arm(name)) for n, name in enumerate("ab"))
    assert one.comparison_key == other.comparison_key == (Cell(), "read")


@pytest.mark.parametrize("metric", ["mean", "p50", "p90", "p95", "p99"])
def test_a_trial_has_each_metric(metric):
    trial = measured(2e6, 100, failed=10)
    assert trial.metric(f"latency_{metric}") == pytest.approx(2e6)
    assert trial.metric("throughput") == pytest.approx(500 * 0.9)


def test_a_trial_without_operations_has_no_metric():
    assert measured(2e6, 0).metric("latency_p50") is None


def test_an_unknown_metric_is_an_error():
    with pytest.raises(KeyError):
        measured(1e6).metric("latency_p42")


def test_a_target_never_shows_its_password():
    target = Target("database", {"host": "host", "password": "hunter2"})
    assert "hunter2" not in repr(target)
    assert "hunter2" not in f"{target}"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_tables_key_is_among_its_columns_and_no_column_stands_twice(table):
    names = [column.name for column in table.columns]
    assert set(table.key) <= set(names)
    assert len(names) == len(set(names))
