"""`uncork import`, as a person runs it."""

from __future__ import annotations

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
        (["own.txt"], "is not a result that uncork can import; it reads results of pgbench"),
        (["wrk.txt", "--at", "yesterday"], '--at "yesterday" is not a time'),
        (["wrk.txt", "own.txt", "--at", "2026-01-01"], "--at applies to one file"),
        (["wrk.txt", "own.txt"], "the file before it is imported"),
        (["wrk.txt", "--as", " "], "give the series a name"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(uncork, words, said):
    (uncork.folder / "own.txt").write_text("hello\n")
    (uncork.folder / "wrk.txt").write_text((RESULTS / "wrk.txt").read_text())
    done = uncork("import", *words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(uncork.runs) == ("the file before" in said)
