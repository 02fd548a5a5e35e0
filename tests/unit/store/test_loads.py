"""Write a load, read it back: what comes out is what went in, and no password is in it."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from fakes.http_results import http_load
from fakes.load_results import CLOSED_SPEC, ENVIRONMENT, closed_load, open_load, plan, refused_load
from uncork.errors import SetupError, StoreError
from uncork.load.run import without_password
from uncork.model.load import FailureTotals
from uncork.model.tables.register import TABLES
from uncork.store.layout import write_manifest
from uncork.store.loads import LoadReader, write_environment, write_measurement, write_plan
from uncork.store.query import RunReader

from .test_layout import MANIFEST

LOAD = replace(MANIFEST, kind="load", options={"command": "uncork load sql -c 8"})


@pytest.fixture
def reader(tmp_path):
    write_manifest(tmp_path, LOAD)
    reader = LoadReader(tmp_path)
    yield reader
    reader.close()


@pytest.mark.parametrize("make", [closed_load, open_load, refused_load, http_load])
def test_what_was_measured_comes_back(reader, make):
    write_measurement(reader.folder, make())
    found = reader.measurement()
    assert found.totals == make().totals
    assert found.times == make().times
    assert sorted(found.series, key=repr) == sorted(make().series, key=repr)
    assert sorted(found.statuses, key=repr) == sorted(make().statuses, key=repr)


def test_failures_come_back(reader):
    failure = FailureTotals("42P01", 3, "a.sql", 2, "SELECT 1;", "a.sql:2: no table")
    measured = closed_load()
    write_measurement(reader.folder, replace(measured, totals=replace(measured.totals, failures=(failure,))))
    assert reader.measurement().totals.failures == (failure,)


def test_statuses_over_time_are_of_http_only_and_add_up_to_the_totals(reader):
    write_measurement(reader.folder, open_load())
    assert not (reader.folder / "load_statuses").exists()
    assert reader.measurement().statuses == ()
    assert reader.ask("SELECT * EXCLUDE (filename) FROM load_statuses")[1] == [], (
        "nobody counted, but can ask"
    )
    other = LoadReader(reader.folder)
    write_measurement(other.folder, http_load())
    found = other.ask("SELECT status, sum(answers)::BIGINT FROM load_statuses GROUP BY ALL ORDER BY ALL")
    other.close()
    assert {str(status): number for status, number in found[1]} == http_load().totals.http.statuses


def test_the_tables_have_the_described_columns(reader):
    write_measurement(reader.folder, http_load())
    for name in ("load_totals", "load_statements", "load_series", "load_statuses"):
        (path,) = (reader.folder / name).glob("*.parquet")
        schema = pq.read_schema(path)
        assert schema.names == [column.name for column in TABLES[name].columns]
        assert schema.metadata[b"uncork.table"] == name.encode()


@pytest.mark.parametrize("name", ["load_totals", "load_statements", "load_series"])
def test_a_damaged_table_is_said(reader, name):
    write_measurement(reader.folder, open_load())
    (path,) = (reader.folder / name).glob("*.parquet")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StoreError, match=rf"{reader.folder}: damaged: "):
        reader.measurement()


def test_plan_and_environment_come_back_without_the_password(reader):
    made = plan(CLOSED_SPEC)
    write_plan(reader.folder, without_password(made))
    write_environment(reader.folder, ENVIRONMENT)
    assert reader.plan() == {**made, "connection": {**made["connection"], "password": None}}
    assert reader.environment() == ENVIRONMENT
    assert "hush" not in (reader.folder / "plan.json").read_text()


def test_a_load_without_a_result_says_so(reader):
    with pytest.raises(StoreError, match=r"has no result: it is running, or was killed"):
        reader.measurement()


def test_a_damaged_plan_is_said(reader):
    (reader.folder / "plan.json").write_text("{")
    with pytest.raises(StoreError, match=r"plan\.json: damaged"):
        reader.plan()


def test_a_load_is_no_experiment(reader):
    with pytest.raises(SetupError, match=r"is a load, not an experiment; .* uncork load sql -c 8"):
        RunReader(reader.folder).specification()
