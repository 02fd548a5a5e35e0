"""Write a run, read it back: what comes out is what went in, and sums are checked by hand."""

import errno
import math
import os
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from fakes.ports import measured
from uncork.errors import StoreError, UsageError
from uncork.model.measurement import Counters, Disturbance, Outcome
from uncork.model.server import ExecutedPlan, Relation
from uncork.model.tables.register import TABLES, RefusalRow
from uncork.model.trial import Arm, Cell, Trial
from uncork.store.layout import stored_file, write_atomically, write_manifest
from uncork.store.query import RunReader
from uncork.store.tables import arrow_schema
from uncork.store.write import RunWriter

from .test_layout import MANIFEST, fails

CELL = Cell.of({"rows": "10"})
BASE, AGAIN, NEW = Arm("base"), Arm("base", again=True), Arm("new")


def trial(number=1, block=1, arm=BASE, position=0, workload="read"):
    return Trial(number, block, position, CELL, workload, arm)


@pytest.fixture
def writer(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    return RunWriter(tmp_path, {"read": "latency_p50", "write": "throughput"})


@pytest.fixture
def reader(tmp_path, writer):
    reader = RunReader(tmp_path)
    yield reader
    reader.close()


def test_a_run_without_trials_is_read_as_empty(reader):
    assert reader.manifest == MANIFEST
    assert reader.values() == []
    assert reader.last_round() == 0
    assert reader.totals() == {"trials": 0, "failed": 0}
    assert reader.disturbances() == {}
    assert reader.environment() == {}
    for rows in (reader.metrics, reader.costs, reader.histograms, reader.failures, reader.plans):
        assert rows() == []
    assert reader.relations() == reader.refusals() == []


def test_trials_come_back_with_their_place_and_value(writer, reader):
    writer.trials([(trial(2, 1, NEW, 1), measured(2e6)), (trial(2, 1, AGAIN, 0, "write"), measured(4e6))])
    writer.trials([(trial(1, 1, BASE), measured(1e6))])
    assert reader.values() == [
        (1, 1, 0, "rows=10", "read", "base", False, 1e6, 100, 100, None),
        (2, 1, 1, "rows=10", "read", "new", False, 2e6, 100, 100, None),
        (2, 1, 0, "rows=10", "write", "base", True, 250.0, 100, 100, None),
    ]
    assert reader.last_round() == 2
    assert reader.totals() == {"trials": 3, "failed": 0}


def test_only_complete_trials_have_a_value(writer, reader):
    lost = measured(1e6, outcome=Outcome.CONNECTION_LOST, message="it went away")
    wrong = measured(1e6, outcome=Outcome.ERRORS, message="no such row", failed=3)
    writer.trials([(trial(1), lost), (trial(2), wrong), (trial(3), wrong), (trial(4), measured(1e6))])
    assert [row.value for row in reader.values()] == [None, None, None, 1e6]
    assert reader.totals() == {"trials": 4, "failed": 3}
    assert [(row.outcome, row.message, row.trials) for row in reader.failures()] == [
        ("errors", "no such row", 2),
        ("connection lost", "it went away", 1),
    ]


def test_metrics_are_geometric_means_of_rounds(writer, reader):
    values = {(1, 1): 1e6, (1, 2): 4e6, (2, 1): 16e6}
    writer.trials([(trial(*place), measured(value)) for place, value in values.items()])
    writer.trials([(trial(2, 2), measured(1e6, outcome=Outcome.ERRORS))])
    (row,) = reader.metrics()
    assert (row.variant, row.again, row.trials, row.failed) == ("base", False, 4, 1)
    assert [entry["round"] for entry in row.rounds] == [1, 2]
    assert [entry["value"] for entry in row.rounds] == pytest.approx([2e6, 16e6])
    assert row.value == pytest.approx(math.sqrt(2e6 * 16e6))


def test_an_arm_that_never_completed_has_no_metric(writer, reader):
    writer.trials([(trial(), measured(1e6, outcome=Outcome.DEADLINE))])
    (row,) = reader.metrics()
    assert (row.trials, row.failed, row.value, row.rounds) == (1, 1, None, None)


def test_costs_are_sums_over_operations(writer, reader):
    def counted(executions, operations, **counters):
        return replace(measured(1000, executions), counters=Counters(operations, **counters))

    first = counted(100, 120, shared_hit=240, wal_bytes=1200, wal_records=12, temp_bytes=0, queries=360)
    second = counted(300, 380, shared_hit=10, wal_bytes=3800, wal_records=38, temp_bytes=5000)
    failed = replace(counted(50, 50, shared_hit=9999), outcome=Outcome.ERRORS)
    writer.trials([(trial(1, arm=BASE), first), (trial(1, arm=AGAIN), second), (trial(1, arm=NEW), failed)])
    (row,) = reader.costs()
    assert (row["cell"], row["workload"], row["variant"]) == ("rows=10", "read", "base")
    assert row["operations"] == 400
    assert row["shared_hit"] == pytest.approx(250 / 500)
    assert row["wal_bytes"] == pytest.approx(10)
    assert row["wal_records"] == pytest.approx(0.1)
    assert row["queries"] == pytest.approx(3)
    assert row["temp_bytes"] == pytest.approx(5000 / 500)
    assert row["shared_read"] is None
    assert row["server_user_ns"] == pytest.approx(500)
    assert row["server_system_ns"] == pytest.approx(100)
    assert (row["client_user_ns"], row["client_system_ns"]) == (10, 5)
    assert (row["rows"], row["sent_bytes"], row["received_bytes"]) == (1, 50, 100)


def test_costs_divide_by_the_trials_that_could_tell(writer, reader):
    seen = replace(measured(1000, 100), counters=Counters(100, shared_hit=700))
    blind = replace(measured(1000, 900), counters=None, server_user_ns=None, server_system_ns=None)
    writer.trials([(trial(1), seen), (trial(2), blind)])
    (row,) = reader.costs()
    assert row["operations"] == 1000
    assert row["shared_hit"] == 7
    assert row["server_user_ns"] == 500


def test_histograms_of_complete_trials_are_gathered_by_variant(writer, reader):
    writer.trials([
        (trial(1, arm=BASE), measured(1e6, 10, histogram=b"one")),
        (trial(1, arm=AGAIN), measured(1e6, 20, histogram=b"two")),
        (trial(1, arm=NEW), measured(1e6, 5, histogram=b"no", outcome=Outcome.ERRORS)),
    ])  # fmt: skip
    (row,) = reader.histograms()
    assert (row.variant, row.executions, sorted(row.histograms)) == ("base", 30, [b"one", b"two"])


def test_disturbances_are_counted_by_kind(writer, reader):
    steal, checkpoint = Disturbance.STEAL, Disturbance.CHECKPOINT
    for number, kinds in enumerate(((checkpoint, steal), (steal,), ()), start=1):
        writer.trials([(trial(number), replace(measured(1e6), disturbances=frozenset(kinds)))])
    assert reader.disturbances() == {"checkpoint": 1, "steal": 2}


def test_statements_are_kept_beside_their_trial(tmp_path, writer):
    writer.trials([(trial(), measured(1e6, statements=("read.1", "read.2")))])
    (path,) = (tmp_path / "statements").iterdir()
    rows = pq.read_table(path).to_pylist()
    assert [(row["statement"], row["p50_ns"], row["round"]) for row in rows] == [
        ("read.1", 10**6, 1),
        ("read.2", 10**6, 1),
    ]


def test_of_plans_and_sizes_made_twice_the_newest_counts(writer, reader):
    for buffers in (3, 4):
        writer.plans(
            CELL, "read", "base", [ExecutedPlan("read", f"text {buffers}", "Seq Scan", buffers, None)]
        )
        writer.relations(CELL, "base", [Relation("item", "table", "item", buffers * 8192, 10.0, None)])
    writer.plans(CELL, "read", "new", [ExecutedPlan("read", "other", "Index Scan", None, 1.5)])
    writer.plans(CELL, "read", "none", [])
    writer.relations(CELL, "none", [])
    assert [(row["variant"], row["text"], row["buffers"]) for row in reader.plans()] == [
        ("base", "text 4", 4),
        ("new", "other", None),
    ]
    size = {"kind": "table", "table": "item", "bytes": 4 * 8192, "rows": 10.0, "depth": None}
    assert reader.relations() == [{"cell": "rows=10", "variant": "base", "relation": "item", **size}]


def test_refusals_come_back_with_their_reason(writer, reader):
    writer.refusal(CELL, "read", "new", "wrong answer")
    writer.refusal(CELL, "read", "new", "wrong answer")
    assert reader.refusals() == [RefusalRow("rows=10", "read", "new", "wrong answer")]


def test_the_files_of_a_run_come_back_as_they_were(tmp_path, writer, reader):
    writer.environment({"server": {"version": "18"}})
    write_atomically(tmp_path / "experiment.toml", "[experiment]\n")
    write_atomically(stored_file(tmp_path, "queries/one.sql"), "SELECT 1")
    assert reader.environment() == {"server": {"version": "18"}}
    assert reader.specification() == "[experiment]\n"
    assert reader.read_file("queries/one.sql") == "SELECT 1"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_stored_columns_carry_unit_and_meaning(table):
    schema = arrow_schema(table)
    assert schema.names == [column.name for column in table.columns]
    for column in table.columns:
        field = schema.field(column.name)
        assert field.metadata == {b"unit": column.unit.encode(), b"meaning": column.meaning.encode()}
        assert field.nullable == (column.name not in table.key)


# ---- damage ----


def test_a_full_disk_leaves_earlier_trials_readable_and_nothing_half_written(
    tmp_path, writer, reader, monkeypatch
):
    writer.trials([(trial(1), measured(1e6))])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails(errno.ENOSPC, "No space left on device"))
        with pytest.raises(StoreError, match="No space left on device; free some space"):
            writer.trials([(trial(2), measured(1e6))])
    assert sorted(path.name for path in (tmp_path / "trials").iterdir()) == ["000001.parquet"]
    assert [row.round for row in reader.values()] == [1]


@pytest.mark.parametrize("damage", [b"", b"PAR1 and then nothing", None])
def test_a_damaged_table_is_an_error_that_names_the_file_however_often(tmp_path, writer, reader, damage):
    writer.trials([(trial(1), measured(1e6))])
    writer.trials([(trial(2), measured(1e6))])
    path = tmp_path / "trials" / "000002.parquet"
    path.write_bytes(path.read_bytes()[:-20] if damage is None else damage)
    for ask in (reader.values, reader.totals, reader.totals):
        with pytest.raises(StoreError, match=r"000002\.parquet.*damaged|damaged.*000002\.parquet"):
            ask()


@pytest.mark.parametrize("name", ["environment.json", "experiment.toml"])
def test_other_damaged_files_are_store_errors_that_name_them(tmp_path, reader, name):
    (tmp_path / name).write_bytes(b"\xff{")
    with pytest.raises(StoreError, match=name):
        reader.environment() if name == "environment.json" else reader.specification()


def test_a_run_names_the_tables_in_which_it_has_rows_and_gives_them_as_arrow(writer, reader):
    assert reader.tables() == []
    writer.trials([(trial(), measured(1e6, statements=("read.1",)))])
    reader.close()  # it keeps what it found
    assert reader.tables() == ["statements", "trials"]
    assert reader.ask_arrow("SELECT workload, variant FROM trials").to_pylist() == [
        {"workload": "read", "variant": "base"}
    ]
    with pytest.raises(UsageError, match="nope"):
        reader.ask_arrow("SELECT nope FROM trials")
