"""A captured workload as scripts: how many of each statement, their weights, and literals that stay whole."""

from collections import Counter

import pytest

from uncork.errors import UsageError
from uncork.model.database.workload import CapturedStatement, CapturedWorkload, NotCaptured
from uncork.report.database.workload import captured_answer
from uncork.workbench.cure.files import script_files, write_workload


def statement(template, rate, sets, sql="SELECT $1"):
    return CapturedStatement(template, sql, sets, "drawn", rate * 3600, 1e6, 0.1, (), changes=False)


def workload(*statements, missing=()):
    return CapturedWorkload(statements, missing, 60.0, 1.0)


def weight(text):
    return int(text.splitlines()[0].removeprefix("-- weight: "))


def test_scripts_keep_the_mix_and_frequent_statements_get_more_of_them():
    many = tuple((str(n),) for n in range(200))
    files = dict(
        script_files(workload(statement(0, 90.0, many), statement(1, 10.0, many), statement(2, 0.0, many)))
    )
    assert len(files) == 128
    scripts, weights = Counter(), Counter()
    for name, text in files.items():
        scripts[name[:14]] += 1
        weights[name[:14]] += weight(text)
    assert scripts["statement-0000"] > 8 * scripts["statement-0001"] and scripts["statement-0002"] == 1
    assert weights["statement-0000"] / weights["statement-0001"] == pytest.approx(9, rel=0.01)
    few = dict(script_files(workload(*(statement(n, 1.0, many) for n in range(200)))))
    assert len(few) == 128, "the statements with the most time come first"


def test_a_set_that_comes_twice_has_twice_the_weight():
    first, second = script_files(workload(statement(3, 1.0, (("a",), ("b",), ("a",)))))
    assert first[0] == "statement-0003-01.sql"
    assert weight(first[1]) == pytest.approx(2 * weight(second[1]), rel=0.01)
    assert first[1].endswith("\nSELECT 'a'\n;\n")


def test_values_stay_what_they_are_where_a_colon_begins_a_variable():
    own = statement(1, 1.0, (("O'x :scale\\n", None, "12:30"),), "SELECT $1, $2, $3;")
    ((_, text),) = script_files(workload(own))
    assert r"SELECT E'O''x \x3ascale\\n', NULL, '12:30'" in text


def test_nothing_captured_and_folders_with_files_are_refused(tmp_path):
    missing = (NotCaptured(1, "vacuum", "it is a utility statement", 1.0),)
    with pytest.raises(UsageError, match="no statement could be captured: it is a utility statement"):
        write_workload(workload(missing=missing), tmp_path)
    own = workload(statement(1, 2.0, ((),), "SELECT 1"), missing=missing)
    (script,) = write_workload(own, tmp_path / "mix")
    assert script.read_text().endswith("SELECT 1\n;\n")
    readme = (tmp_path / "mix/README.md").read_text()
    assert "uncork load sql -f mix -R 2 " in readme and "it is a utility statement" in readme
    with pytest.raises(UsageError, match="is not empty"):
        write_workload(own, tmp_path / "mix")
    with pytest.raises(UsageError, match="is a file"):
        write_workload(own, script)


def test_the_answer_says_what_is_covered_and_what_is_missing():
    missing = tuple(NotCaptured(n, "", f"reason {n}", 0.1 + n / 100) for n in range(5))
    first, second, third = captured_answer(workload(statement(1, 2.0, (("a",),)), missing=missing))
    assert first == "Captured 1 statement with 10 % of the time of all statements, at 2 executions a second."
    assert second == "Values of parameters: drawn from the columns' statistics for 1 of them."
    assert third.startswith("Missing: 5 statements (14 %: reason 4; ") and "2 other reasons" in third
