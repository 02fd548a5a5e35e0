"""Experiments from the request to the stored run."""

import json
import os
import random
from datetime import UTC, datetime
from math import exp
from pathlib import Path

import jsonschema
import pytest

from fakes.answered import compare_runs
from fakes.goldens import compare_answers
from fakes.ports import measured
from fakes.runners import experiment
from uncork.analysis.runs.figures import run_figures
from uncork.cli.console import forecast_words
from uncork.errors import RunError, StoreError, UsageError
from uncork.experiment.plan.forecast import ASSUMED, TYPICAL, Limits, Seen, WorkloadForecast
from uncork.experiment.plan.order import plan_document
from uncork.experiment.run.sent_sql import sent_sql
from uncork.model.block import Slice
from uncork.model.request import LoadRequest, Statement
from uncork.model.server import Target
from uncork.model.stored_run import RunHost
from uncork.model.trial import Cell
from uncork.model.variant_evidence import Sampling
from uncork.report.runs.imported import build_import_document
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.schemas import result_schema
from uncork.requests.source import Options, made_source, starter, text_source
from uncork.stats.power import Costs
from uncork.store.layout import read_manifest
from uncork.workbench.experiment import evidence_collection as trial_evidence
from uncork.workbench.experiment.checking import cells_seen, plan_with_forecast, sql_problems
from uncork.workbench.experiment.joining import host_numbers
from uncork.workbench.experiment.resolution import (
    MINUTES,
    StatementResolution,
    cycle_ratios,
    resolution_sentence,
    resolve_statement,
)
from uncork.workbench.profile.imports import Labels, import_results
from uncork.workbench.profile.stack_recording import Recorded

GOOD = '''\
[experiment]
name = "orders"
question = "Which index?"

[variants.none]
baseline = true
values = { index = "" }

[variants.btree]
values = { index = "CREATE INDEX ON orders (customer);" }

[factors]
rows = [100, 1000]

[setup]
sql = """
CREATE TABLE orders (id int, customer int);
INSERT INTO orders SELECT n, n % 10 FROM generate_series(1, :rows) AS n;
:index
"""

[workloads.find]
sql = "SELECT id FROM orders WHERE customer = :customer"
check = "SELECT count(*) FROM orders"
parameters.customer = { query = "SELECT customer FROM orders" }
'''
SELECT = 'sql = "SELECT id FROM orders WHERE customer = :customer"'


def problems(text, files=None):
    spec = made_source(text, files or {}, Options(), "folder/case.toml").spec
    return [one.text("folder/case.toml", text) for one in sql_problems(spec, "folder/case.toml", text)]


def problem(old, new, files=None):
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    (found,) = problems(text, files)
    return found


@pytest.mark.parametrize("text", [GOOD, starter("experiment"), starter("doctor"), starter("resolution")])
def test_valid_experiments_have_no_problems(text):
    assert problems(text) == []


def test_cases_and_examples_have_no_problems():
    root = Path(__file__).parents[3]
    for path in [*root.glob("python/uncork/cases/*/case.toml"), *root.glob("examples/*/*.toml")]:
        files = {one.name: one.read_text() for one in path.parent.glob("*.sql")}
        files |= {str(one.relative_to(path.parent)): one.read_text() for one in path.parent.glob("*/*.sql")}
        if "[time_zones" not in path.read_text() and "acknowledged" not in path.name:
            assert problems(path.read_text(), files) == [], path


def test_a_mistake_in_the_set_up_has_its_own_line_and_is_reported_once():
    found = problem("INSERT INTO", "INSRT INTO")
    assert found == (
        'folder/case.toml:18: setup.sql: syntax error at or near "INSRT": INSRT INTO orders SELECT n, n % 10 '
        "FROM generate_series(1, 100) AS n; correct the SQL of variant none"
    )


def test_a_mistake_in_a_variants_value_is_placed_there():
    assert problem("CREATE INDEX ON", "CREATE INDX ON") == (
        'folder/case.toml:10: variants.btree.values.index: syntax error at or near "INDX": CREATE INDX '
        "ON orders (customer); correct the SQL of variant btree"
    )


def test_a_mistake_in_a_file_has_the_files_name_and_line():
    files = {"find.sql": "SELECT id\n  FROM orders\n WERE customer = :customer\n"}
    assert problem(SELECT, 'file = "find.sql"', files) == (
        'folder/find.sql:3: workloads.find.sql: syntax error at or near "customer": WERE customer = '
        ":customer; correct the SQL"
    )


def test_what_a_run_would_refuse_is_told_with_its_remedy():
    compare_answers("spec/statements", lambda change: problem(*change.split("\n=> ")))


def test_other_engines_have_their_own_sql():
    text = GOOD.replace('question = "Which index?"', 'question = "?"\nengine = "sqlite"')
    assert problems(text.replace("SELECT id", "SELEC id")) == []


def test_one_level_at_a_time_is_sent_so_that_many_cells_take_no_time():
    factors = "".join(f"{name} = {list(range(5))}\n" for name in "abcd")
    text = GOOD.replace("rows = [100, 1000]", "rows = [1]\n" + factors).replace(
        ":index\n", "SELECT :a, :b, :c, :d;\n"
    )
    spec = made_source(text.replace("values = { index", "#"), {}, Options(), "f").spec
    assert len([one for one in sent_sql(spec) if one.key == ("setup", "sql")]) == 1 + 4 * 4


READ = """
[workloads.find]
sql = "SELECT 1"
state = "keep"
"""
SPEC = experiment(READ, stop="budget = '60s'")


def rows(block, between, rounds=30, blocks=4):
    lot, found = random.Random(3), []
    for number in range(1, rounds + 1):
        moved = lot.gauss(0, between)
        for one in range(1, blocks + 1):
            for variant, again in (("base", False), ("base", True), ("new", False)):
                value = exp(moved + lot.gauss(0, block)) if variant == "new" else 1.0
                place = {"round": number, "block": one, "cell": "all", "workload": "find"}
                arm = {"variant": variant, "again": again, "value": value, "elapsed_ns": 400_000_000}
                found.append(place | arm)
    return found


TIMES = [
    {"cell": "all", "workload": "find", "variant": name, "round": 1, "mean_ns": mean}
    for name, mean in (("base", 2e5), ("new", 3e5))
]


def test_scatter_and_times_come_from_the_stored_trials():
    (seen,) = cells_seen(SPEC, rows(0.05, 0.04), TIMES)["find"]
    assert seen.operation_ns == (2e5, 2e5, 3e5)
    assert seen.std_dev.round == pytest.approx(0.04, rel=0.4)
    # A block of 20 cycles that scatters by 5 %: cycles of 10 % explain 2.2 % of it.
    assert seen.std_dev.cycle == pytest.approx(0.1)
    assert seen.std_dev.block == pytest.approx((0.05**2 - 0.1**2 / 20) ** 0.5, rel=0.25)


def test_a_run_of_two_rounds_shows_nothing():
    assert cells_seen(SPEC, rows(0.05, 0.04, rounds=2), TIMES) == {}


def test_without_an_earlier_run_the_plan_names_the_typical_values(tmp_path):
    text = (
        '[experiment]\nname = "x"\nquestion = "?"\n[variants.a]\nbaseline = true\n[variants.b]\n'
        f'[setup]\nsql = "SELECT 1"\n{READ}'
    )
    source = text_source(text, Options(), file="x.toml", folder=tmp_path)
    document = plan_with_forecast(tmp_path / "runs", source)
    assert document.basis == ASSUMED
    assert "10% between cycles, 1% between blocks and 1.5% between rounds" in ASSUMED


def test_a_plan_of_turns_counts_the_blocks_and_the_time_that_the_budget_holds():
    document = plan_document(SPEC)
    (one,) = document.forecasts
    assert document.blocks_a_round == one.blocks
    assert document.trials_a_round == 3 * one.blocks
    assert one.rounds * document.round_ns == pytest.approx(58e9, rel=0.01), "two seconds are for the report"
    assert document.worst_ns == 60 * 10**9
    assert document.least_ns == 3 * 2 * 20_000_000


@pytest.mark.parametrize(("half_width", "needed_ns", "words"), [
    (0.021, 45e9, "±2.1% in 60.0 s; ±3.0% takes about 45.0 s (--budget)"),
    (None, 90e9, "no interval in 60.0 s: enough for only 8 rounds; ±3.0% takes about 90.0 s (--budget)"),
    (0.04, None, "±4.0% in 60.0 s; ±3.0% would take more than a day"),
])  # fmt: skip
def test_a_forecast_in_words(half_width, needed_ns, words):
    one = WorkloadForecast("find", 8, 7.5e9, 4, 28, 21e6, half_width, 0.03, needed_ns)
    assert forecast_words(one, 60 * 10**9) == words


def test_a_plan_knows_the_set_up_of_the_earlier_run():
    seen = {"find": [Seen((1e6,) * 3, TYPICAL)]}
    known, unknown = plan_document(SPEC, seen, "run a", 45 * 10**9), plan_document(SPEC, seen, "run a")
    assert (known.setup_ns, unknown.setup_ns) == (45 * 10**9, None)
    assert known.forecasts[0].rounds < unknown.forecasts[0].rounds
    assert known.forecasts[0].needed_ns == unknown.forecasts[0].needed_ns + 45e9


LIMITS = Limits(pairs=1, minimum_rounds=5, maximum_rounds=40, confidence=0.95)
COSTS = Costs(cycle_ns=63e6, block_ns=30e6, round_ns=300e6)


def ratios(cycle, between, rounds=8, seed=1):
    lot = random.Random(seed)
    found = []
    for _ in range(rounds):
        centre = lot.gauss(0, between)
        found.append([[centre + lot.gauss(0, cycle) for _ in range(8)] for _ in range(2)])
    return found


def resolved(*widths):
    return StatementResolution("short", "a row", 2e4, 0.1, 0.01, 0.015, widths, "cycles differ")


def slice_of(arm, cycle, mean_ns, succeeded=10):
    return Slice(arm, cycle, 0, 10, succeeded, succeeded, int(mean_ns * succeeded), None)


def test_a_cycle_s_ratio_is_the_third_arm_against_the_mean_of_the_first_two():
    slices = [slice_of(arm, 0, mean) for arm, mean in ((2, 2000), (0, 1000), (1, 1000))]
    slices += [slice_of(0, 1, 1000), slice_of(1, 1, 4000), slice_of(2, 1, 0, succeeded=0)]
    assert cycle_ratios(slices) == [pytest.approx(0.6931, abs=1e-4)], "a cycle without all arms has none"


def test_more_minutes_resolve_smaller_differences():
    found = resolve_statement("short", "a row", 2e4, ratios(0.1, 0.01), COSTS, LIMITS)
    one, five, thirty = found.half_widths
    assert one > five > thirty > 0.0
    assert 0.01 < one < 0.06
    assert found.cycle == pytest.approx(0.1, rel=0.2)


def test_what_differs_between_rounds_bounds_what_time_can_buy():
    steady = resolve_statement("short", "a row", 2e4, ratios(0.1, 0.0), COSTS, LIMITS)
    moving = resolve_statement("short", "a row", 2e4, ratios(0.1, 0.1), COSTS, LIMITS)
    assert moving.half_widths[-1] > 3 * steady.half_widths[-1]
    assert "between rounds: more rounds" in moving.reason


def test_a_server_that_restarts_slowly_has_no_interval_in_a_minute():
    slow = Costs(cycle_ns=63e6, block_ns=30e6, round_ns=25e9)
    found = resolve_statement("short", "a row", 2e4, ratios(0.1, 0.01), slow, LIMITS)
    assert found.half_widths[0] is None
    assert found.half_widths[-1] is not None
    sentence = resolution_sentence([found], load=0.1, processors=2)
    assert "in 1 minute" not in sentence
    assert "in 30 minutes here" in sentence


def test_a_block_without_a_cycle_is_an_error_that_says_what_to_do():
    with pytest.raises(RunError, match="increase --budget"):
        resolve_statement("short", "a row", 2e4, [[[0.1], []]], COSTS, LIMITS)


def test_the_sentence_takes_the_statement_that_is_harder_to_resolve():
    statements = [resolved(0.021, 0.01, 0.006), resolved(0.034, 0.015, 0.005)]
    assert len(MINUTES) == 3
    assert resolution_sentence(statements, load=0.2, processors=2) == (
        "One comparison cannot detect differences below 3.4% in 1 minute, or below 0.6% in 30 minutes here. "
        "More comparisons share the time."
    )


def test_other_programs_are_named_if_they_were_busy():
    sentence = resolution_sentence([resolved(0.1, 0.1, 0.1)], load=3.2, processors=2)
    assert sentence.endswith(
        "Other programs were busy when this began (load 3.2 on 2 processors): a quieter machine resolves "
        "smaller differences."
    )


class Load:
    def run(self, request):
        return measured(1_000_000)


def request(**changes):
    connection = {"host": "/nowhere", "port": 1, "user": "u", "database": "d"}
    target = Target("d", connection, **changes)
    return LoadRequest(
        target, (Statement("s", "SELECT 1", ()),), ((),), False, 1, 1, "prepared", 0, 1, None, 10**9
    )


def gather(folder, what, asked):
    place = (Cell(()), "w", "v")
    return trial_evidence.LocalEvidence(folder).gather(place, (what,), asked, Load(), Sampling(1, 0))


def test_an_interrupted_recording_interrupts_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_evidence, "record_stacks", lambda wanted: Recorded("interrupted", {}, {}, ""))
    with pytest.raises(KeyboardInterrupt):
        gather(tmp_path, "stacks", request())
    assert not list(tmp_path.iterdir())


def test_an_engine_whose_processes_are_not_known_is_told_in_a_line(tmp_path):
    lack = gather(tmp_path, "cpu", request(engine="duckdb"))
    assert lack == "uncork cannot sample the processes of duckdb yet"


def test_runs_of_one_machine_or_name_share_a_host():
    hosts = [RunHost("a", 1), RunHost("b", 2), RunHost("container", 1), RunHost("a", 9), RunHost("c", 0)]
    assert host_numbers([*hosts, RunHost("d", 0)]) == [1, 2, 1, 1, 3, 4]


RESULTS = Path(__file__).parents[2] / "fixtures" / "results"
AT = datetime(2026, 5, 31, 8, 30, tzinfo=UTC)


def import_result(root, path, **labels):
    (done,) = import_results(root, path, Labels(**labels))
    return done


def test_an_imported_result_is_a_run_of_its_time(tmp_path):
    done = import_result(tmp_path, RESULTS / "wrk.txt", name="Check out", at=AT, commit="abc")
    manifest = read_manifest(done.folder)
    assert done.folder.name == "import-check-out-20260531-083000"
    assert (manifest.kind, manifest.started_at, manifest.commit) == (
        "import",
        "2026-05-31T08:30:00+00:00",
        "abc",
    )
    run = run_figures(done.folder)
    assert run.figures == done.result.figures
    assert run.asked["series"] == "Check out"


def test_every_result_comes_back_as_it_went_in(tmp_path):
    for path in sorted(RESULTS.glob("*.*")):
        if path.suffix != ".md":
            done = import_result(tmp_path, path)
            assert run_figures(done.folder).figures == done.result.figures, path.name


def test_the_same_result_is_not_imported_twice(tmp_path):
    first = import_result(tmp_path, RESULTS / "wrk.txt", at=AT)
    again = import_result(tmp_path, RESULTS / "wrk.txt", at=AT)
    assert (first.before, again.before) == (False, True)
    assert again.folder == first.folder
    assert not import_result(tmp_path, RESULTS / "wrk.txt", at=AT, name="other").before


def test_a_file_that_tells_no_time_has_that_of_its_last_change(tmp_path):
    path = tmp_path / "wrk.txt"
    path.write_text((RESULTS / "wrk.txt").read_text())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    done = import_result(tmp_path / "runs", path)
    assert done.guessed
    assert done.started_at == "2023-11-14T22:13:20+00:00"
    assert not import_result(tmp_path / "runs", RESULTS / "pgbench-rate.log").guessed


def test_six_imported_results_make_like_runs(tmp_path):
    text = (RESULTS / "wrk.txt").read_text()
    folders = []
    for number, rate in enumerate((44078, 43000, 45100, 44500, 43700, 44900, 43900, 22000)):
        path = tmp_path / f"{number}.txt"
        path.write_text(text.replace("Requests/sec:  44078.17", f"Requests/sec:  {rate}"))
        when = AT.replace(hour=number)
        folders.append(import_result(tmp_path / "runs", path, name="shop", at=when).folder)
    (pair,) = compare_runs(tmp_path / "runs", folders[0], [folders[-1]]).pairs
    found = {one.name: one for one in pair.figures}
    assert found["throughput"].verdict.value == "slower"
    assert found["throughput"].like_runs == 6


def test_every_form_of_an_imported_result(tmp_path):
    run = run_figures(import_result(tmp_path, RESULTS / "hyperfine.json", at=AT).folder)
    jsonschema.validate(json.loads(json_text(run)), result_schema("run-figures"))
    assert "sleep 0.02" in html_page(build_import_document(run))
    assert "sleep 0.02" in markdown_text(build_import_document(run))


def test_figures_that_are_gone_are_told(tmp_path):
    done = import_result(tmp_path, RESULTS / "wrk.txt", at=AT)
    for path in (done.folder / "figures").iterdir():
        path.unlink()
    with pytest.raises(StoreError, match="has no metrics"):
        run_figures(done.folder)


def test_what_cannot_be_read_leaves_nothing_behind(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for wrong in ("nowhere", "binary", "."):
        with pytest.raises(UsageError):
            import_result(tmp_path / "runs", tmp_path / wrong)
    assert not (tmp_path / "runs").exists()
