"""Evidence of variants, asked by SQL: each row says what it is of."""

from contextlib import closing

import pytest

from uncork.errors import StoreError
from uncork.model.tables.register import TABLES
from uncork.store.layout import write_manifest
from uncork.store.query import RunReader
from uncork.store.tables import rows_table, write_evidence

from .test_layout import MANIFEST

STACK = {"measure": "cpu", "unit": "samples", "pid": 7, "process": "postgres", "backend": "client backend"}
STACK |= {"application": "", "template": "select 1", "stack": "main;work"}


def facts(variant, cell=None, **changes):
    method = {"tool": "perf", "watched_ns": 5_000, "cannot_see": ["the kernel's frames"]}
    return {
        "method": method,
        "cpu_ns": (30, 10),
        "syscalls": {"by": "strace", "watched_ns": 3_000},
        "load": {"operations": 4, "elapsed_ns": 6_000},
        "place": {"cell": cell or {}, "workload": "read", "variant": variant},
        **changes,
    }


def keep(folder, number, told, value):
    tables = {"stacks": rows_table("stacks", [{**STACK, "value": value}])}
    calls = {"pid": 7, "process": "postgres", "template": "", "syscall": "read", "calls": value, "errors": 0}
    tables["stack_syscalls"] = rows_table("stack_syscalls", [{**calls, "time_ns": 1}])
    tables["stack_processes"] = rows_table("stack_processes", [])
    write_evidence(folder / "evidence" / f"{number:03d}", told, tables)


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "it's a run"  # a quote has to be written twice in SQL
    folder.mkdir()
    write_manifest(folder, MANIFEST)
    return folder


def ask(folder, query):
    with closing(RunReader(folder)) as reader:
        return reader.ask(query)


def test_rows_say_which_cell_workload_and_variant_they_are_of(run):
    keep(run, 1, facts("old", {"rows": "10", "index": "no"}), 5)
    keep(run, 2, facts("it's new", cpu_ns=None), 7)
    names, rows = ask(run, "FROM evidence ORDER BY evidence")
    assert names == [column.name for column in TABLES["evidence"].columns]
    missing = '["the kernel\'s frames"]'
    looked = ("rows=10,index=no", "read", "old", 4, 6_000, 5_000, "perf", 30, 10, "strace", 3_000, missing)
    assert rows[0] == (1, *looked)
    assert rows[1][8:10] == (None, None)
    shown = "evidence, cell, workload, variant, value, stack"
    _, rows = ask(run, f"SELECT {shown} FROM stacks ORDER BY evidence")
    assert rows == [
        (1, "rows=10,index=no", "read", "old", 5, "main;work"),
        (2, "all", "read", "it's new", 7, "main;work"),
    ]
    assert ask(run, "SELECT variant, calls FROM stack_syscalls ORDER BY 1")[1] == [
        ("it's new", 7),
        ("old", 5),
    ]
    assert ask(run, "SELECT variant FROM stack_processes")[1] == []


def test_of_a_place_that_was_looked_at_again_the_newest_counts(run):
    for number, value in ((1, 5), (2, 6), (11, 9)):
        keep(run, number, facts("other" if number == 2 else "old"), value)
    _, rows = ask(run, "SELECT evidence, variant, value FROM stacks ORDER BY ALL")
    assert rows == [(2, "other", 6), (11, "old", 9)]


def test_a_run_without_evidence_has_the_table_and_no_row(run):
    assert ask(run, "SELECT count(*) FROM evidence")[1] == [(0,)]
    assert ask(run, "SELECT count(*) FROM stacks")[1] == [(0,)]


def test_damaged_evidence_is_told(run):
    keep(run, 1, facts("old"), 5)
    (run / "evidence" / "001" / "facts.json").write_text("{}")
    with pytest.raises(StoreError, match=r"evidence/001/facts\.json: damaged"):
        ask(run, "SELECT 1")
    keep(run, 1, facts("old"), 5)
    (path,) = (run / "evidence" / "001" / "stacks").glob("*1.parquet")
    for one in path.parent.iterdir():
        one.write_bytes(b"no parquet")
    with pytest.raises(StoreError, match="damaged"):
        ask(run, "SELECT 1")
