"""The report of a cure: its answers and steps are in golden/cure/answers.txt."""

import math
import re
from dataclasses import replace

import pytest

from fakes.cures import (
    application_cure,
    grouped_report,
    healthy_cure,
    interrupted_cure,
    nothing_proven,
    pool_cure,
    proven_cure,
    transaction_cure,
)
from fakes.goldens import compare_cases
from fakes.terminals import shown
from uncork.model.database.missing import Missing
from uncork.model.results.cure import Net, Tried
from uncork.report.blocks import ForestChart
from uncork.report.cure.answer import (
    answer_cure,
    bill_span,
    cure_steps,
    gain_cell,
    handed_path,
    less_time,
    net_ratio,
    reason_sentence,
    saved_words,
    seconds_text,
    worst_effect,
)
from uncork.report.cure.document import MOST, build_cure_document, pull_request_markdown, render_cure_short
from uncork.report.headline import fits, split_answer
from uncork.report.write.html import html_page
from uncork.workbench.cure.handing import (
    application_readme,
    pool_readme,
    transaction_readme,
)

WHOLE = {"all_s_per_hour": 2564.0}


def changed(chosen, **changes):
    """Return a proven cure whose chosen change has another form."""
    known = proven_cure()
    return answer_cure(replace(known, chosen=replace(known.chosen, **chosen), **changes))


def with_changes(of, **changes):
    return answer_cure(replace(of, **changes))


def results():
    otherwise = "the copy plans its statement otherwise than the server: an index is missing"
    slower = {"state": "harmful", "reason": "with 4 sessions at once, a statement becomes slower"}
    lines, customers = (
        "Create an index on order_id of order_lines.",
        "Create an index on customer_id of orders.",
    )
    many = (
        "Create an index on customer_id and status of orders, and another on order_id of items, for the join."
    )
    dry = f"{interrupted_cure().reproduce} --dry-run"
    proven = proven_cure()
    missing = Missing(
        "select a, b from…", "no values are known: 5 % of the statements' time is not measured", ""
    )
    return {
        "proven": proven,
        "nothing proven": nothing_proven(),
        "healthy": healthy_cure(),
        "interrupted": interrupted_cure(),
        "all statements were measured": with_changes(proven, **WHOLE),
        "two indexes": changed({"text": f"{lines} {customers}"}),
        "changes of several kinds": changed({"text": "Create an index on id of t. Analyze t."}),
        "a change with numbers": changed({"text": "Set work_mem to 64MB for role reports."}, **WHOLE),
        "a change with many words": changed({"text": many}),
        "not confirmed": changed(slower),
        "a change of the application": application_cure(),
        "a change of the database and of the application": with_changes(
            proven, tried=(*proven.tried, *application_cure().tried)
        ),
        "a pool": pool_cure(),
        "a shorter transaction": transaction_cure(),
        "another plan on the copy": replace(
            nothing_proven(), tried=(Tried(grouped_report(), "unclear", otherwise),)
        ),
        "without files": replace(proven, handed=()),
        "a dry run": replace(interrupted_cure(), status="complete", reproduce=dry),
        "no busy session": with_changes(healthy_cure(), sessions=0.0),
        "a statement that was not captured": replace(proven, missing=(missing,)),
    }


def test_answers_reasons_and_steps():
    cases = []
    for name, result in results().items():
        steps = [f"{step.text}\n  {step.command}" for step in cure_steps(result)]
        assert fits(split_answer(result.answer)[0]) and any(step.command for step in cure_steps(result))
        cases.append((name, result.answer, "\n".join(result.reasons), "\n".join(steps)))
    compare_cases("cure/answers", cases)


def test_what_the_application_is_handed():
    (pooled,), (batched,), (moved,) = (
        cure().tried[0].changes[:1] for cure in (pool_cure, application_cure, transaction_cure)
    )
    compare_cases(
        "cure/readmes",
        [
            ("a change of the application", application_readme(batched, measured=True)),
            ("a pool", pool_readme(pooled, "host=db.example dbname=shop", measured=True)),
            ("a shorter transaction", transaction_readme(moved, measured=True)),
        ],
    )


def test_short_forms():
    """The answer, the saving, the SQL and its file."""
    cases = [
        (name, shown(render_cure_short, results()[name], width=200)) for name in ("proven", "nothing proven")
    ]
    compare_cases("cure/short", cases)


@pytest.mark.parametrize(
    ("cure", "texts"),
    [
        (application_cure, ("Assumed: A batch has 20 rows.", "The application sends")),
        (pool_cure, ("The application does", "a request, with its connection", "connections an hour")),
        (transaction_cure, ("a transaction, from BEGIN to COMMIT", "transactions an hour")),
    ],
)
def test_the_page_shows_what_the_application_does(cure, texts):
    page = html_page(build_cure_document(cure()))
    assert all(text in page for text in texts)


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (Net(1240, 1160, 1320, 3600), "saves 1 240 s [1 160, 1 320]"),
        (Net(14, -22, 51, 3600), "saves 14 s [22 more, 51 less]"),
        (Net(-573, -940, -210, 3600), "costs 573 s [210, 940]"),
        (Net(-5, -20, 10, 3600), "costs 5 s [10 less, 20 more]"),
        (Net(-5, -math.inf, 0, 3600), "costs 5 s [0, ∞]"),
    ],
)
def test_no_saving_is_printed_as_a_negative_number(net, words):
    base = f"{'of' if net.saved >= 0 else 'above'} the 3 600 s an hour that the measured statements take"
    assert saved_words(net) == f"{words} {base}"


def test_a_change_that_was_not_confirmed_is_no_proof():
    assert "What was proven" not in [
        section.title for section in build_cure_document(results()["not confirmed"]).sections
    ]


def test_a_statement_is_judged_at_the_number_of_sessions_that_harms_it_most():
    chosen = proven_cure().chosen
    many = tuple(replace(one, ratio=one.ratio * 1.1, clients=8) for one in chosen.effects)
    worst = worst_effect(replace(chosen, effects=(*chosen.effects, *many)))
    assert (worst.template, worst.clients) == (2, 8)


def test_fragments_become_sentences():
    assert reason_sentence("it failed: no such column") == "It failed: no such column."
    document = build_cure_document(results()["a statement that was not captured"])
    (section,) = [one for one in document.sections if one.id == "workload"]
    assert section.blocks[-1].items == (
        "Not captured: select a, b from… No values are known: 5 % of the statements' time is not measured.",
    )


def test_a_gain_near_all_of_the_time_is_not_all_of_it():
    assert less_time(Net(996.0, 995.2, 996.8, 1000.0)) == "99.6 % less time [99.5, 99.7]"
    assert less_time(Net(-30.0, -50.0, 12.0, 1000.0)) == "−3.0 % less time [−5.0, 1.2]"


def test_a_gain_without_bounds_is_drawn_as_such():
    assert net_ratio(Net(1000.0, 900.0, 1100.0, 1000.0)) == (1e-6, None, pytest.approx(0.1))
    assert gain_cell(Net(100.0, -math.inf, math.inf, 1000.0)) == "−10 % [no bounds yet]"
    assert net_ratio(Net(0.0, 0.0, 0.0, 0.0)) == (1.0, None, None)
    bill = proven_cure().bill_before
    assert bill_span(replace(bill, high=None)) == "over 2 390 s"
    assert bill_span(replace(bill, low=2564.0, high=2564.0)) == ""
    assert (seconds_text(1234.4), seconds_text(-0.52), seconds_text(0.0)) == ("1 234", "−0.52", "0")


def test_the_chart_has_a_row_for_each_measured_change_in_whose_middle_its_mark_is():
    document = build_cure_document(proven_cure())
    (section,) = [one for one in document.sections if one.id == "changes"]
    (chart,) = [block for block in section.blocks if isinstance(block, ForestChart)]
    assert [mark.label.split(" ")[0] for mark in chart.marks] == ["Chosen,", "1.1:", "1.2:", "1.3,"]
    assert chart.variants == ("cured", "not cured")
    page = html_page(document)
    svg = page[page.index("<svg xmlns") : page.index("</svg>", page.index("<svg xmlns"))]
    names = [float(y) - 4.5 for y in re.findall(r'<text x="-6" y="([\d.]+)"', svg)]
    marks = [float(y) for y in re.findall(r'transform="translate\([\d.]+,([\d.]+)\)" fill="var', svg)]
    assert len(marks) == 4
    assert sorted(marks) == pytest.approx(names, abs=0.1)


def test_a_pull_request_has_room_for_the_answer_whatever_else_is_long():
    known = nothing_proven()
    (first, *rest) = known.tried
    long = replace(first, finding=replace(first.finding, evidence=("x" * 40_000, "y" * 40_000)))
    text = pull_request_markdown(replace(known, tried=(long, *rest)))
    assert len(text) <= MOST
    assert text.startswith("**No change was proven to help; 2 of 3 findings were tried on a copy.**")
    assert "1 part is left out" in text


def test_paths_of_files_are_those_from_here():
    assert handed_path(replace(proven_cure(), folder=""), "up.sql") == "up.sql"
    assert handed_path(proven_cure(), "guard.toml") == ""


def test_a_finding_that_the_budget_left_open_is_named_with_the_budget_that_is_probably_enough():
    known = proven_cure()
    waiting = Tried(
        known.tried[-1].finding, "not tried", "Too little of the budget was left for it.", more_s=70.0
    )
    found = answer_cure(replace(known, tried=(known.tried[0], waiting), id="cure-1"))
    assert any(
        reason.startswith("Not tried: ") and "Too little of the budget" in reason for reason in found.reasons
    )
    (step,) = [step for step in cure_steps(found) if "more time" in step.text]
    assert step.text == "Give uncork more time to try the rest, for which that budget is probably enough:"
    assert "--budget 3min" in step.command and "--resume cure-1" in step.command
    (step,) = [
        step for step in cure_steps(replace(found, reproduce="uncork demo")) if "more time" in step.text
    ]
    assert step.command == "uncork demo --budget 3min"
    beyond = replace(found, tried=(known.tried[0], replace(waiting, more_s=4000.0)))
    (step,) = [step for step in cure_steps(beyond) if "more time" in step.text]
    assert step.text == "Give uncork more time to try the rest:" and "--budget 60min" in step.command
