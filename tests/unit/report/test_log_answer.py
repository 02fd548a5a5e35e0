"""Findings of a report on a log: each has a share of time, and every line is accounted for."""

import json
from dataclasses import replace

import pytest

from fakes.log_results import MS, log_result, template
from uncork.analysis.log.evidence import costly_parts_of_log, evidence_of_log
from uncork.analysis.log.result import missing_of_log
from uncork.diagnosis.findings import find_findings
from uncork.model.results.log import (
    Example,
    FileFacts,
    LogTimes,
    RejectedLine,
    TransactionFacts,
)
from uncork.report.log.answer import answer_log
from uncork.report.log.document import MOST_TEMPLATES, build_log_document
from uncork.report.log.tables import lines_words

TOTAL = 1_000 * MS


def quiet(**changes):
    """A log of one template of a second, with nothing else that stands out."""
    one = replace(template(0), sum_ns=TOTAL, share=1.0, lists=None, repetition=None)
    result = log_result(templates=1)
    server = replace(result.server, lock_waits=(), temporary_files=())
    plain = replace(
        result,
        templates=(one,),
        executions=LogTimes(100, TOTAL, TOTAL),
        transactions=(),
        errors=(),
        server=server,
    )
    return replace(plain, **changes)


def judged(result):
    """Return the report on a log of two seconds, with the findings of the rules."""
    timed = replace(result, first_us=0, last_us=2_000_000)
    findings = find_findings(evidence_of_log(timed))
    known = replace(timed, findings=findings, costliest=costly_parts_of_log(timed, findings))
    return answer_log(replace(known, missing=missing_of_log(known)))


def settings(result):
    """Return what the report says to set, so that the log has plans."""
    return [one.remedy for one in result.missing if "auto_explain" in one.remedy]


def planned(rows_read, *, duration_ms=1_000.0, executed=True):
    """A quiet log whose template has a plan that returns a row of each call."""
    actual = {"Actual Rows": 1, "Actual Loops": 1, "Actual Total Time": duration_ms} if executed else {}
    removed = {"Rows Removed by Filter": rows_read - 1} if executed else {}
    names = {"Node Type": "Index Scan", "Relation Name": "t", "Index Name": "i"}
    node = {**names, "Startup Cost": 0.0, "Total Cost": 8.0, "Plan Rows": 1, "Plan Width": 8}
    text = json.dumps({"Query Text": "select 1", "Plan": {**node, **actual, **removed}})
    plan = Example("plan", 10 * MS, 0, "a.log", 0, text, "")
    result = quiet()
    return judged(replace(result, templates=(replace(result.templates[0], examples=(plan,)),)))


def test_a_log_whose_statement_is_fine_has_no_finding_and_no_step():
    result = planned(3)
    assert result.findings == ()
    assert result.answer.startswith('"select column_0')
    nothing, status = result.reasons
    assert nothing == "Nothing stands out: no fault costs a tenth of the statements' time."
    assert status.startswith("Costliest statements, by share of the statement time: 100 % select column_0")
    assert status.endswith("(fine: its logged plan reads 3 rows and returns or changes 1 row).")
    assert build_log_document(result, parts=0).steps == ()


@pytest.mark.parametrize(
    ("result", "missing", "wants_plans"),
    [
        (judged(quiet()), "the log has no plan of a typical execution", True),
        (planned(3, executed=False), "its logged plan has no counted rows", True),
        # A fast execution says nothing about the slow ones.
        (planned(3, duration_ms=0.001), "the log has no plan of a typical execution", False),
        (planned(5_000), "its logged plan reads 5 000 rows and returns or changes 1 row; ", False),
    ],
)
def test_no_all_clear_beside_a_costly_statement_that_nothing_explains(result, missing, wants_plans):
    (status,) = result.reasons
    assert f"(not explained: {missing}" in status
    assert bool(settings(result)) is wants_plans


def test_a_commit_has_no_plan_to_log():
    result = planned(3)
    commit = replace(result.templates[0], text="commit", kind="COMMIT")
    again = judged(replace(result, templates=(commit,)))
    assert "not explained: it has no plan" in again.reasons[0] and settings(again) == []


def test_the_three_costliest_statements_have_a_status():
    many = tuple(replace(template(number), sum_ns=TOTAL // 4, share=0.25, examples=()) for number in range(4))
    (status,) = judged(quiet(templates=many)).reasons
    assert status.count("25 % select") == status.count("not explained") == 3


def test_a_log_without_a_costly_template_names_none_in_its_headline():
    many = tuple(replace(template(number), sum_ns=TOTAL // 50, share=0.02) for number in range(50))
    answer = judged(quiet(templates=many, templates_more=10)).answer
    assert answer.startswith("None of 60 templates took more than 2.0 % of 1.00 s of statement time. ")
    assert 'The costliest, "select column_0' in answer


def test_a_report_shows_the_costliest_templates_and_counts_the_others():
    many = tuple(replace(template(number), sum_ns=MS, share=0.0) for number in range(MOST_TEMPLATES + 7))
    document = build_log_document(judged(quiet(templates=many, templates_more=10)))
    (table,) = (section.blocks[0] for section in document.sections if section.id == "templates")
    (details,) = (section.blocks for section in document.sections if section.id == "details")
    assert len(table.rows) == len(details) == MOST_TEMPLATES
    assert table.caption == "Templates by total time; 17 other templates not shown"
    assert ("templates", "1 017") in document.facts


def forgetful(pause_ms):
    """A log in which transactions pause for over a second."""
    pauses = {"pauses": 4, "pause_ns": pause_ms * MS, "pause_max_ns": 1_200 * MS}
    one = TransactionFacts("shop", "u", "d", 10, 5_000 * MS, 100 * MS, 20, 2, 2, **pauses)
    return judged(quiet(transactions=(one,)))


def test_the_costliest_finding_is_the_answer_and_the_first_step():
    result = forgetful(4_500)
    assert result.answer.startswith(
        "Application shop pauses for up to 1.20 s inside its transactions: 80 % of the busy time. "
    )
    first, server, again = build_log_document(result, parts=0).steps
    assert "before BEGIN or after COMMIT" in first.text
    assert server.command.startswith("uncork advise log-x ")
    assert again.command == "uncork profile logs a.log"


def test_a_finding_has_a_section_with_its_bill_and_evidence():
    section = build_log_document(forgetful(4_500), parts=0).sections[0]
    assert (section.id, section.title[:25]) == ("finding-1", "1. Application shop pause")
    words = str(section.blocks)
    assert "80 % of the busy time" in words and "in 4 pauses of over a second, 4.50 s in all" in words


def test_short_pauses_in_transactions_are_no_finding():
    assert forgetful(0).findings == ()


def test_what_a_log_lacks_is_said_with_the_remedy():
    result = planned(3)
    assert [one.what for one in missing_of_log(result)] == ["a connection to the server"]
    bare = replace(result, templates=(replace(result.templates[0], examples=()),))
    plans, server = missing_of_log(bare)
    assert "auto_explain" in plans.remedy and server.remedy == "uncork advise log-x DSN"
    words = build_log_document(replace(bare, missing=(plans, server)), parts=0).reasons
    assert words[-1].startswith("Not known: existing indexes, statistics, settings and waits")


def test_lines_that_belong_to_no_entry_are_told_with_the_first_one_and_the_remedy():
    file = FileFacts("a.log", 5_000, "stderr", "%m [%p] ", 97, 1, None, 100, 97, 2, 0)
    rejected = (RejectedLine("a.log", 7, "2026-01-01 00:00:00 UTC 7 LOG:  x"),)
    result = quiet(files=(file,), rejected=1, rejected_lines=rejected)
    (warning,) = answer_log(result).warnings
    assert warning == (
        "1 of 100 lines (1.0 %) belongs to no entry and is not counted; the first is a.log:7: "
        "2026-01-01 00:00:00 UTC 7 LOG:  x (the file was read with -p '%m [%p] '). --rejected lists them. "
        "If they are log entries, give their log_line_prefix with -p."
    )
    assert lines_words(result) == (
        "100: 97 start an entry or add to one, 2 continue one or are empty, 1 belong to no entry"
    )
    assert answer_log(quiet()).warnings == ()
    assert lines_words(quiet()) == ""


def test_entries_without_a_time_are_in_no_range_and_counted():
    (warning,) = answer_log(quiet(untimed=1)).warnings
    assert warning == (
        "1 entry has no time and cannot be within the time range, so it is not counted; log_line_prefix "
        "needs %m."
    )
    (warning,) = answer_log(quiet(untimed=1_200)).warnings
    assert warning.startswith("1 200 entries have no time and cannot be within the time range, so they are ")


def test_what_uncork_itself_left_in_the_log_is_counted():
    (warning,) = answer_log(quiet(own=1_200)).warnings
    assert warning == "1 200 entries of sessions with which uncork watched the server are not counted."
