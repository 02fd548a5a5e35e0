"""`uncork import`, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_what_was_imported_before_a_file_that_cannot_be_is_kept(uncork):
    (uncork.folder / "own.txt").write_text("hello\n")
    (uncork.folder / "wrk.txt").write_text((RESULTS / "wrk.txt").read_text())
    done = uncork("import", "wrk.txt", "own.txt")
    assert done.returncode == 1
    assert "the file before it is imported" in done.stderr
    assert len(uncork.runs) == 1


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
