import json
import tomllib

import pytest

from uncork import cases
from uncork.analysis.experiment.published import WORDS
from uncork.errors import SpecError, UsageError
from uncork.experiment.plan.order import cells
from uncork.requests.source import (
    Options,
    case_source,
    file_source,
    published_figures,
    run_source,
    starter,
)
from uncork.store.layout import Manifest, stored_file, write_manifest
from uncork.store.query import RunReader

CHANGED = Options(
    levels={"rows": ["10000"]}, workloads=("newest",), budget_ns=60 * 10**9, precision=0.05, seed=9
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(starter("experiment"))
    return path


# ---- options ----


@pytest.mark.parametrize("options", [Options(), CHANGED])
def test_options_go_through_the_manifest_unchanged(options):
    assert Options.of(json.loads(json.dumps(options.stored()))) == options


def test_options_of_an_older_manifest_are_as_written():
    assert Options.of({}) == Options()


@pytest.mark.parametrize(("options", "rows", "workloads", "figures"), [
    (Options(), {"10000": "10000", "100000": "100000"}, ["newest", "insert"], (120 * 10**9, 0.03, 1)),
    (CHANGED, {"10000": "10000"}, ["newest"], (60 * 10**9, 0.05, 9)),
    (Options(seed=0), {"10000": "10000", "100000": "100000"}, ["newest", "insert"], (120 * 10**9, 0.03, 0)),
])  # fmt: skip
def test_options_change_what_they_name_and_nothing_else(file, options, rows, workloads, figures):
    spec = file_source(file, options).spec
    assert (spec.levels("rows"), list(spec.workloads)) == (rows, workloads)
    assert (spec.stop.budget, spec.stop.precision, spec.experiment.seed) == figures


def test_a_part_of_a_case_keeps_variants_beside_the_baseline_and_counts_operations_anew(file):
    counted = "[workloads.insert]\noperations = 100"
    file.write_text(file.read_text().replace("[workloads.insert]", counted))
    whole = file_source(file, Options()).spec
    (baseline,) = [name for name, variant in whole.variants.items() if variant.baseline]
    other = [name for name in whole.variants if name != baseline][-1]
    options = Options(variants=(other,), operations=7)
    assert Options.of(json.loads(json.dumps(options.stored()))) == options
    spec = file_source(file, options).spec
    assert list(spec.variants) == [baseline, other]
    counted = {name: facts.operations for name, facts in spec.workloads.items()}
    assert counted == {name: facts.operations and 7 for name, facts in whole.workloads.items()}
    assert 7 in counted.values()


@pytest.mark.parametrize(("options", "message"), [
    (Options(variants=("brinx",)), r'there is no variant "brinx"; did you mean "brin"\?'),
    (Options(workloads=("newst",)), r'there is no workload "newst"; did you mean "newest"\?'),
])  # fmt: skip
def test_unknown_names_are_refused_with_the_nearest(file, options, message):
    with pytest.raises(SpecError, match=message):
        file_source(file, options)


def test_variants_that_no_chosen_workload_compares_are_left_out(file):
    text = file.read_text().replace("[workloads.newest]", '[workloads.newest]\nvariants = ["brin"]', 1)
    file.write_text(text)
    whole, part = (file_source(file, Options(workloads=chosen)).spec for chosen in ((), ("newest",)))
    assert list(whole.variants) == ["none", "btree", "brin"]
    assert list(part.variants) == ["none", "brin"]


def test_services_are_left_out_where_no_request_by_http_is_left(file):
    text = file.read_text().replace("[setup]", '[services.api]\ncommand = ["api"]\n[setup]', 1)
    text += '[workloads.ask]\noperations = 9\nhttp = { requests = ["/"] }\n'
    file.write_text(text)
    whole, part = (file_source(file, Options(workloads=chosen)).spec for chosen in ((), ("newest",)))
    assert list(whole.services) == ["api"]
    assert part.services == {}


def test_a_budget_that_holds_not_one_block_is_refused(file):
    fixed = '[workloads.newest]\nduration = "100ms"'
    file.write_text(file.read_text().replace("[workloads.newest]", fixed))
    with pytest.raises(SpecError, match=r"stop\.budget: 400 ms is too short for one block: .* ms;"):
        file_source(file, Options(budget_ns=400_000_000))


# ---- files ----


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*nothing\.toml: No such file or directory"):
        file_source(tmp_path / "nothing.toml", Options())
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"binary\.toml is not UTF-8 text: .* at byte 0"):
        file_source(tmp_path / "binary.toml", Options())


def test_problems_name_the_file_as_it_was_given(file):
    file.write_text(file.read_text().replace("precision", "precison"))
    with pytest.raises(SpecError) as raised:
        file_source(file, Options())
    assert str(raised.value).startswith(f"{file}:")


def test_sql_beside_the_file_is_kept_with_it():
    source = case_source("cluster-names", Options(), full=False)
    assert sorted(source.files) == [
        "queries/delete.sql",
        "queries/insert.sql",
        "queries/select.sql",
        "schema.sql",
    ]
    assert source.spec.workloads["select"].statements == (source.files["queries/select.sql"],)


def test_on_a_server_that_is_not_ours_its_settings_are_left_out():
    source = case_source("cluster-names", Options(), full=False)
    assert source.spec.server.settings
    assert source.without_server_settings().spec.server.settings == {}


# ---- cases ----


def test_a_case_by_default_is_its_quick_part():
    source = case_source("cluster-names", Options(), full=False)
    assert list(source.spec.levels("rows")) == ["10000", "50000"]
    assert list(source.spec.levels("index")) == ["none", "cluster"]
    assert list(source.spec.workloads) == ["select"]
    assert source.spec.stop.budget == 100 * 10**9
    assert source.case == "cluster-names"


def test_a_case_in_full_is_its_whole_matrix():
    spec = case_source("cluster-names", Options(), full=True).spec
    assert len(cells(spec)) * len(spec.workloads) * len(spec.variants) == 120
    assert spec.stop.budget == 25 * 60 * 10**9


def test_the_command_line_goes_over_a_cases_quick_part():
    changes = Options(levels={"rows": ["100", "1000"]}, workloads=("delete",), budget_ns=10**10, seed=3)
    spec = case_source("cluster-names", changes, full=False).spec
    assert list(spec.levels("rows")) == ["100", "1000"]
    assert list(spec.workloads) == ["delete"]
    assert (spec.stop.budget, spec.experiment.seed) == (10**10, 3)


def test_a_factor_that_the_command_line_leaves_alone_stays_as_the_quick_part_has_it():
    changes = Options(levels={"index": ["none"]})
    source = case_source("cluster-names", changes, full=False)
    assert [cell.name for cell in cells(source.spec)] == ["rows=10000,index=none", "rows=50000,index=none"]
    assert source.options.stored()["levels"] == {"rows": ["10000", "50000"], "index": ["none"]}


def test_an_unknown_case_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r'no case "cluster-name"; did you mean "cluster-names"\?'):
        case_source("cluster-name", Options(), full=False)


# ---- stored runs ----


def stored_run(folder, source):
    manifest = Manifest(
        id=folder.name, name=source.spec.experiment.name, question=source.spec.experiment.question,
        status="complete", started_at="2026-03-01T10:15:00+00:00", seed=source.spec.experiment.seed,
        unit="round", server="embedded", uncork_version="0.1.0", case=source.case,
        options=source.options.stored(),
    )  # fmt: skip
    folder.mkdir()
    write_manifest(folder, manifest)
    (folder / "experiment.toml").write_text(source.text)
    (folder / "files").mkdir()
    for name, text in source.files.items():
        stored_file(folder, name).write_text(text)
    return RunReader(folder)


def test_a_stored_run_is_the_experiment_that_was_run(tmp_path):
    source = case_source("cluster-names", Options(levels={"rows": ["100"]}, seed=4), full=False)
    again = run_source(stored_run(tmp_path / "run", source))
    assert again.spec == source.spec
    assert (again.text, again.files, again.case) == (source.text, source.files, "cluster-names")


def test_a_stored_run_goes_on_with_another_budget_precision_or_seed_but_the_same_cells(tmp_path):
    source = case_source("cluster-names", Options(precision=0.02), full=False)
    reader = stored_run(tmp_path / "run", source)
    spec = run_source(reader, Options(levels={"rows": ["100"]}, budget_ns=10**11, seed=0)).spec
    assert list(spec.levels("rows")) == ["10000", "50000"]
    assert (spec.stop.budget, spec.stop.precision, spec.experiment.seed) == (10**11, 0.02, 0)


# ---- published figures ----


@pytest.mark.parametrize(("cell", "workload", "variant", "ratio"), [
    ("rows=100000,index=none", "select", "uuid", 0.8056),
    ("rows=100000,index=none", "delete", "uuid", 0.8669),
    ("rows=50000,index=none", "select", "varchar", 1.0378),
    ("rows=50000,index=cluster", "select", "uuid", 0.9937),
])  # fmt: skip
def test_published_figures_give_the_published_ratios(cell, workload, variant, ratio):
    figures, source = published_figures("cluster-names")
    assert source.startswith("A talk by the Red Hat Insights team")
    found = figures[cell, workload, variant] / figures[cell, workload, "char"]
    assert found == pytest.approx(ratio, abs=1e-4)


@pytest.mark.parametrize("case", cases.names())
def test_published_figures_are_of_cells_workloads_and_variants_that_exist(case):
    spec = case_source(case, Options(), full=True).spec
    figures, _ = published_figures(case)
    data = tomllib.loads((cases.path(case) / "expected.toml").read_text())
    places = set(figures)
    for entry in data.get("figures", ()):
        cell = ",".join(f"{factor}={level}" for factor, level in entry.get("cell", {}).items())
        places |= {(cell, entry["workload"], variant) for variant in entry.get("variants", ())}
        assert entry.get("cost") in {None, *WORDS}
    assert places
    for place in places:
        for name, known in zip(
            place, ([one.name for one in cells(spec)], spec.workloads, spec.variants), strict=True
        ):
            assert name in known


def test_other_experiments_have_no_published_figures():
    assert published_figures(None) == ({}, None)
    assert published_figures("not a case") == ({}, None)
