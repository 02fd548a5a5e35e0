"""The report of a cure: what its first sentence claims, and which step comes next."""

import math
import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

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

AGAIN = "uncork cure database-shop-20260531-101000 'host=db.example dbname=shop' --for 60s"


def changed(result, **changes):
    """Return the result with a chosen change of another form."""
    return answer_cure(replace(result, chosen=replace(result.chosen, **changes)))


def headline(result):
    return split_answer(result.answer)[0]


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


@pytest.mark.parametrize("cure", [proven_cure, nothing_proven, healthy_cure, interrupted_cure])
def test_the_first_sentence_is_brief_and_a_next_step_is_named(cure):
    assert fits(headline(cure()))
    assert any(step.command for step in cure_steps(cure()))


def test_the_first_sentence_says_what_to_change_and_what_it_brings():
    assert headline(proven_cure()) == (
        "Create an index on customer_id of orders: all statements take at least 53 % less time."
    )
    (_, rest) = proven_cure().answer.split(". ", 1)
    assert rest.startswith("uncork measured statements with 93.0 % of the time of all: they take 62 %")


def test_only_if_all_statements_were_measured_is_the_saving_that_of_all():
    whole = answer_cure(replace(proven_cure(), all_s_per_hour=2564.0))
    assert headline(whole) == (
        "Create an index on customer_id of orders: all statements take 62 % less time [58, 66]."
    )


def test_two_indexes_are_one_headline():
    text = "Create an index on order_id of order_lines. Create an index on customer_id of orders."
    assert headline(changed(proven_cure(), text=text)) == (
        "Create indexes on order_id of order_lines and on customer_id of orders: all statements take "
        "at least 53 % less time."
    )


def test_changes_of_several_kinds_follow_the_headline():
    mixed = changed(proven_cure(), text="Create an index on id of t. Analyze t.")
    assert headline(mixed) == "With the proven change, all statements take at least 53 % less time."
    assert "Create an index on id of t. Analyze t." in mixed.answer


def test_a_change_with_numbers_has_its_interval_in_the_second_sentence():
    found = changed(proven_cure(), text="Set work_mem to 64MB for role reports.")
    found = answer_cure(replace(found, all_s_per_hour=2564.0))
    assert headline(found) == ("Set work_mem to 64MB for role reports: all statements take 62 % less time.")
    assert "95 % interval: −66 % to −58 %." in found.answer


def test_a_change_with_many_words_follows_the_headline():
    text = (
        "Create an index on customer_id and status of orders, and another on order_id of items, for the join."
    )
    found = changed(proven_cure(), text=text)
    assert headline(found) == "With the proven change, all statements take at least 53 % less time."
    assert text in found.answer
    assert fits(headline(found))


def test_a_proven_change_of_the_application_is_the_answer_if_no_other_change_is():
    result = application_cure()
    assert headline(result) == (
        "Insert 20 rows into orders with one statement: all statements take at least 10 % less time."
    )
    (first, *_) = result.reasons
    assert "Only the application can make this change. A batch has 20 rows." in first
    assert not any(reason.startswith("Cured:") for reason in result.reasons)
    (step, *_) = cure_steps(result)
    assert step.command.endswith("/handed/application/s2-one-statement/README.md")
    page = application_readme(result.tried[0].changes[0], measured=True)
    for text in ("12 % less time [11, 12]", "VALUES ($1);", "unnest($1::numeric[])", "is an array", "fail"):
        assert text in page
    shown = StringIO()
    Console(file=shown, width=120).print(html_page(build_cure_document(result)))
    assert "Assumed: A batch has 20 rows." in shown.getvalue() and "The application sends" in shown.getvalue()


def test_a_pool_is_the_answer_with_the_time_of_a_request_and_of_the_server():
    result = pool_cure()
    assert headline(result) == (
        "Keep connections open in a pool of the application: each request takes 94 % less time [91, 96.9]."
    )
    assert (
        "A request takes 4.20 ms over a new connection and 210 µs over a kept one; the server's processor "
        "time for it is 3.10 ms and 90.0 µs. Only the application can make this change. Client and server"
    ) in result.reasons[0]
    (step, *_) = cure_steps(result)
    assert step.text.endswith("What to do:") and step.command.endswith("/application/pool/README.md")
    page = html_page(build_cure_document(result))
    for text in ("The application does", "a request, with its connection", "connections an hour"):
        assert text in page
    readme = pool_readme(result.tried[0].changes[0], "host=db.example dbname=shop", measured=True)
    for text in (
        "94 % less time [91, 96.9]",
        "with 3 sessions at once",
        "begin with 6 connections",
        "default_pool_size = 6",
        "host=db.example",
    ):
        assert text in readme


def test_a_shorter_transaction_is_the_answer_with_its_time():
    result = transaction_cure()
    assert headline(result) == (
        "Move the slow step of application shop before BEGIN or after COMMIT: each transaction takes "
        "94 % less time [91, 96.9]."
    )
    assert (
        "On the copy, a transaction takes 4.20 ms now and 210 µs with the change. Only the application can "
        "make this change. Client and server"
    ) in result.reasons[0]
    (step, *_) = cure_steps(result)
    assert step.text.endswith("What to do:") and step.command.endswith("pause-outside/README.md")
    page = html_page(build_cure_document(result))
    for text in ("a transaction, from BEGIN to COMMIT", "transactions an hour", "time of a transaction"):
        assert text in page
    readme = transaction_readme(result.tried[0].changes[0], measured=True)
    assert readme.startswith(
        "# Move the slow step of application shop before BEGIN or after COMMIT\n\nEach transaction takes 94 %"
    )
    for text in ("- The order was sampled.", "- What is read before BEGIN can change.", "uncork run"):
        assert text in readme


def test_it_stands_beside_a_proven_change_of_the_database():
    both = proven_cure()
    result = answer_cure(replace(both, tried=(*both.tried, *application_cure().tried)))
    assert headline(result) == headline(both)
    assert any("Only the application can make this change" in reason for reason in result.reasons)


def test_the_way_to_production_is_apply_revert_compare():
    apply, revert, compare, by_hand = cure_steps(proven_cure())
    folder = ".uncork/runs/cure-shop-20260531-101000"
    server = "'host=db.example port=5432 user=ada dbname=shop'"
    assert apply.command == f"psql -v ON_ERROR_STOP=1 -f {folder}/up.sql -d {server}"
    assert revert.command == f"psql -v ON_ERROR_STOP=1 -f {folder}/down.sql -d {server}"
    assert compare.command == f"uncork profile db {server} --for 5min --since cure-shop-20260531-101000"
    assert by_hand.text == (
        "Not proven on a copy: shop-api inserts orders one row at a time (11 % of the busy time). Send the "
        "rows of a transaction in one INSERT. Only the application can make this change. Compare both forms "
        "with uncork run."
    )


def test_a_copy_that_plans_otherwise_is_followed_by_a_whole_copy():
    reason = "the copy plans its statement otherwise than the server: an index is missing"
    other = Tried(grouped_report(), "unclear", reason)
    texts = [step.text for step in cure_steps(replace(nothing_proven(), tried=(other,)))]
    assert any("--copy, to try a report sorts on disk" in text for text in texts)


def test_without_files_the_change_itself_is_the_step():
    first = next(cure_steps(replace(proven_cure(), handed=())))
    assert first.command.startswith("CREATE INDEX CONCURRENTLY")


def test_what_is_unclear_or_was_not_tried_gets_more_time():
    commands = [step.command for step in cure_steps(nothing_proven())]
    result = nothing_proven()
    assert f"{AGAIN} --budget 60min --resume {result.id}" in commands
    assert [step.command for step in cure_steps(interrupted_cure())] == [f"{AGAIN} --budget 10min"]


def test_a_dry_run_is_followed_by_the_trials():
    result = interrupted_cure()
    dry = replace(result, status="complete", reproduce=f"{result.reproduce} --dry-run")
    assert [step.command for step in cure_steps(dry)] == [f"{AGAIN} --budget 10min"]


def test_a_change_that_was_not_confirmed_is_not_proposed():
    known = proven_cure()
    reason = "with 4 sessions at once, a statement becomes slower"
    found = changed(known, state="harmful", reason=reason)
    assert headline(found) == "No change was proven to help; 1 of 2 findings was tried on a copy."
    assert f"Measured again, the best change is harmful: {reason}." in found.answer
    assert not any("psql" in step.command for step in cure_steps(found))
    assert "What was proven" not in [one.title for one in build_cure_document(found).sections]


def test_a_statement_is_judged_at_the_number_of_sessions_that_harms_it_most():
    chosen = proven_cure().chosen
    many = tuple(replace(one, ratio=one.ratio * 1.1, clients=8) for one in chosen.effects)
    worst = worst_effect(replace(chosen, effects=(*chosen.effects, *many)))
    assert (worst.template, worst.clients) == (2, 8)


def test_fragments_become_sentences():
    assert reason_sentence("it failed: no such column") == "It failed: no such column."
    missing = Missing(
        "select a, b from…",
        "no values are known: 5 % of the statements' time is not measured",
        "",
    )
    document = build_cure_document(replace(proven_cure(), missing=(missing,)))
    (section,) = [one for one in document.sections if one.id == "workload"]
    assert section.blocks[-1].items == (
        "Not captured: select a, b from… No values are known: 5 % of the statements' time is not measured.",
    )


def test_a_server_without_busy_sessions_is_not_called_healthy():
    idle = answer_cure(replace(healthy_cure(), sessions=0.0))
    assert idle.answer == "No busy session was seen, so faults that cost time cannot be found."


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


def test_the_chart_has_a_row_for_each_measured_change_with_its_outcome_in_words():
    document = build_cure_document(proven_cure())
    (section,) = [one for one in document.sections if one.id == "changes"]
    (chart,) = [block for block in section.blocks if isinstance(block, ForestChart)]
    assert [mark.label.split(" ")[0] for mark in chart.marks] == ["Chosen,", "1.1:", "1.2:", "1.3,"]
    assert chart.variants == ("cured", "not cured")
    page = html_page(document)
    assert "change of the workload" in page
    assert "Dashed: the ±3 % that matters in practice." in page


def test_marks_that_share_no_row_are_in_its_middle():
    page = html_page(build_cure_document(proven_cure()))
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


def test_the_short_form_is_the_answer_the_saving_the_sql_and_its_file():
    text = short(proven_cure())
    assert headline(proven_cure()) in text
    assert proven_cure().chosen.sql.splitlines()[0] in text
    assert handed_path(proven_cure(), "up.sql") in text


def test_the_short_form_of_a_cure_that_proved_nothing_is_its_answer():
    assert " ".join(short(nothing_proven()).split()) == nothing_proven().answer


def short(result):
    console = Console(file=StringIO(), width=200)
    render_cure_short(result, console)
    return console.file.getvalue()
