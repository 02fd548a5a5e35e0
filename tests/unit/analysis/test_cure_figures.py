"""The metrics of cures, and two cures of one database after each other."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from fakes.answered import read_history
from fakes.cures import grouped_report, healthy_cure, nothing_proven, proven_cure
from fakes.terminals import shown
from uncork.analysis.runs.compared import compared_runs
from uncork.analysis.runs.cure_figures import cure_figures, proven_words
from uncork.model.results.cure import Change, Net, Tried
from uncork.report.runs.history import build_history_document, render_history_terminal
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.schemas import result_schema
from uncork.store.layout import read_manifest, write_manifest
from uncork.workbench.cure.handing import write_cure
from uncork.workbench.documents.run_document import comparison_document
from uncork.workbench.run_record import draft, start_run

INDEX = "CREATE INDEX CONCURRENTLY orders_customer_id_idx ON orders (customer_id);"
SELECT = "select id, total, status from orders where customer_id = $1 order by created_at…"


def second_cure():
    """Return the cure after the index was created: the report is what is left to cure."""
    known = proven_cure()
    setting = Change(
        name="work_mem",
        kind="setting",
        text="Raise work_mem for role reports.",
        sql="ALTER ROLE reports SET work_mem = '64MB';",
        undo="",
        state="cured",
        reason="The workload takes less time.",
        net=Net(246.0, 120.0, 372.0, 983.0),
    )
    return replace(
        known, tried=(Tried(grouped_report(), "cured", "", (setting,), "work_mem"),), chosen=setting
    )


def store(root, result, day, question="cure: ada@db.example:5432/shop"):
    manifest = draft(
        kind="cure", name="cure", question=question, server="s", options={"command": "uncork cure"}
    )
    with start_run(root, manifest) as run:
        write_cure(run.folder, result)
        run.end("complete", "complete", 1)
    started = f"2026-06-{day:02d}T10:00:00+00:00"
    write_manifest(run.folder, replace(read_manifest(run.folder), started_at=started))
    return run.folder


def test_what_a_cure_proves_is_a_metric_of_the_workload_and_of_each_statement():
    found = {one.key: one.value for one in cure_figures(proven_cure())}
    whole = {name: value for (subject, name), value in found.items() if not subject}
    assert whole == {
        "proven changes": 1,
        "saved per hour": 1581e9,
        "workload per hour": 2564e9,
        "workload per hour with the changes": 983e9,
        "workload with the changes": pytest.approx(0.3834, abs=1e-4),
    }
    assert found[SELECT, "mean"] == 68.2e6
    assert found[SELECT, "time with the changes"] == 0.0041
    assert len({subject for subject, _ in found}) == 4
    assert proven_words(proven_cure()) == INDEX


@pytest.mark.parametrize("cure", [nothing_proven, healthy_cure])
def test_a_cure_that_proves_nothing_saves_nothing(cure):
    found = {one.key: one.value for one in cure_figures(cure())}
    assert found == {("", "proven changes"): 0, ("", "saved per hour"): 0.0}
    assert proven_words(cure()) == ""


def test_a_change_that_was_not_confirmed_is_no_gain():
    known = proven_cure()
    lost = replace(known, chosen=replace(known.chosen, state="unclear"))
    assert [one.value for one in cure_figures(lost)] == [0, 0.0]
    assert proven_words(lost) == ""


def test_two_cures_of_a_database_are_followed(tmp_path):
    first, second = store(tmp_path, proven_cure(), 1), store(tmp_path, second_cure(), 8)
    third = store(tmp_path, nothing_proven(), 15)
    store(tmp_path, proven_cure(), 9, "cure: ada@db.example:5432/other")
    found = read_history(tmp_path, "saved per hour", like=third.name)
    assert [(one.id, one.value) for one in found.runs] == [
        (first.name, 1581e9),
        (second.name, 246e9),
        (third.name, 0.0),
    ]
    assert [one.note for one in found.runs] == [INDEX, "ALTER ROLE reports SET work_mem = '64MB';", ""]
    jsonschema.validate(json.loads(json_text(found)), result_schema("history"))
    text = " ".join(shown(render_history_terminal, found, width=160).split())
    assert "proven" in text and INDEX in text and "26 min" in text
    assert f"`{INDEX}`" in markdown_text(build_history_document(found))
    cost = read_history(tmp_path, "workload per hour", like=second.name)
    assert [one.value for one in cost.runs] == [2564e9, 983e9]
    statement = read_history(tmp_path, "time with the changes", subject="where customer_id", like=first.name)
    assert [one.value for one in statement.runs] == [0.0041]


def test_a_comparison_of_cures_says_how_to_judge_an_applied_change(tmp_path):
    first, second = store(tmp_path, proven_cure(), 1), store(tmp_path, second_cure(), 8)
    before, folders = compared_runs(tmp_path, [second.name], first.name)
    text = markdown_text(comparison_document(tmp_path, before, folders, practical=0.03).document)
    assert "workload per hour" in text
    assert "to judge an applied change, watch the server again" in " ".join(text.split())
