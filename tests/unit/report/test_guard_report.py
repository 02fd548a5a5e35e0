"""What a guard says: the first sentence, each writer, nothing lost, nothing taken for markup."""

import dataclasses
import io
import json
import re
from functools import partial
from xml.etree import ElementTree

import jsonschema
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

import fakes.guards
from fakes.guards import (
    BASELINE,
    CANDIDATE,
    DIFF,
    LATE,
    P99,
    answered,
    check,
    everything,
    exact_check,
    guard,
    plan_check,
    share_check,
)
from fakes.terminals import shown
from uncork.model.results.guard import Gate, GateOutcome, GuardSide, PlanDifference, SideDifference
from uncork.model.variant_evidence import Levels
from uncork.report.guard.document import build_guard_document, explanations, render_guard_terminal, why_lines
from uncork.report.guard.pipeline import MOST, guard_gobench, guard_junit, guard_markdown, guard_marker
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.schemas import result_schema

terminal = partial(shown, render_guard_terminal)

KEPT, UNDECIDED, KNOWN = GateOutcome.KEPT, GateOutcome.UNDECIDED, GateOutcome.ACKNOWLEDGED
ANSWER = Gate("same answer", "answer", "unchanged", "=", 1.0)
NOTHING = dict.fromkeys(("baseline", "candidate", "ratio", "low", "high"))
LONG = "+Scan\n" * 3000
EVIL = "<script>alert(1)</script> ]]> [bold] & \x07 `x` |"


def flat(text):
    return " ".join(text.split())


# ---- the first sentence ----


@pytest.mark.parametrize(
    ("checks", "sentence"),
    [
        (
            [check()],
            "Broken: p99 of list is 12 % slower than at commit 1a2b3c4 (95 % interval: 9.0 % to 16 %). "
            "Gate: p99 < +5%; confirmed by a second measurement.",
        ),
        (
            [check(KEPT), check(ratio=1.4, low=1.2, high=1.7), check(workload="search")],
            "Broken: 2 of 3 gates; p99 of list is 40 % slower than at commit 1a2b3c4. 95 % interval: "
            "20 % to 70 %; gate: p99 < +5%; confirmed by a second measurement.",
        ),
        (
            [plan_check(), check(KEPT)],
            "Broken: the plan of list differs from that at commit 1a2b3c4. Gate: plan unchanged; confirmed "
            "by a second measurement.",
        ),
        (
            [exact_check(GateOutcome.BROKEN, 3, 4)],
            "Broken: queries an operation of list are 33 % higher than at commit 1a2b3c4. "
            "Gate: queries a request <= baseline; confirmed by a second measurement.",
        ),
        (
            [share_check(GateOutcome.BROKEN, -0.02)],
            "Broken: share of success of list is 2.0 percentage points lower than at commit 1a2b3c4 (95 % "
            "interval: 1.8 to 2.2 points). "
            "Gate: success > -0.5 points; confirmed by a second measurement.",
        ),
        (
            [check(ratio=4.2, low=3.9, high=4.6)],
            "Broken: p99 of list is 4.2 times that at commit 1a2b3c4 (95 % interval: 3.9 to 4.6 times). "
            "Gate: p99 < +5%; confirmed by a second measurement.",
        ),
        (
            [check(low=0.9, high=float("inf"))],
            "Broken: p99 of list is 12 % slower than at commit 1a2b3c4 (95 % interval: −10 % to ∞). "
            "Gate: p99 < +5%; confirmed by a second measurement.",
        ),
        (
            [check(confirmed=None)],
            "Broken: p99 of list is 12 % slower than at commit 1a2b3c4 (95 % interval: 9.0 % to 16 %). "
            "Gate: p99 < +5%.",
        ),
        (
            [check(gate=LATE, candidate=2.25e7, ratio=None, low=2.2e7, high=2.3e7)],
            "Broken: p99 of list is 22.5 ms (95 % interval: 22.0 ms to 23.0 ms). Gate: p99 < 20ms; "
            "confirmed by a second measurement.",
        ),
        (
            [check(UNDECIDED, confirmed=False)],
            "Not decided: p99 of list is so far 3.0 % slower than at commit 1a2b3c4 (95 % interval: 0 % to "
            "7.0 % slower). "
            "Gate: p99 < +5%; the interval still holds the bound.",
        ),
        (
            [check(KEPT, ratio=0.8, low=0.7, high=0.9)],
            "Kept: p99 of list is 20 % faster than at commit 1a2b3c4 (95 % interval: 10 % to 30 %). Gate: "
            "p99 < +5%.",
        ),
        ([plan_check(KEPT)], "Kept: plan unchanged."),
        (
            [
                check(ratio=9.0),
                dataclasses.replace(plan_check(), gate=ANSWER, reason="row 1 is (2), not (1)"),
            ],
            "Broken: 2 of 2 gates. Worst: the answer of list differs from that at commit 1a2b3c4 "
            "(row 1 is (2), not (1)); gate: same answer; confirmed by a second measurement.",
        ),
        (
            [exact_check(GateOutcome.BROKEN, 3, 4, gate=Gate("queries < 4", "queries", "value", "<", 4.0))],
            "Broken: queries an operation of list are 4. Gate: queries < 4; confirmed by a second "
            "measurement.",
        ),
        (
            [
                check(
                    UNDECIDED,
                    reason="the interval reaches beyond +5 %: +3.0 % (±0 to +7.0 %); about 9 rounds "
                    "would decide it",
                )
            ],
            "Not decided: p99 of list is so far 3.0 % slower than at commit 1a2b3c4 (95 % interval: 0 % to "
            "7.0 % slower). "
            "Gate: p99 < +5%; the interval reaches beyond +5 %; about 9 rounds would decide it.",
        ),
        (
            [check(UNDECIDED, reason="no trial was complete", **NOTHING)],
            "Not decided: p99 of list is unknown. Gate: p99 < +5%; no trial was complete.",
        ),
        (
            [check(KEPT), check(KEPT, workload="search", ratio=0.9, low=0.85, high=0.95)],
            "Kept: all 2 gates. Closest to its gate, p99 < +5%: p99 of list, +1.0 % (95 % interval: −2.0 % "
            "to "
            "+5.0 %).",
        ),
        ([check(KEPT), check(KNOWN)], "Kept: 1 of 2 gates; the other one is broken, as acknowledged."),
        ([], "No gate was checked, so there is no verdict."),
    ],
)
def test_the_first_sentence_answers(checks, sentence):
    assert guard(*checks).answer == sentence


@pytest.mark.parametrize(
    ("side", "against", "words"),
    [
        (GuardSide("baseline", "main", ("work_mem = 4MB",)), "side by side", "than with work_mem = 4MB."),
        (
            GuardSide("baseline", "main", ("commit 1a2b3c4", "image shop:2")),
            "side by side",
            "than at commit 1a2b3c4 and image shop:2.",
        ),
        (
            GuardSide("baseline", "variant main, as the file has it"),
            "side by side",
            "than the baseline (variant main, as the file has it). 95 % interval",
        ),
        (GuardSide("baseline", "x", ("server db.example",)), "side by side", "than on server db.example ("),
        (
            GuardSide("baseline", "the median of 12 comparable runs", ("May",)),
            "history",
            "than the median of 12 comparable runs.",
        ),
    ],
)
def test_the_baseline_is_named_by_what_makes_it(side, against, words):
    assert words in answered(guard(check(), baseline=side, against=against)).answer


def test_a_baseline_without_a_name_of_its_own_is_described_once():
    side = GuardSide("baseline", "main, as the file has it")
    result = answered(guard(check(), check(workload="search"), baseline=side))
    assert "than the baseline (main, as the file has it). 95 % interval: 9.0 % to 16 %;" in result.answer
    assert result.reasons[1].startswith("Broken: p99 of search is 12 % slower than the baseline (95 % ")
    assert result.reasons[-1] == (
        "Measured side by side. Candidate: commit 9f8e7d6, work_mem = 4MB; "
        "baseline: main, as the file has it."
    )


def test_an_interval_of_no_width_is_not_told():
    counted = check(ratio=2.596, low=2.5956, high=2.5962)
    result = guard(counted)
    assert "is 160 % slower than at commit" in result.answer
    assert "+160 % [" not in terminal(result)


def test_an_effect_without_an_interval_says_so():
    text = flat(terminal(guard(check(UNDECIDED, low=None, high=None))))
    assert "+3.0 % [no bounds yet]" in text
    assert "is so far 3.0 % slower than" in text


def test_a_wrong_answer_is_nothing_to_acknowledge():
    wrong = dataclasses.replace(plan_check(), gate=ANSWER, reason="row 1 differs")
    steps = terminal(guard(wrong)).partition("What to do next")[2]
    assert "acknowledge" not in steps
    assert "--evidence" not in steps


def test_the_terminal_shows_how_the_plan_changed_under_the_gate_on_plans():
    text = terminal(everything())
    shown = text.partition("plan unchanged on list: broken")[2]
    assert "-Index Scan using sale_city on sale\n" in shown
    assert "+Seq Scan on sale\n" in shown
    assert "-Index Scan" not in text.partition("plan unchanged on list: broken")[0]
    long = guard(check(), plans=(PlanDifference((), "list", "s1", "changed", "+Scan\n" * 99),))
    assert "75 more lines" in terminal(long)


def test_behind_that_a_baseline_without_a_name_of_its_own_is_of_it():
    side = GuardSide("baseline", "main, as the file has it")
    times = answered(guard(check(ratio=4.2, low=3.9, high=4.6), baseline=side)).answer
    assert (
        "is 4.2 times that of the baseline (main, as the file has it). 95 % interval: 3.9 to 4.6 times;"
        in times
    )
    plan = answered(guard(plan_check(), baseline=side)).answer
    assert "differs from that of the baseline (main, as the file has it)." in plan


def test_what_a_second_measurement_does_not_find_is_no_alarm_and_told():
    result = guard(check(UNDECIDED, confirmed=False))
    assert result.status == 4
    assert any("fails only if it is broken again" in text for text in result.reasons)


# ---- why ----


def test_each_kind_of_difference_is_told_where_the_gate_is():
    lines = "\n".join(why_lines(everything(), check()))
    for words in (
        "plan of s1: changed, Index Scan using sale_city on sale → Seq Scan on sale",
        "plan of s2: unchanged, but its statistics differ: Seq Scan on shop is expected to return 4 000 rows",
        "costs per operation: buffers hit 312 → 4 120 (×13); server CPU 4.10 ms → 9.80 ms",
        "IO:DataFileRead 0 → 2.20 ms",
        "system calls per operation: pread64 0.4 → 12",
        "share of the server's CPU: ExecScan 2.0 % → 31.0 %; _bt_search 12.0 % → 0.1 %",
    ):
        assert words in lines
    assert "copy_page_to_iter" not in lines
    assert "WAL" not in lines


def test_differences_of_other_places_are_not_told():
    here: Levels = (("rows", "10"),)
    there: Levels = (("rows", "99"),)
    result = guard(
        check(cell=here),
        differences=(
            SideDifference(there, "list", "cost", "WAL", "B", 1.0, 9.0),
            SideDifference(here, "insert", "cost", "rows", "", 1.0, 9.0),
            SideDifference(here, "list", "cost", "server CPU", "ns", 1e6, 1.01e6),
        ),
    )
    assert why_lines(result, result.checks[0]) == ("costs per operation: nothing differs by 10 % or more",)


def test_it_is_not_said_that_nothing_differs_where_a_cost_that_is_not_told_does():
    result = guard(
        check(),
        differences=(SideDifference((), "list", "cost", "server CPU in the kernel", "ns", 4e3, 3e3),),
    )
    assert why_lines(result, result.checks[0]) == ()


def test_one_reason_of_several_gates_is_explained_once():
    same = "only 2 rounds; a decision needs 5"
    gates = [check(UNDECIDED, workload=name, reason=same) for name in ("list", "show")]
    assert [one.lines for one in explanations(guard(*gates))] == [(same,)]


# ---- terminal ----


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_terminal_keeps_its_width_and_says_everything(width):
    text = terminal(everything(), width)
    commands = [line for line in text.splitlines() if line.startswith("      uncork ")]
    assert len(commands) == 2
    assert all(len(line) <= width for line in text.splitlines() if line not in commands)
    for words in (
        "✗ broken",
        "? not decided",
        "~ acknowledged",
        "✓ kept",
        "20.1 ms → 22.5 ms",
        "ExecScan",
        "server version: 17.6 → 18.1",
        "server setting jit: default → off",
        "soft deletes",
        "uncork acknowledge 20260601-101500-shop 'p99 < +5%' --reason ...",
    ):
        assert words in text


def test_the_terminal_has_no_other_signs_than_the_console_can_show():
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii", write_through=True), width=100)
    render_guard_terminal(everything(), console)
    assert b"x broken" in raw.getvalue()


def test_names_are_no_markup():
    result = guard(check(workload=EVIL), name=EVIL, question=EVIL)
    assert "[bold]" in terminal(result)
    for text in (guard_markdown(result), html_page(build_guard_document(result))):
        assert "<script>alert" not in text


# ---- markdown ----


def test_the_first_line_of_markdown_is_the_answer_and_a_marker_follows():
    lines = guard_markdown(everything()).splitlines()
    assert lines[0].startswith("✗ **Broken: 2 of 7 gates; p99 of list is 12 % slower")
    assert lines[2] == "<!-- uncork-guard: shop -->"


def test_the_marker_is_the_same_whatever_came_of_it():
    assert guard_marker(everything()) == guard_marker(guard(check(KEPT), id="another"))
    assert guard_marker(guard(name="a-->b")) == "<!-- uncork-guard: a-b -->"


def test_markdown_is_a_table_and_folds():
    html = MarkdownIt("commonmark").enable("table").render(guard_markdown(everything()))
    assert html.count("<details>") == html.count("</details>") >= 7
    assert "<td><code>p99 &lt; +5%</code></td>" in html
    assert '<code class="language-diff">--- baseline' in html
    assert "baseline commit 1a2b3c4" in html


def test_markdown_notifies_nobody_and_leaves_references():
    known = dataclasses.replace(
        fakes.guards.KNOWN, reason="as @ada and @team/db said in #812; mail a@b.example"
    )
    result = guard(
        dataclasses.replace(check(KNOWN), acknowledgement=known),
        question="Does @all hold?",
        candidate=dataclasses.replace(CANDIDATE, what=("branch @eve",)),
        warnings=("told by @carol",),
    )
    text = guard_markdown(result)
    assert "@\u200bada and @\u200bteam/db said in #812; mail a@b.example" in text
    assert "@\u200beve" in text and "@\u200bcarol" in text
    assert not re.search(r"(?<![A-Za-z0-9`])@[A-Za-z0-9]", re.sub(r"`[^`]*`", "", text))


def test_kept_gates_are_folded_when_they_are_many():
    text = guard_markdown(guard(check(), *(check(KEPT, workload=f"w{number}") for number in range(30))))
    assert "<summary>30 gates kept</summary>" in text
    assert text.index("✗ broken") < text.index("<summary>30 gates kept")


@pytest.mark.parametrize(
    "result",
    [
        guard(
            check(),
            plans=tuple(PlanDifference((), "list", f"s{n}", "changed", "+Scan\n" * 3000) for n in range(9)),
        ),
        guard(*(check(workload=f"w{number}" * 100) for number in range(2000))),
        guard(check(workload="w" * 70_000)),
    ],
    ids=["plans", "gates", "name"],
)
def test_markdown_is_cut_with_a_word_below_what_github_takes(result):
    text = guard_markdown(result)
    assert len(text) <= MOST
    assert "left out" in text or "1900 more are in the report" in text
    assert "✗ **Broken" in text.splitlines()[0]
    assert guard_marker(result) in text
    assert text.endswith("uncork 0.1.0</sub>\n")


# ---- JUnit ----

JENKINS = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id"}
        | {"package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": (
        {"name", "time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}
"""Elements with the attributes and children that Jenkins' schema (junit-10 of its xunit plugin) allows."""
REQUIRED = {
    "testsuite": {"name", "tests", "failures", "errors"},
    "testcase": {"name"},
    "property": {"name", "value"},
}


def assert_jenkins_takes(text):
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = JENKINS[element.tag]
        assert set(element.attrib) <= attributes
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib)
        assert {child.tag for child in element} <= children
        assert re.fullmatch(r"\d*(\.\d*)?", element.get("time", ""))
    return root


def test_each_gate_is_a_test_case_and_counts_agree():
    root = assert_jenkins_takes(guard_junit(everything()))
    (suite,) = root
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases)) == "7"
    assert suite.get("failures") == str(len(suite.findall("testcase/failure"))) == "2"
    assert suite.get("skipped") == str(len(suite.findall("testcase/skipped"))) == "2"
    assert suite.get("errors") == "0"
    assert cases[0].get("name") == "p99 < +5% (list)"
    assert cases[2].get("classname") == "uncork guard: shop.search, rows 100 000"
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == 7


def test_outcomes_of_cases_have_their_reason():
    root = assert_jenkins_takes(guard_junit(everything()))
    broken = root.find(".//failure")
    assert broken.get("message").startswith(
        "p99 of list is 12 % slower than at commit 1a2b3c4 (95 % interval: 9.0 % to 16 %)"
    )
    assert "ExecScan 2.0 % → 31.0 %" in broken.text
    assert DIFF in broken.text
    undecided, known = root.findall(".//skipped")
    assert undecided.get("message").startswith("not decided: p99 of search at rows 100 000 is so far")
    assert "on 2026-05-31 by Ada, until 2026-12-31: writes an audit row" in known.get("message")


def test_what_xml_cannot_hold_and_ends_of_cdata_are_escaped():
    odd = 'a]]>b\x00\x1b[31m\ufffe\ud800<&">'
    result = guard(
        check(workload=odd, reason=odd),
        name=odd,
        question=odd,
        plans=(PlanDifference((), odd, odd, "changed", odd),),
    )
    root = assert_jenkins_takes(guard_junit(result))
    clean = 'a]]>b\ufffd\ufffd[31m\ufffd\ufffd<&">'
    assert root[0].get("name") == f"uncork guard: {clean}"
    assert clean in root.find(".//failure").text


def test_a_guard_without_gates_is_an_empty_suite():
    assert assert_jenkins_takes(guard_junit(guard()))[0].get("tests") == "0"


# ---- JSON and Go's benchmarks ----


@pytest.mark.parametrize("result", [everything(), guard(), guard(check(high=float("inf")))])
def test_json_is_what_its_schema_says(result):
    document = json.loads(json_text(result))
    jsonschema.Draft202012Validator(result_schema("guard")).validate(document)
    assert document["answer"] == result.answer
    assert len(document["checks"]) == len(result.checks)


def test_both_sides_have_a_line_a_round_under_the_same_names():
    text = guard_gobench(everything(), {"machine": {"architecture": "x86_64", "processor": "Some CPU"}})
    head, baseline, candidate = re.split(r"^side: .*\n", text, flags=re.MULTILINE)
    assert {"goos: linux", "goarch: amd64", "cpu: Some CPU", "pkg: uncork/guard"} <= set(head.splitlines())
    names = []
    for side in (baseline, candidate):
        results = [line.split() for line in side.splitlines() if line.startswith("Benchmark")]
        assert all(len(fields) == 4 and int(fields[1]) == 1 and float(fields[2]) >= 0 for fields in results)
        names.append([(fields[0], fields[3]) for fields in results])
        assert results[0] == ["BenchmarkGuardShop/workload=list", "1", results[0][2], "p99-ns"]
    assert names[0] == names[1]
    assert names[0].count(("BenchmarkGuardShop/workload=list", "p99-ns")) == 6
    assert ("BenchmarkGuardShop/workload=search/rows=100000", "p99-ns") in names[0]
    assert names[0].count(("BenchmarkGuardShop/workload=list", "success-%")) == 1
    assert "plan" not in text
    units = set(re.findall(r"^Unit (\S+) better=", head, re.MULTILINE))
    assert units == {unit for _, unit in names[0]}


# ---- page ----


def test_the_page_begins_with_the_answer_and_the_gates_and_needs_nothing_else():
    text = html_page(build_guard_document(everything()))
    assert text.index("Broken: 2 of 7 gates") < text.index("✗ broken") < text.index("ExecScan")
    assert "http://" not in re.sub(r'xmlns="[^"]*"', "", text)
    assert "Round" in text or "round" in text


def test_a_page_holds_the_report_on_the_run_after_its_own_sections():
    from fakes.results import small_result
    from uncork.report.experiment.document import build_document

    of_run = build_document(small_result())
    document = build_guard_document(everything(), of_run)
    ids = [section.id for section in document.sections]
    assert ids[:2] == ["gates", "why"]
    assert ids[2:] == [section.id for section in of_run.sections]
    assert len(set(ids)) == len(ids)
    assert html_page(document)


def test_a_bound_on_one_side_is_told_by_the_candidate_alone():
    gate = Gate("p99 < 20ms", "latency_p99", "value", "<", 2e7)
    result = guard(check(KEPT, gate=gate, baseline=None, candidate=1.5e7, ratio=None, low=None, high=1.6e7))
    assert result.answer == "Kept: p99 of list is 15.0 ms (95 % interval: at most 16.0 ms). Gate: p99 < 20ms."
    assert "15.0 ms" in terminal(result)


def test_a_guard_against_history_asks_for_more_like_runs():
    asked = guard(check(UNDECIDED), against="history", id="guard-1")
    steps = terminal(asked)
    assert "--times 5" in steps
    assert "uncork report guard-1" in guard_markdown(asked)
    side = GuardSide("baseline", "the median of 5 comparable runs", ("May 1 to May 9",))
    result = answered(guard(check(KEPT), against="history", baseline=side))
    assert result.reasons[-1].endswith("baseline: the median of 5 comparable runs (May 1 to May 9).")
    assert "--budget" not in steps


def test_a_guard_of_a_stored_run_is_led_nowhere_that_refuses_it():
    stored = guard(check(UNDECIDED), against="history", reproduce="uncork guard load-1 --stored")
    assert "uncork guard load-1 --times 5" in terminal(stored)
    broken = guard(dataclasses.replace(check(), gate=P99), reproduce="uncork guard load-1 --candidate dsn=a")
    assert "--evidence" not in terminal(broken)


def test_the_report_itself_does_not_lead_to_itself_and_what_is_read_elsewhere_does():
    result = everything()
    assert "See all that was measured" not in terminal(result)
    assert "See all that was measured" not in html_page(build_guard_document(result))
    for text in (guard_markdown(result), guard_junit(result)):
        assert f"uncork report {result.runs[0]}" in text


def test_a_baseline_that_is_called_so_is_not_called_so_twice():
    from fakes.results import small_result
    from uncork.report.experiment.document import build_document

    text = html_page(build_guard_document(everything(), build_document(small_result())))
    assert "</svg> baseline</li>" in text
    assert "baseline (baseline)" not in text


def test_steps_fit_what_was_found():
    longer = terminal(guard(check(UNDECIDED), reproduce="uncork guard shop.toml --budget 20s --seed 1"))
    assert "uncork guard shop.toml --seed 1 --budget 30min" in longer
    assert "uncork" not in flat(terminal(guard(check(KEPT)))).partition("outcome")[2]
    undecided = terminal(guard(check(UNDECIDED)))
    assert "--budget 30min" in undecided
    assert "acknowledge" not in undecided
    nothing = terminal(guard(checks=()))
    assert "--gate 'p99 < +5%'" in nothing
    broken = terminal(guard(dataclasses.replace(check(), gate=P99)))
    assert "--evidence waits,stacks" in broken
    assert BASELINE.commit is not None
