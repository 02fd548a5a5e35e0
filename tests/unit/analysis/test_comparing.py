"""Stored loads set side by side: what is found, what is refused, and what is not known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial

import jsonschema
import pytest

from fakes.answered import compare_runs
from fakes.http_results import store_http_load
from fakes.load_results import CLOSED_SPEC, ENVIRONMENT
from fakes.stored_loads import store_load
from fakes.terminals import shown
from uncork.errors import SetupError, StoreError, UsageError
from uncork.model.load import Arrivals, LoadScript
from uncork.model.results.run_comparison import RunVerdict
from uncork.report.blocks import Fold, Table
from uncork.report.runs.comparison import build_runs_document, render_runs_terminal
from uncork.report.runs.comparison_answer import answer_runs
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.schemas import result_schema
from uncork.store.layout import Attempt, find_run, name_run, read_names
from unit.analysis.test_sweep_figures import store_sweep

terminal = partial(shown, render_runs_terminal, force_terminal=False)

USUAL = (1.01, 0.99, 1.02, 0.98, 1.0, 1.015, 0.99, 1.0)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


def figures(pair):
    return {one.name: one for one in pair.figures if not one.subject}


def test_a_run_far_slower_than_like_runs_differ_is_slower(root):
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    before, after = store_load(root, 8), store_load(root, 9, 1.5)
    (pair,) = compare_runs(root, before, [after]).pairs
    found = figures(pair)
    assert found["throughput"].verdict is RunVerdict.SLOWER
    assert found["p95"].verdict is RunVerdict.SLOWER
    assert found["throughput"].like_runs == 8
    assert found["throughput"].high < 1
    assert found["failed"].verdict is RunVerdict.SAME
    assert found["server processor time each"].verdict is RunVerdict.NO_PRACTICAL_DIFFERENCE


def test_a_run_as_like_runs_are_is_not_called_different(root):
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    before, after = store_load(root, 8), store_load(root, 9, 1.02)
    result = compare_runs(root, before, [after])
    assert not {one.verdict for one in result.pairs[0].figures} & {
        *(RunVerdict.SLOWER, RunVerdict.FASTER, RunVerdict.MORE, RunVerdict.LESS)
    }


@pytest.mark.parametrize("known", range(5))
def test_with_too_few_like_runs_nothing_is_claimed_and_the_report_says_so(root, known):
    for number in range(known):
        store_load(root, number, USUAL[number])
    before, after = store_load(root, 8), store_load(root, 9, 3.0)
    result = compare_runs(root, before, [after])
    judged = [one for one in result.pairs[0].figures if one.verdict is not RunVerdict.SAME]
    assert {one.verdict for one in judged} == {RunVerdict.NOT_ENOUGH_EVIDENCE}
    assert result.answer.startswith("No verdict against ")
    assert "a verdict needs 5 of one kind" in result.answer
    text = " ".join(terminal(result).split())
    assert "could not be interleaved" in text
    assert "uncork run question.toml" in text


def test_runs_far_apart_are_not_judged_by_runs_of_one_afternoon(root):
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    before, after = store_load(root, 8), store_load(root, 9, 3.0, hours=24 * 30)
    result = compare_runs(root, before, [after])
    assert "comparable runs span only" in result.answer


def test_a_kind_of_error_that_only_one_run_saw_had_none_of_it_in_the_other(root):
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    before, after = store_load(root, 8), store_load(root, 9, failed=900)
    found = figures(compare_runs(root, before, [after]).pairs[0])
    assert (found["error 40001"].before_count, found["error 40001"].after_count) == (0, 900)
    assert found["error 40001"].verdict is RunVerdict.MORE
    assert found["failed"].verdict is RunVerdict.MORE


@pytest.mark.parametrize(
    ("slower", "failed", "begins", "told"),
    [
        (1.6, 0, "Slower than BEFORE: throughput −", "; mean +"),
        (0.5, 0, "Faster than BEFORE: throughput +", "; mean −"),
        (1.0, 900, "More failures than BEFORE: failed 0 of ", ", more; "),
        (0.5, 900, "More failures and faster than BEFORE: failed 0 of ", ", faster; "),
    ],
)
def test_the_answer_begins_with_the_verdict(root, slower, failed, begins, told):
    for number, usual in enumerate(USUAL):
        store_load(root, number, usual)
    before, after = store_load(root, 8), store_load(root, 9, slower, failed=failed)
    answer = compare_runs(root, before, [after]).answer
    assert answer.startswith(begins.replace("BEFORE", before.name))
    assert told in answer


def test_the_answer_of_several_runs_begins_with_those_that_differ(root):
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    before, same, slow = store_load(root, 8), store_load(root, 9), store_load(root, 10, 2.5)
    answer = compare_runs(root, before, [same, slow]).answer
    assert answer.startswith(f"Compared with {before.name}: 1 slower and 1 ")
    assert f". Slower: {slow.name} (throughput −" in answer
    assert answer.endswith(f": {same.name}.")


def test_what_else_differs_is_named(root):
    before = store_load(root, 1, commit="aaa")
    server = {**ENVIRONMENT["server"], "setting shared_buffers": "1GB"}
    after = store_load(
        root,
        2,
        commit="bbb",
        environment={**ENVIRONMENT, "server": server},
        spec=replace(CLOSED_SPEC, clients=16),
    )
    result = compare_runs(root, before, [after])
    differ = {(one.section, one.name): (one.before, one.after) for one in result.pairs[0].differences}
    assert differ["server", "setting shared_buffers"] == ("128MB", "1GB")
    assert differ["asked", "clients"] == ("8", "16")
    assert differ["commit", ""] == ("aaa", "bbb")
    assert "setting shared_buffers 128MB → 1GB" in " ".join(result.reasons)


def test_unlike_machines_are_refused_by_name_and_never_judged(root):
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    other = {**ENVIRONMENT, "machine": {**ENVIRONMENT["machine"], "processors": "64"}}
    before, after = store_load(root, 8), store_load(root, 9, 3.0, environment=other)
    with pytest.raises(UsageError, match='different machines: processors "8" and "64"'):
        compare_runs(root, before, [after])
    result = compare_runs(root, before, [after], any_machine=True)
    judged = [one for one in result.pairs[0].figures if one.verdict is not RunVerdict.SAME]
    assert {one.verdict for one in judged} == {RunVerdict.NOT_ENOUGH_EVIDENCE}
    assert {one.reason for one in judged} == {"the runs were made on different machines"}


def test_loads_of_sql_and_of_http_have_no_figure_that_means_the_same(root):
    sql, http = store_load(root, 1), store_http_load(root)
    for before, after, said in (
        (sql, http, f"{sql.name} sent SQL, {http.name} sent HTTP requests"),
        (http, sql, f"{http.name} sent HTTP requests, {sql.name} sent SQL"),
    ):
        with pytest.raises(UsageError, match=re.escape(said)):
            compare_runs(root, before, [after])
        with pytest.raises(UsageError, match=re.escape(said)):
            compare_runs(root, before, [after], any_machine=True)


def test_sweeps_that_raise_different_things_are_refused(root):
    with pytest.raises(UsageError, match=r"is a sweep of clients, .* one of rate: their levels count"):
        compare_runs(root, store_sweep(root, 1), [store_sweep(root, 2, axis="rate")])


def test_an_open_loop_beside_a_closed_one_has_no_verdict(root):
    """Latency counts from different moments, and the throughput of an open loop is its rate."""
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    arrivals = replace(CLOSED_SPEC, arrivals=Arrivals("poisson", rate=100.0))
    result = compare_runs(root, store_load(root, 8), [store_load(root, 9, 3.0, spec=arrivals)])
    judged = [one for one in result.pairs[0].figures if one.verdict is not RunVerdict.SAME]
    assert {one.verdict for one in judged} == {RunVerdict.NOT_ENOUGH_EVIDENCE}
    assert result.answer.startswith("No verdict against ")
    assert "One is a closed loop, the other an open loop" in result.answer
    assert "(arrivals closed loop → kind poisson, rate 100.0); this alone" in result.reasons[0]


SCRIPT = CLOSED_SPEC.scripts[0]
WORK = {
    "text of script": replace(
        CLOSED_SPEC, scripts=(replace(SCRIPT, text="SELECT 2;\n"), *CLOSED_SPEC.scripts[1:])
    ),
    "only after": replace(CLOSED_SPEC, scripts=(*CLOSED_SPEC.scripts, LoadScript("more", 1, "SELECT 3;\n"))),
    "variables": replace(CLOSED_SPEC, variables={"scale": "99"}),
    "protocol prepared → simple": replace(CLOSED_SPEC, protocol="simple"),
    "clients 8 → 16": replace(CLOSED_SPEC, clients=16),
}


@pytest.mark.parametrize(("words", "spec"), WORK.items(), ids=WORK)
def test_another_load_is_the_first_thing_that_is_told(root, words, spec):
    before, after = store_load(root, 1), store_load(root, 2, spec=spec)
    first = compare_runs(root, before, [after]).reasons[0]
    assert first.startswith(f"{before.name} and {after.name} are different loads (")
    assert words in first
    assert "are different loads" not in str(compare_runs(root, before, [store_load(root, 3)]).reasons)


def test_several_runs_beside_a_named_baseline(root):
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    before, same, slow = store_load(root, 8), store_load(root, 9), store_load(root, 10, 1.6)
    name_run(root, before.name, "baseline")
    result = compare_runs(root, find_run(root, "baseline"), [same, slow])
    assert result.before.names == ("baseline",)
    verdicts = [figures(pair)["throughput"].verdict for pair in result.pairs]
    assert verdicts[0] is not RunVerdict.SLOWER
    assert verdicts[1] is RunVerdict.SLOWER
    assert slow.name in result.answer


def test_a_run_is_not_compared_with_itself(root):
    folder = store_load(root, 1)
    with pytest.raises(UsageError, match="with itself"):
        compare_runs(root, folder, [folder])


def test_a_load_that_was_killed_has_nothing_to_compare(root):
    before, after = store_load(root, 1), store_load(root, 2)
    for path in (after / "load_totals").iterdir():
        path.unlink()
    with pytest.raises(StoreError, match="has no result"):
        compare_runs(root, before, [after])


def test_a_damaged_like_run_is_passed_over(root):
    for number, slower in enumerate(USUAL):
        store_load(root, number, slower)
    before, after = store_load(root, 8), store_load(root, 9)
    broken = store_load(root, 20)
    (broken / "plan.json").write_text("{")
    (pair,) = compare_runs(root, before, [after]).pairs
    assert figures(pair)["throughput"].like_runs == 8


@pytest.mark.parametrize("known", [0, 8])
def test_every_form_says_the_same(root, known):
    for number in range(known):
        store_load(root, number, USUAL[number])
    result = compare_runs(root, store_load(root, 8), [store_load(root, 9, 1.6), store_load(root, 10)])
    data = json.loads(json_text(result))
    jsonschema.validate(data, result_schema("run-comparison"))
    page, text = html_page(build_runs_document(result)), markdown_text(build_runs_document(result))
    for name in ("throughput", "p95", "server processor time each"):
        assert name in page
        assert name in text
        assert name in " ".join(terminal(result, width=140).split())
    for width in (60, 80, 200):
        lines = [one for one in terminal(result, width).splitlines() if "for turn in" not in one]
        assert max(map(len, lines)) <= max(width, 140)


def test_what_is_counted_without_noise_is_told_apart_from_verdicts(root):
    before, after = store_load(root, 1), store_load(root, 2)
    result = compare_runs(root, before, [after])
    (pair,) = result.pairs
    size = replace(pair.figures[0], name="size of table t", unit="B", scale="exact", ratio=2.0)
    size = replace(size, before=100, after=200, low=None, high=None)
    grown = replace(
        result, pairs=(replace(pair, figures=(*pair.figures, replace(size, verdict=RunVerdict.MORE))),)
    )
    assert answer_runs(grown).answer.startswith("No verdict against ")
    reasons = answer_runs(grown).reasons
    assert "Counted, without noise: size of table t +100 %." in reasons
    assert not any("share one error rate" in text for text in reasons)


# ---- names ----


def test_a_name_finds_its_run_and_moves_to_another(root):
    first, second = store_load(root, 1), store_load(root, 2)
    assert name_run(root, first.name, "baseline") == (first.name, None)
    assert find_run(root, "baseline") == first
    assert name_run(root, "last", "baseline") == (second.name, first.name)
    assert read_names(root) == {"baseline": second.name}


def test_a_failed_run_is_no_baseline_but_may_have_another_name(root):
    good = store_load(root, 1)
    attempt = Attempt("", 1, 0, "failed", "none of 40 operations succeeded: division by zero")
    bad = store_load(root, 2, status="failed", attempts=(attempt,))
    name_run(root, good.name, "baseline")
    with pytest.raises(UsageError) as caught:
        name_run(root, bad.name, "baseline")
    assert str(caught.value) == (
        f"{bad.name} failed (none of 40 operations succeeded: division by zero), so it cannot be the "
        "baseline; name a run that is complete (`uncork runs --status complete` lists them)"
    )
    assert name_run(root, bad.name, "broken") == (bad.name, None)
    assert read_names(root) == {"baseline": good.name, "broken": bad.name}


@pytest.mark.parametrize("name", ["last", "a b", "", "../x", "-x", "x" * 64])
def test_what_is_no_name_is_refused(root, name):
    folder = store_load(root, 1)
    with pytest.raises(UsageError):
        name_run(root, folder.name, name)
    assert read_names(root) == {}


def test_the_id_of_a_run_is_no_name_for_another(root):
    first, second = store_load(root, 1), store_load(root, 2)
    with pytest.raises(UsageError, match="already identifies a run"):
        name_run(root, first.name, second.name)


def test_a_name_whose_run_is_gone_says_so(root):
    store_load(root, 1)
    name_run(root, "last", "baseline")
    store_load(root, 2)
    find_run(root, "baseline").rename(root.parent / "away")
    with pytest.raises(SetupError, match="no longer in"):
        find_run(root, "baseline")


def test_damaged_names_are_told(root):
    store_load(root, 1)
    (root / ".names").mkdir()
    (root / ".names" / "baseline").write_text("")
    with pytest.raises(StoreError, match="damaged"):
        find_run(root, "last-one")


def test_what_differs_comes_first_and_the_rest_is_folded(root):
    for number in range(8):
        store_load(root, number, USUAL[number])
    result = compare_runs(root, store_load(root, 8), [store_load(root, 9, 1.6)])
    (section,) = [one for one in build_runs_document(result).sections if one.id == "figures"]
    verdicts = [one.verdict for one in result.pairs[0].figures]
    tables = [block for block in section.blocks if isinstance(block, Table)]
    folds = [block for block in section.blocks if isinstance(block, Fold)]
    assert any("slower" in value.text for value in tables[0].rows[0])
    assert len(tables[0].rows) + sum(len(fold.blocks[0].rows) for fold in folds) == len(verdicts)


def test_the_advice_to_repeat_one_command_in_turns_waits_for_the_switch(root):
    result = compare_runs(root, store_load(root, 1), [store_load(root, 2, 1.6)])
    (step,) = [one for one in result.steps if "for turn in" in one.command]
    assert "switch what" in step.text
    assert step.command.count("read -rp") == 2
