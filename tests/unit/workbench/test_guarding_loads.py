"""Stored loads judged against their history, without measuring: what is broken, kept, and not known."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.load_results import CLOSED_SPEC, ENVIRONMENT, OPEN_SPEC
from fakes.stored_loads import store_load
from uncork.analysis.runs.figures import remembered_figures
from uncork.errors import SetupError, UsageError
from uncork.experiment.guard.sides import parse_side
from uncork.model.load import LoadScript
from uncork.model.results.guard import GateOutcome
from uncork.requests.guard import GuardRequest
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options
from uncork.store.catalogue import set_tag, tags_of
from uncork.store.layout import name_run, read_manifest
from uncork.workbench.guard.guards import guard_load
from uncork.workbench.guard.store import read_guard

USUAL = (1.01, 0.99, 1.02, 0.98, 1.0, 1.015, 0.99, 1.0)
KEPT, BROKEN, UNDECIDED = GateOutcome.KEPT, GateOutcome.BROKEN, GateOutcome.UNDECIDED


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """Eight like loads, an hour apart, with their figures remembered."""
    root = tmp_path_factory.mktemp("usual") / "runs"
    for folder in store(root, *USUAL):
        remembered_figures(folder)
    return root


@pytest.fixture
def root(usual, tmp_path):
    """A store of its own with the eight."""
    return shutil.copytree(usual, tmp_path / "runs")


@pytest.fixture
def empty(tmp_path):
    return tmp_path / "empty"


def store(root, *slower, start=0, **options):
    return [store_load(root, start + n, one, **options) for n, one in enumerate(slower)]


def wanted(target, *gates, baseline=(), candidate=(), **options):
    asked = {"stored": True, "words": ("uncork", "guard", str(target)), **options}
    sides = parse_side("baseline", baseline), parse_side("candidate", candidate)
    return GuardRequest(str(target), *sides, gates, **asked)


def guard(root, target, *gates, **options):
    return guard_load(root, wanted(target, *gates, **options), lambda _: None)


def outcomes(result):
    return {check.gate.metric: check.outcome for check in result.checks}


def test_a_load_like_those_before_keeps_its_gates(root):
    store(root, 1.0, start=8)
    result = guard(root, "last", "throughput > -15%", "p50 < +15%", "success >= baseline", "errors < 2%")
    assert [(one.outcome, one.reason) for one in result.checks if one.outcome is not KEPT] == []
    assert (result.status, result.against) == (0, "history")
    assert result.baseline.title == "the median of 8 earlier comparable runs"
    assert result.checks[0].rounds == 8
    assert result.checks[0].baseline == pytest.approx(100, rel=0.03)
    assert [one[1] is None for one in result.checks[0].by_round] == [False] * 8 + [True]


def test_a_slow_one_breaks_them_and_does_not_stand_for_the_past(root):
    *_, slow = store(root, 1.6, start=8)
    result = guard(root, "last", "throughput > -5%", "p50 < +5%", "p50 < 1ms", "success >= baseline")
    assert outcomes(result) == {"throughput": BROKEN, "latency_p50": KEPT, "success": KEPT}
    assert [check.outcome for check in result.checks[:3]] == [BROKEN, BROKEN, KEPT]
    assert (result.status, result.runs) == (3, (slow.name,))
    assert result.checks[0].confirmed is None
    assert tags_of(slow) == ("guard-broken",)
    (usual,) = store(root, 1.0, start=9)
    later = guard(root, usual.name, "throughput > -15%")
    assert later.checks[0].rounds == 8
    assert later.warnings == ("1 comparable run left out: a guard found it broken (--all includes it)",)
    everything = guard(root, usual.name, "throughput > -15%", everything=True)
    assert (everything.checks[0].rounds, everything.warnings) == (9, ())


def test_the_result_is_a_run_of_its_own_and_a_guard_of_it_guards_the_same(root):
    *_, last = store(root, 1.0, start=8)
    result = guard(root, "last", "p50 < +15%")
    folder = root / result.id
    manifest = read_manifest(folder)
    assert (manifest.kind, manifest.status, manifest.options["of"]) == ("guard", "complete", last.name)
    assert manifest.options["command"] == f"uncork guard {last.name}"
    assert read_guard(folder) == result
    assert guard(root, result.id, "p50 < +15%").runs == (last.name,)


def test_only_runs_before_the_stored_one_are_its_past(root):
    folders = store(root, 1.0, *[2.0] * 6, start=8)
    assert guard(root, folders[0].name, "p50 < +15%").status == 0


def test_the_past_begins_with_its_last_change(root):
    store(root, *(2 * one for one in USUAL), 2.0, start=8)
    result = guard(root, "last", "p50 < +20%")
    assert result.status == 0
    assert result.baseline.title == "the median of 8 earlier comparable runs"


def test_a_run_that_is_named_baseline_stands_for_the_past(root):
    store(root, 1.6, start=8)
    chosen = sorted(path.name for path in root.glob("load-*"))[2]
    name_run(root, chosen, "baseline")
    result = guard(root, "last", "throughput > -5%")
    assert result.status == 3
    assert result.baseline.title == f"the run named baseline, {chosen}"


def test_a_baseline_that_was_asked_something_else_is_told(root):
    store(root, 1.0, start=8)
    other = store_load(root, 20, spec=replace(CLOSED_SPEC, clients=4))
    name_run(root, other.name, "baseline")
    result = guard(root, "load-tpcb-like-20260301-180000", "p50 < +15%")
    assert "was asked something else" in result.warnings[0]
    assert result.baseline.title.startswith("the median of 8")


@pytest.mark.parametrize("like", [0, 1, 4])
def test_a_short_history_decides_nothing_and_says_how_to_get_more(root, like):
    (last,) = store(root, 3.0, start=8)
    for folder in sorted(root.glob("load-*"))[like:-1]:
        shutil.rmtree(folder)
    result = guard(root, "last", "p50 < +5%")
    assert (result.status, outcomes(result)) == (4, {"latency_p50": UNDECIDED})
    assert f"uncork guard {last.name} --times 5" in result.checks[0].reason


def test_runs_of_other_places_machines_and_questions_are_no_past(root):
    store_load(root, 9, 3.0, server="existing: elsewhere")
    other = {**ENVIRONMENT, "machine": {**ENVIRONMENT["machine"], "processors": "64"}}
    store_load(root, 10, 3.0, environment=other)
    store_load(root, 11, 3.0, spec=replace(CLOSED_SPEC, clients=4))
    set_tag(store_load(root, 12, 3.0), "guard-broken", present=True)
    store_load(root, 13, 3.0, status="interrupted")
    store(root, 1.0, start=14)
    assert guard(root, "last", "p50 < +15%").checks[0].rounds == 8


def test_a_load_that_failed_is_nothing_to_hold_others_against(root):
    failed = store_load(root, 90, status="failed")
    with pytest.raises(UsageError, match=f"{failed.name} failed, so nothing can be compared with it"):
        guard(root, failed.name, "p50 < +15%")


def test_failures_break_a_gate_on_success(root):
    store_load(root, 9, 1.0, failed=400)
    result = guard(root, "last", "success >= baseline", "errors < +5 points", "success > 99%")
    assert [check.outcome for check in result.checks] == [BROKEN] * 3
    assert result.checks[0].unit == "share"
    assert result.checks[0].ratio == pytest.approx(-0.25, abs=0.01)
    assert result.checks[1].candidate == pytest.approx(0.25, abs=0.01)


def test_without_gates_a_closed_loop_is_asked_for_throughput_and_an_open_one_for_p50(root):
    store(root, 1.0, start=8)
    assert [one.gate.metric for one in guard(root, "last").checks] == [
        "throughput",
        "latency_p99",
        "success",
    ]
    (open_loop,) = store(root, 1.0, start=20, spec=OPEN_SPEC)
    assert guard(root, open_loop.name).checks[0].gate.metric == "latency_p50"


def test_a_gate_on_what_a_load_lacks_is_not_decided_and_says_why(root):
    result = guard(root, "last", "plan unchanged", "queries <= baseline", "size < +5%", "p99.9 < +5%")
    assert {check.outcome for check in result.checks} == {UNDECIDED}
    reasons = [check.reason for check in result.checks]
    assert all("guard an experiment instead" in reason for reason in reasons[:3])
    assert "needs 10 000 operations" in reasons[3].replace("\u202f", " ").replace(",", " ")


def test_a_gate_on_one_of_several_scripts_reads_its_times(root):
    store(root, 1.0, start=8)
    name = CLOSED_SPEC.scripts[1].name
    result = guard(root, "last", f"p50 < +20% on {name}")
    assert (result.checks[0].workload, result.checks[0].outcome) == (name, KEPT)


def test_a_gate_may_name_the_only_script(empty):
    one = replace(CLOSED_SPEC, scripts=(LoadScript("only.sql", 1, "SELECT 1;\n"),))
    store(empty, *USUAL, 1.0, spec=one)
    assert guard(empty, "last", "throughput > -15% on only.sql").status == 0


@pytest.mark.parametrize(("gates", "options", "said"), [
    (("p50 < +5% on nobody",), {}, 'sends nothing called "nobody"'),
    (("throughput > -5% on select-only",), {}, "has only latencies by script"),
    (("p50 < 5%",), {}, 'gate "p50 < 5%"'),
    ((), {"candidate": ["setting=work_mem:4MB"]},
     "--candidate setting=...: a side of a stored load is a target"),
    ((), {"candidate": ["dsn=host=a"]}, "--stored measures nothing"),
    ((), {"choice": ServerChoice(dsn="host=a")}, "--stored measures nothing"),
    ((), {"times": 3}, "leave out --times"),
    ((), {"options": Options(precision=0.1)}, "--precision is for experiments"),
    ((), {"times": 0, "stored": False}, "--times must be from 1 to 100"),
    ((), {"times": 2, "stored": False, "candidate": ["dsn=host=a"]}, "--times is for a guard against"),
    ((), {"stored": False}, "does not store its whole request"),
    ((), {"stored": False, "candidate": ["url=http://a"]}, "does not store its whole"),
])  # fmt: skip
def test_wrong_words_are_told_before_anything_is_stored(root, gates, options, said):
    before = sorted(root.iterdir())
    with pytest.raises(UsageError, match=said.replace("(", r"\(").replace("+", r"\+")):
        guard(root, "last", *gates, **options)
    assert sorted(path for path in root.iterdir() if not path.name.startswith(".")) == before


def test_runs_that_are_no_load_and_runs_that_are_not_there(empty):
    store_load(empty, 1, kind="log")
    with pytest.raises(UsageError, match="is a run of kind log; guard a stored load"):
        guard(empty, "last")
    with pytest.raises(SetupError, match='there is no run "nobody"'):
        guard(empty, "nobody")


def test_a_change_that_is_known_does_not_alarm(root, tmp_path):
    *_, slow = store(root, 1.6, start=8)
    known = tmp_path / "known.toml"
    entry = '[[change]]\ngate = "{}"\nreason = "a new disk"\ndate = 2026-01-01\n'
    known.write_text(entry.format("throughput > -5%") + entry.format("errors < 1%"))
    result = guard(root, "last", "throughput > -5%", "success >= baseline", acknowledged=known)
    assert [check.outcome for check in result.checks] == [GateOutcome.ACKNOWLEDGED, KEPT]
    assert result.status == 0
    assert [one.gate for one in result.unused] == ["errors < 1%"]
    assert tags_of(slow) == ()
    known.write_text("[[change]]\n")
    with pytest.raises(UsageError, match=r"known\.toml"):
        guard(root, "last", acknowledged=known)


def test_guard_json_is_plain_json(empty):
    store(empty, 1.0, 1.1, 1.0)
    result = guard(empty, "last", "p50 < +5%")
    text = (Path(empty) / result.id / "guard.json").read_text()
    assert json.loads(text)["status"] == 4
    assert "NaN" not in text
    assert "Infinity" not in text
