"""Variants on several engines: what a file may say, and what the runner does with it."""

from __future__ import annotations

import pytest

from fakes.goldens import compare_mistakes
from fakes.ports import MILLISECOND
from uncork.errors import SetupError, SpecError
from uncork.experiment.plan.order import cells
from uncork.experiment.plan.placement import Placements
from uncork.experiment.plan.skip_rules import NOT_HERE
from uncork.experiment.run.events import Finished, Skipped
from uncork.experiment.run.request import trial_request
from uncork.experiment.spec.schema import parse_spec
from uncork.model.server import Target
from uncork.model.trial import Arm, Trial
from uncork.model.verdict import Verdict
from unit.experiment.test_runner import FIND, Attempt

FILE = (
    """
[experiment]
name = "stores"
question = "Row or column?"

[variants.row]
baseline = true

[variants.column]
engine = "duckdb"
settings = { threads = 1 }
setup.sql = "CREATE TABLE item AS SELECT * FROM range(:rows) AS r(id)"
workloads.find.sql = "FROM item WHERE id = :id"

[factors]
rows = [10]

[setup]
sql = "CREATE TABLE item (id integer)"
"""
    + FIND
    + """
[stop]
blocks = 2
"""
)


def parse(text=FILE, files=None):
    return parse_spec(text, file="case.toml", read=(files or {}).__getitem__, overrides={})


def test_a_variant_may_have_an_engine_with_set_up_and_sql_of_its_own():
    spec = parse()
    (cell,) = cells(spec)
    assert spec.engines == ("postgresql", "duckdb")
    assert [spec.engine(name) for name in spec.variants] == ["postgresql", "duckdb"]
    assert Placements(spec).script(cell, "row") == "CREATE TABLE item (id integer)"
    assert Placements(spec).script(cell, "column") == "CREATE TABLE item AS SELECT * FROM range(10) AS r(id)"
    request = trial_request(spec, Trial(1, 1, 0, cell, "find", Arm("column")), Target("x", {}), {})
    assert [one.sql for one in request.statements] == ["FROM item WHERE id = $1"]
    assert request.numbers == {0}, "generated numbers are numbers for a driver"


def test_own_sql_may_stand_in_files():
    text = FILE.replace(
        'setup.sql = "CREATE TABLE item AS SELECT * FROM range(:rows) AS r(id)"', 'setup.file = "duck.sql"'
    ).replace('workloads.find.sql = "FROM item WHERE id = :id"', 'workloads.find.file = "find.sql"')
    files = {"duck.sql": "CREATE TABLE duck (id integer)", "find.sql": "FROM duck WHERE id = :id"}
    spec = parse(text, files)
    assert spec.setup_sql("column") == files["duck.sql"]
    assert spec.statements("find", "column") == (files["find.sql"],)


def test_an_experiment_may_name_the_engine_of_all():
    text = FILE.replace('question = "', 'engine = "sqlite"\nquestion = "')
    assert parse(text).engines == ("sqlite", "duckdb")


def test_variants_share_data_only_on_the_same_engine():
    text = FILE.replace("[variants.column]", '[variants.other]\nengine = "sqlite"\n[variants.column]')
    spec = parse(text.replace('integer)"\n', 'integer)"\nshared = true\n', 1))
    placements, (cell,) = Placements(spec), cells(spec)
    assert placements.of(cell, Arm("other")) == (cell, Arm("other"))
    assert placements.of(cell, Arm("row", again=True)) == (cell, Arm("row"))


def test_what_an_engine_cannot_do_is_refused_with_its_place():
    compare_mistakes("spec/engines", FILE, parse, 1)


def test_settings_of_a_server_that_no_variant_runs_on_are_refused():
    text = FILE.replace("baseline = true", 'baseline = true\nengine = "sqlite"')
    with pytest.raises(
        SpecError, match=r"server\.settings: has no effect, because no variant runs on postgresql"
    ):
        parse(text + "[server.settings]\nwork_mem = 1\n")


# ---- the runner ----


def attempt(**options):
    return Attempt(parse(), {"row": 2 * MILLISECOND, "column": MILLISECOND}, **options)


def test_an_engine_that_is_not_to_be_had_is_skipped_with_the_reason_everywhere():
    run = attempt()
    run.server.absent["column"] = "DuckDB: its driver duckdb is not installed"
    run.run()
    (skipped,) = [event for event in run.events if isinstance(event, Skipped)]
    assert skipped.reason == f"{NOT_HERE}: DuckDB: its driver duckdb is not installed"
    assert [row[3] for row in run.sink.refusals] == [skipped.reason]
    touched = {arm for name in ("build", "restore", "target") for _, arm in run.server.called(name)}
    assert "column" not in touched
    assert isinstance(run.events[-1], Finished)
    assert [one.engine for one in run.sink.overheads] == ["postgresql"]


def test_without_the_baselines_engine_nothing_can_be_compared():
    run = attempt()
    run.server.absent["row"] = "PostgreSQL: it is not there"
    with pytest.raises(SetupError, match="the baseline row cannot be run here: PostgreSQL: it is not there"):
        run.run()


def test_answers_are_compared_across_engines_row_by_row():
    run = attempt()
    run.server.rows = {"row": (("'Asia/Kolkata", "=3"),), "column": (("'Asia/Kolkata", "=4"),)}
    run.run()
    ((_, workload, variant, reason),) = run.sink.refusals
    assert (workload, variant) == ("find", "column")
    assert reason == (
        "wrong answer: the first row that differs in sorted order is row 1: (Asia/Kolkata, 4) where the "
        "baseline gives (Asia/Kolkata, 3) (find, operation 1)"
    )
    assert not run.sink.kept


def test_a_baseline_whose_rows_change_is_named_across_engines():
    run = attempt()
    run.server.rows = {"row": [(("=3",),), (("=4",),)], "column": (("=5",),)}
    run.run()
    ((_, _, _, reason),) = run.sink.refusals
    assert reason.startswith(
        "not comparable: the baseline returns other rows when it is asked again (the fir"
    )
    assert "(4) where it first gave (3)" in reason


def test_the_clients_of_several_engines_are_weighed_by_a_statement_that_does_nothing():
    run = attempt()
    run.run()
    assert {one.engine for one in run.sink.overheads} == {"duckdb", "postgresql"}
    assert all(one.p50_ns > 0 and one.operations > 0 for one in run.sink.overheads)
    assert run.ledger.judgements()[0].effect is not None


def test_a_single_engine_needs_no_weighing():
    run = Attempt(parse_spec(FILE.replace('engine = "duckdb"', ""), file="x", read=str, overrides={}))
    run.run()
    assert run.sink.overheads == []
    assert run.server.called("answers") == []


def fitted(text=FILE):
    return parse(text.replace("operations = 100\n", ""))


def test_arms_on_postgresql_take_turns_and_the_others_have_trials_beside_them():
    run = Attempt(fitted(), {"row": 2 * MILLISECOND, "column": MILLISECOND}).run()
    assert {len(block.arms) for block in run.load.blocks} == {2}, "the baseline and its second run"
    timed = [request for request in run.load.requests if request.statements[0].name == "find"]
    assert {request.target.database.rpartition("/")[2] for request in timed} == {"column"}
    kept = [(trial.round, trial.block, trial.arm.name) for trial, _ in run.sink.kept]
    assert len(kept) == len(set(kept))
    blocks = {place[:2] for place in kept}
    assert {(*block, arm) for block in blocks for arm in ("row", "row#2", "column")} == set(kept)
    assert run.verdicts()["rows=10", "find", "column"] == Verdict.FASTER


def test_where_the_baseline_is_on_another_engine_no_arm_takes_turns():
    swapped = FILE.replace('engine = "duckdb"', "").replace(
        "baseline = true", 'baseline = true\nengine = "duckdb"'
    )
    run = Attempt(fitted(swapped), {"row": 2 * MILLISECOND, "column": MILLISECOND}).run()
    assert not run.load.blocks
    assert run.load.requests
