"""Queries of programs: they see a run's tables, and nothing else of this machine."""

from contextlib import closing
from pathlib import Path

import pytest

from fakes.goldens import compare_answers
from fakes.ports import measured
from fakes.stored_loads import store_load
from uncork.analysis.runs.listing import read_runs
from uncork.errors import UsageError
from uncork.model.trial import Arm, Cell, Trial
from uncork.store import sandbox
from uncork.store.layout import write_manifest
from uncork.store.query import RunReader
from uncork.store.query_all import AllRunsReader
from uncork.store.write import RunWriter

from .test_layout import MANIFEST


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "run"
    folder.mkdir()
    write_manifest(folder, MANIFEST)
    writer = RunWriter(folder, {"read": "latency_p50"})
    cell = Cell.of({"rows": "10"})
    writer.trials(
        [(Trial(1, 1, at, cell, "read", Arm(name)), measured(1e6)) for at, name in enumerate("abc")]
    )
    (folder / "secret.txt").write_text("secret")
    return folder


@pytest.fixture(scope="module")
def reader(run):
    with closing(RunReader(run)) as opened:
        yield opened


def contents(folder):
    return {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}


def test_rows_come_with_names_and_types_and_a_word_about_more(reader):
    found = reader.ask_sandboxed("SELECT variant, position FROM trials ORDER BY variant", 2)
    assert found.columns == (("variant", "VARCHAR"), ("position", "BIGINT"))
    assert (found.rows, found.more) == ((("a", 0), ("b", 1)), True)
    assert not reader.ask_sandboxed("FROM trials", 3).more


def test_a_table_can_be_joined_with_itself_and_its_files_stay_unnamed(reader):
    joined = "SELECT count(*) FROM trials AS one JOIN trials AS other USING (round)"
    assert reader.ask_sandboxed(joined, 5).rows == ((9,),)
    assert "filename" not in dict(reader.ask_sandboxed("FROM trials", 5).columns)
    assert "plan_hash" in dict(reader.ask_sandboxed("FROM plans", 5).columns)


def test_without_a_table_the_tables_are_listed(reader):
    names = [row[0] for row in reader.ask_sandboxed("SHOW TABLES;", 500).rows]
    assert {"trials", "plans", "database_plans"} <= set(names)


def test_a_query_touches_nothing_but_the_tables(reader, run):
    (file,) = (run / "trials").glob("*.parquet")
    before = contents(run)

    def answer(query):
        with pytest.raises(UsageError) as refused:
            reader.ask_sandboxed(query.format(folder=run, file=file), 10)
        places = {str(file): "FILE", str(run): "FOLDER", str(Path.home()): "HOME"}
        message = str(refused.value)
        for place, name in places.items():
            message = message.replace(place, name)
        return message

    compare_answers("requests/sandboxed", answer)
    assert contents(run) == before


def test_refusals_say_what_is_answered(reader):
    with pytest.raises(UsageError, match=r"^COPY is refused: only queries are answered"):
        reader.ask_sandboxed("copy trials TO 'x'", 1)
    with pytest.raises(UsageError, match=r"^the query has 2 statements; send one at a time"):
        reader.ask_sandboxed("SELECT 1; SELECT 2", 1)


def test_a_table_of_too_many_rows_is_refused_before_it_is_read(reader, monkeypatch):
    monkeypatch.setattr(sandbox, "MOST_ROWS", 2)
    with pytest.raises(UsageError, match=r"^trials has 3 rows, and up to 2 are read here; use `uncork sql`"):
        reader.ask_sandboxed("SELECT 1 FROM trials", 1)


def test_queries_over_all_runs_are_closed_too(tmp_path):
    store_load(tmp_path, 1)
    store_load(tmp_path, 2)
    with closing(AllRunsReader(tmp_path, read_runs(tmp_path).runs)) as every:
        found = every.ask_sandboxed("SELECT count(DISTINCT run) FROM load_totals JOIN runs USING (run)", 5)
        assert found.rows == ((2,),)
        with pytest.raises(UsageError, match="disabled by configuration"):
            every.ask_sandboxed("SELECT * FROM runs, read_text('/etc/passwd')", 5)
