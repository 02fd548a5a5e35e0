"""What a guard says: its answers, each writer, nothing lost, nothing taken for markup.

The texts are in golden/guard.
"""

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
from fakes import goldens
from fakes.goldens import compare_cases
from fakes.guards import (
    CANDIDATE,
    LATE,
    P99,
    check,
    everything,
    exact_check,
    guard,
    plan_check,
    share_check,
)
from fakes.results import small_result
from fakes.terminals import shown
from uncork.model.results.guard import Gate, GateOutcome, GuardSide, PlanDifference, SideDifference
from uncork.report.experiment.document import build_document
from uncork.report.guard.document import build_guard_document, explanations, render_guard_terminal, why_lines
from uncork.report.guard.pipeline import MOST, guard_gobench, guard_junit, guard_markdown, guard_marker
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.schemas import result_schema

terminal = partial(shown, render_guard_terminal)

KEPT, UNDECIDED, KNOWN = GateOutcome.KEPT, GateOutcome.UNDECIDED, GateOutcome.ACKNOWLEDGED
BROKEN = GateOutcome.BROKEN
ANSWER = Gate("same answer", "answer", "unchanged", "=", 1.0)
NOTHING = dict.fromkeys(("baseline", "candidate", "ratio", "low", "high"))
EVIL = "<script>alert(1)</script> ]]> [bold] & \x07 `x` |"
AS_THE_FILE = GuardSide("baseline", "main, as the file has it")
TIMES = {"ratio": 4.2, "low": 3.9, "high": 4.6}
FEW_ROUNDS = "the interval reaches beyond +5 %: +3.0 % (±0 to +7.0 %); about 9 rounds would decide it"


def wrong_answer(reason):
    return dataclasses.replace(plan_check(), gate=ANSWER, reason=reason)


def against(side, *checks, how="side by side"):
    return guard(*(checks or [check()]), baseline=side, against=how)


ANSWERS = {
    "broken": guard(check()),
    "the worst of two that are broken": guard(
        check(KEPT), check(ratio=1.4, low=1.2, high=1.7), check(workload="search")
    ),
    "a plan": guard(plan_check(), check(KEPT)),
    "a count": guard(exact_check(BROKEN, 3, 4)),
    "a share": guard(share_check(BROKEN, -0.02)),
    "several times": guard(check(**TIMES)),
    "no upper bound": guard(check(low=0.9, high=float("inf"))),
    "not measured again": guard(check(confirmed=None)),
    "a bound on a time": guard(check(gate=LATE, candidate=2.25e7, ratio=None, low=2.2e7, high=2.3e7)),
    "not confirmed": guard(check(UNDECIDED, confirmed=False)),
    "kept": guard(check(KEPT, ratio=0.8, low=0.7, high=0.9)),
    "a plan is kept": guard(plan_check(KEPT)),
    "an answer is worse than a time": guard(check(ratio=9.0), wrong_answer("row 1 is (2), not (1)")),
    "a bound on a count": guard(
        exact_check(BROKEN, 3, 4, gate=Gate("queries < 4", "queries", "value", "<", 4.0))
    ),
    "more rounds would decide": guard(check(UNDECIDED, reason=FEW_ROUNDS)),
    "nothing is known": guard(check(UNDECIDED, reason="no trial was complete", **NOTHING)),
    "all are kept": guard(check(KEPT), check(KEPT, workload="search", ratio=0.9, low=0.85, high=0.95)),
    "one is acknowledged": guard(check(KEPT), check(KNOWN)),
    "no gate": guard(),
    "an interval of no width": guard(check(ratio=2.596, low=2.5956, high=2.5962)),
    "a bound on one side": guard(
        check(
            KEPT,
            gate=LATE,
            baseline=None,
            candidate=1.5e7,
            ratio=None,
            low=None,
            high=1.6e7,
        )
    ),
    "against a setting": against(GuardSide("baseline", "main", ("work_mem = 4MB",))),
    "against a commit and an image": against(
        GuardSide("baseline", "main", ("commit 1a2b3c4", "image shop:2"))
    ),
    "against the file": against(AS_THE_FILE, check(), check(workload="search")),
    "times the file's": against(AS_THE_FILE, check(**TIMES)),
    "a plan that differs from the file's": against(AS_THE_FILE, plan_check()),
    "against a server": against(GuardSide("baseline", "x", ("server db.example",))),
    "against history": against(
        GuardSide("baseline", "the median of 12 comparable runs", ("May 1 to May 9",)), how="history"
    ),
    "kept against history": against(
        GuardSide("baseline", "the median of 5 comparable runs", ("May 1 to May 9",)),
        check(KEPT),
        how="history",
    ),
}


def test_answers_and_their_reasons():
    cases = [(name, one.answer, "\n".join(one.reasons)) for name, one in ANSWERS.items()]
    compare_cases("guard/answers", cases)


def test_terminals():
    """The table of gates, the explanations, and the steps that fit what was found."""
    stored = {"reproduce": "uncork guard load-1 --stored", "against": "history"}
    results = {
        "everything": everything(),
        "an interval of no width": ANSWERS["an interval of no width"],
        "no interval": guard(check(UNDECIDED, low=None, high=None)),
        "a bound on one side": ANSWERS["a bound on one side"],
        "a wrong answer is nothing to acknowledge": guard(wrong_answer("row 1 differs")),
        "a long plan": guard(check(), plans=(PlanDifference((), "list", "s1", "changed", "+Scan\n" * 99),)),
        "kept": guard(check(KEPT)),
        "undecided": guard(check(UNDECIDED)),
        "undecided with a budget": guard(
            check(UNDECIDED), reproduce="uncork guard shop.toml --budget 20s --seed 1"
        ),
        "no gate": guard(checks=()),
        "broken": guard(dataclasses.replace(check(), gate=P99)),
        "undecided against history": guard(check(UNDECIDED), against="history", id="guard-1"),
        "undecided of a stored run": guard(check(UNDECIDED), **stored),
        "broken of a load": guard(check(), reproduce="uncork guard load-1 --candidate dsn=a"),
    }
    show = goldens.terminal(render_guard_terminal, 100)
    compare_cases("guard/terminals", [(name, show(one)) for name, one in results.items()])


def test_files():
    """Every writer of everything, and Markdown of what it folds and what GitHub takes for a mention."""
    machine = {"machine": {"architecture": "x86_64", "processor": "Some CPU"}}
    known = dataclasses.replace(
        fakes.guards.KNOWN, reason="as @ada and @team/db said in #812; mail a@b.example"
    )
    mentions = guard(
        dataclasses.replace(check(KNOWN), acknowledgement=known),
        question="Does @all hold?",
        candidate=dataclasses.replace(CANDIDATE, what=("branch @eve",)),
        warnings=("told by @carol",),
    )
    assert not re.search(r"(?<![A-Za-z0-9`])@[A-Za-z0-9]", re.sub(r"`[^`]*`", "", guard_markdown(mentions)))
    many = guard(check(), *(check(KEPT, workload=f"w{number}") for number in range(30)))
    cases = [
        ("Markdown", guard_markdown(everything())),
        ("Markdown with mentions", guard_markdown(mentions)),
        ("Markdown of many gates", guard_markdown(many)),
        (
            "Markdown against history",
            guard_markdown(guard(check(UNDECIDED), against="history", id="guard-1")),
        ),
        ("JUnit", guard_junit(everything())),
        ("JUnit without gates", guard_junit(guard())),
        ("Go benchmarks", guard_gobench(everything(), machine)),
    ]
    compare_cases("guard/files", cases)


# ---- why ----


def test_differences_of_other_places_are_not_told():
    here, there = (("rows", "10"),), (("rows", "99"),)
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
    kernel = SideDifference((), "list", "cost", "server CPU in the kernel", "ns", 4e3, 3e3)
    result = guard(check(), differences=(kernel,))
    assert why_lines(result, result.checks[0]) == ()


def test_one_reason_of_several_gates_is_explained_once():
    same = "only 2 rounds; a decision needs 5"
    gates = [check(UNDECIDED, workload=name, reason=same) for name in ("list", "show")]
    assert [one.lines for one in explanations(guard(*gates))] == [(same,)]


# ---- terminal ----


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_terminal_keeps_its_width(width):
    text = terminal(everything(), width)
    commands = [line for line in text.splitlines() if line.startswith("      uncork ")]
    assert len(commands) == 2
    assert all(len(line) <= width for line in text.splitlines() if line not in commands)


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


def test_the_marker_is_the_same_whatever_came_of_it():
    assert guard_marker(everything()) == guard_marker(guard(check(KEPT), id="another"))
    assert guard_marker(guard(name="a-->b")) == "<!-- uncork-guard: a-b -->"


def test_markdown_is_a_table_and_folds():
    html = MarkdownIt("commonmark").enable("table").render(guard_markdown(everything()))
    assert html.count("<details>") == html.count("</details>") >= 7
    assert "<td><code>p99 &lt; +5%</code></td>" in html
    assert '<code class="language-diff">--- baseline' in html


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


def test_each_gate_is_a_test_case_of_its_own_and_counts_agree():
    (suite,) = assert_jenkins_takes(guard_junit(everything()))
    cases = suite.findall("testcase")
    for counted, tag in (("tests", "."), ("failures", "failure"), ("skipped", "skipped")):
        assert suite.get(counted) == str(len(suite.findall(f"testcase/{tag}")))
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases) == 7
    assert_jenkins_takes(guard_junit(guard()))


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


# ---- JSON, Go's benchmarks and the page ----


@pytest.mark.parametrize("result", [everything(), guard(), guard(check(high=float("inf")))])
def test_json_is_what_its_schema_says(result):
    document = json.loads(json_text(result))
    jsonschema.Draft202012Validator(result_schema("guard")).validate(document)
    assert document["answer"] == result.answer
    assert len(document["checks"]) == len(result.checks)


def test_benchmarks_have_one_line_format_the_same_names_on_both_sides_and_a_direction_for_each_unit():
    head, *sides = re.split(r"^side: .*\n", guard_gobench(everything(), {}), flags=re.MULTILINE)
    names = []
    for side in sides:
        results = [line.split() for line in side.splitlines() if line.startswith("Benchmark")]
        assert all(len(fields) == 4 and int(fields[1]) == 1 and float(fields[2]) >= 0 for fields in results)
        names.append([(fields[0], fields[3]) for fields in results])
    assert names[0] == names[1]
    assert set(re.findall(r"^Unit (\S+) better=", head, re.MULTILINE)) == {unit for _, unit in names[0]}


def test_a_page_begins_with_the_answer_and_the_gates_and_needs_nothing_else():
    text = html_page(build_guard_document(everything()))
    assert text.index("Broken: 2 of 7 gates") < text.index("✗ broken") < text.index("ExecScan")
    assert "http://" not in re.sub(r'xmlns="[^"]*"', "", text)
    assert "See all that was measured" not in text  # it shows that itself


def test_a_page_holds_the_report_on_the_run_after_its_own_sections():
    of_run = build_document(small_result())
    document = build_guard_document(everything(), of_run)
    ids = [section.id for section in document.sections]
    assert ids == ["gates", "why", *(section.id for section in of_run.sections)]
    assert len(set(ids)) == len(ids)
    text = html_page(document)
    assert "</svg> baseline</li>" in text and "baseline (baseline)" not in text
