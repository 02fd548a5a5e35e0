"""Cures on disk, their workloads, and a copy whose disk is full."""

import json
from collections import Counter
from dataclasses import replace

import jsonschema
import pytest

from fakes.cures import healthy_cure, interrupted_cure, nothing_proven, proven_cure
from fakes.terminals import shown
from uncork.api.runs import CureRun, open_folder
from uncork.engines.embedded import EmbeddedServer
from uncork.errors import ServerCrash, SetupError, StoreError, UsageError
from uncork.model.database.workload import CapturedStatement, CapturedWorkload, NotCaptured
from uncork.report.database.captured import captured_answer
from uncork.report.write.schemas import result_schema
from uncork.store.run_documents import CURE_FILE, read_cure
from uncork.workbench.cure.curing import CopiedDatabase, finding_time
from uncork.workbench.cure.files import script_files, write_workload
from uncork.workbench.cure.handing import write_cure
from uncork.workbench.cure.trials import finds_too_few, leave_out, with_matching
from uncork.workbench.documents.kinds import kind_of
from uncork.workbench.run_record import draft, start_run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a stored cure."""
    monkeypatch.setenv("UNCORK_COMMIT", "abc")
    manifest = draft(kind="cure", name="cure-shop", question="cure: shop", server="s", options={})
    with start_run(tmp_path, manifest) as run:
        write_cure(run.folder, replace(proven_cure(), id="", folder=""))
    return run.folder


@pytest.mark.parametrize("cure", [proven_cure, nothing_proven, healthy_cure, interrupted_cure])
def test_a_cure_is_read_as_it_was_written(tmp_path, cure):
    write_cure(tmp_path, cure())
    assert read_cure(tmp_path) == cure()


def test_a_bill_without_an_upper_bound_is_read_as_such(tmp_path):
    known = proven_cure()
    write_cure(tmp_path, replace(known, bill_before=replace(known.bill_before, high=None)))
    assert read_cure(tmp_path).bill_before.high is None


def test_the_files_of_a_stored_cure_are_in_its_folder(folder):
    found = read_cure(folder)
    assert (found.id, found.folder) == (folder.name, str(folder))


def test_every_form_of_the_report_of_a_stored_cure(folder):
    kind = kind_of(folder)
    found = kind.read(folder)
    forms = kind.forms(folder, found)
    assert "take at least 53 % less time" in forms.html
    assert forms.markdown.startswith("**Create an index")
    jsonschema.Draft202012Validator(result_schema("cure-result")).validate(json.loads(forms.json))
    assert "What to do next" in shown(kind.terminal, found)


def test_python_opens_a_cure(folder):
    run = open_folder(folder)
    assert isinstance(run, CureRun)
    assert run.kind == "cure"
    assert run.answer.startswith("Create an index")
    assert run.chosen.sql.startswith("CREATE INDEX CONCURRENTLY")


def test_damaged_files_and_other_versions_are_refused(tmp_path):
    with pytest.raises(StoreError, match="ended before its first result"):
        read_cure(tmp_path)
    (tmp_path / CURE_FILE).write_text("{}")
    with pytest.raises(StoreError, match=r"cure\.json"):
        read_cure(tmp_path)
    (tmp_path / CURE_FILE).write_text('{"version": 99, "uncork_version": "9.0"}')
    with pytest.raises(StoreError, match="format version 99, but this uncork reads version 1"):
        read_cure(tmp_path)


@pytest.mark.parametrize(
    ("left_s", "findings", "helped", "given"),
    [
        (600, 4, False, (75, 300)),
        (600, 1, True, (90, 300)),
        (50, 3, False, (12, 25)),
        (20, 2, False, (12, 20)),  # nothing to confirm yet
        (20, 2, True, None),
        (11, 1, False, None),
    ],
)
def test_findings_share_the_budget_and_what_helps_is_confirmed_with_the_rest(left_s, findings, helped, given):
    assert finding_time(left_s, findings, helped=helped) == given


SETS = (("1",), ("2",), ("1",), ("3",))
DELETE = CapturedStatement(
    4, "DELETE FROM t WHERE id = $1", SETS, "drawn", 9.0, 1e6, 0.25, ("t",), changes=True
)
WORKLOAD = CapturedWorkload((DELETE,), (), 60.0, 1.0)


def test_sets_that_violate_nothing_stay():
    assert leave_out(WORKLOAD, {}) == (WORKLOAD, ())
    assert leave_out(WORKLOAD, {4: {}, 5: {("1",): "no"}}) == (WORKLOAD, ())


def test_some_sets_are_left_out_with_all_their_repetitions():
    found, (counted,) = leave_out(WORKLOAD, {4: {("1",): "it violates k"}})
    assert found.statements[0].sets == (("2",), ("3",))
    assert counted.what == "2 of 4 sets of values of DELETE FROM t WHERE id = $1"
    assert "it violates k" in counted.lost


def test_a_statement_without_any_set_is_missing_with_its_share():
    found, counted = leave_out(WORKLOAD, {4: dict.fromkeys(SETS, "it violates k")})
    assert (found.statements, counted) == ((), ())
    (missing,) = found.missing
    assert (missing.template, missing.share) == (4, 0.25) and "it violates k" in missing.reason


def test_values_that_find_fewer_rows_than_on_the_server_are_noticed():
    one = replace(DELETE, rows=1.0)
    assert finds_too_few(one, {("1",): 0, ("2",): 0, ("3",): 1})
    assert not finds_too_few(one, {("1",): 1, ("2",): 0})
    assert not finds_too_few(replace(one, rows=0.1), {("1",): 0, ("2",): 1})
    assert not finds_too_few(one, {}) and not finds_too_few(DELETE, {("1",): 0})
    assert not finds_too_few(
        replace(one, sql="INSERT INTO t VALUES ($1) ON CONFLICT DO NOTHING"), {("1",): 0}
    )


def test_values_of_the_copys_rows_take_their_place():
    one = replace(DELETE, rows=1.0)
    found = with_matching(one, {("1",): 0, ("2",): 1}, [("7",), ("8",)])
    assert (found.sets, found.origin) == ((("2",), ("7",), ("8",)), "rows")
    assert with_matching(one, {("1",): 0}, []) is None
    some = with_matching(replace(one, rows=0.5), {("1",): 0, ("2",): 0, ("3",): 0}, [("7",), ("8",)])
    assert some.sets == (("7",), ("8",), ("1",), ("2",))  # half of the calls find none


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


GONE = ServerCrash("the copy's server went away")


@pytest.fixture
def copied(tmp_path):
    """Return a copy whose server has a folder and a log, and no process."""
    server = EmbeddedServer({})
    server._folder = tmp_path
    found = CopiedDatabase("dbname=x", None, None)
    found._server = server
    return found


def test_the_servers_log_tells_that_the_disk_is_full(copied, tmp_path):
    (tmp_path / "server.log").write_text("PANIC:  could not write to file: No space left on device\n")
    with pytest.raises(SetupError, match=r"the disk of the copy's server became full: .* are left in"):
        copied.check_disk(GONE)
    with pytest.raises(SetupError, match="set UNCORK_SERVERS"), copied:
        raise GONE
    assert not tmp_path.exists()


def test_other_ends_and_what_says_so_already_are_left_alone(copied, tmp_path):
    (tmp_path / "server.log").write_text("LOG:  database system is ready to accept connections\n")
    copied.check_disk(GONE)
    (tmp_path / "server.log").write_text("ERROR:  could not extend file: No space left on device\n")
    copied.check_disk(SetupError("the disk of the copy's server became full while rows were copied"))
