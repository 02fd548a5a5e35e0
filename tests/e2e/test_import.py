"""`uncork import`, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[1] / "fixtures" / "results"


def test_results_of_all_tools_are_imported_and_reported(uncork):
    files = [path for path in sorted(RESULTS.glob("*.*")) if path.suffix != ".md"]
    done = uncork("import", *files, "--as", "past", "--commit", "abc")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(files)
    assert "used the age of the file" in done.stderr
    again = uncork("import", *files, "--as", "past", "--commit", "abc")
    assert again.stdout.count("(imported before)") == len(files)
    listed = uncork("runs").stdout
    assert listed.count(" import ") == len(files)
    done = uncork("report", done.stdout.split(":")[0])
    assert done.returncode == 0, done.stderr
    assert "report: " in done.stdout
    assert uncork("sql", "last", "SELECT name FROM figures", "--csv").returncode == 0
    assert uncork("sql", "last", "--csv").stdout.startswith("table,rows\nfigures,")
    assert "filename" not in uncork("sql", "last", "SELECT * FROM figures", "--csv").stdout.splitlines()[0]
    ids = {line.split(": ")[1].split(",")[0]: line.split(":")[0] for line in again.stdout.splitlines()}
    unlike = uncork("compare", ids["wrk"], ids["h2load"])
    assert unlike.returncode == 1
    assert "the tools define metrics of the same name differently" in unlike.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.txt"], "cannot read nowhere.txt: No such file or directory"),
        (["."], "cannot read .: Is a directory"),
        (["table.csv"], 'table.csv is damaged: line 3: "value" is "slow"; expecting a number'),
        (["two.csv", "--at", "2026-01-01"], "--at: two.csv holds 2 runs, each with its own time and commit"),
        (["late.csv"], "late.csv is damaged: its time, 0001-01-01T00:00, is not in the years 1970 to 2199"),
        (["own.txt"], "is not a result that uncork can import; it reads results of pgbench"),
        (["wrk.txt", "--at", "yesterday"], '--at "yesterday" is not a time'),
        (["wrk.txt", "own.txt", "--at", "2026-01-01"], "--at applies to one file"),
        (["wrk.txt", "own.txt"], "the file before it is imported"),
        (["wrk.txt", "--as", " "], "give the series a name"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(uncork, words, said):
    (uncork.folder / "own.txt").write_text("hello\n")
    head = "time,metric,value\n"
    (uncork.folder / "table.csv").write_text(f"{head}2026-05-01,p99,1\n2026-05-02,p99,slow\n")
    (uncork.folder / "two.csv").write_text(f"{head}2026-05-01,p99,1\n2026-05-02,p99,2\n")
    (uncork.folder / "late.csv").write_text(f"{head}0001-01-01T00:00+14:00,p99,1\n")
    (uncork.folder / "wrk.txt").write_text((RESULTS / "wrk.txt").read_text())
    done = uncork("import", *words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(uncork.runs) == ("the file before" in said)


def test_a_table_becomes_a_history_whose_newest_run_is_judged(uncork):
    rows = [f"2026-05-{day:02d}T03:00,{day:07x},main,p99,{10 + day % 3 / 10},ms" for day in range(1, 29)]
    table = uncork.folder / "nightly.csv"
    table.write_text("\n".join(["time,commit,branch,metric,value,unit", *rows]))
    done = uncork("import", "nightly.csv")
    assert done.returncode == 0, done.stderr
    first, last = "import-nightly-20260501-030000", "import-nightly-20260528-030000"
    assert done.stdout == f"nightly.csv: 28 runs from {first} to {last}\n"
    assert uncork("history", "p99", "--branch", "main", "--window", "20").returncode == 0
    with table.open("a") as file:
        file.write("\n2026-05-29T03:00,abcdef0,main,p99,14,ms")
    assert "(28 imported before)" in uncork("import", "nightly.csv").stdout
    done = uncork("history", "p99", "--branch", "main", "--window", "20", "--json")
    assert done.returncode == 3
    newest = json.loads(done.stdout)["newest"]
    assert (newest["outcome"], newest["runs"], newest["value"]) == ("broken", 20, 14e6)
    report = " ".join(uncork("report", "last").stdout.split())
    assert "One run decides nothing" in report
    guard = uncork("guard", "last", "--stored", "--gate", "p99 < +5%")
    assert guard.returncode == 1
    assert "uncork history METRIC --window 20" in guard.stderr
