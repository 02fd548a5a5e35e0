"""Answers on a log: findings have a share of time, every line is accounted for (golden/log/answers.txt)."""

import json
from dataclasses import replace

import pytest

from fakes.goldens import compare_cases, spoken
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


def forgetful(pause_ms):
    """A log in which transactions pause for over a second."""
    pauses = {"pauses": 4, "pause_ns": pause_ms * MS, "pause_max_ns": 1_200 * MS}
    one = TransactionFacts("shop", "u", "d", 10, 5_000 * MS, 100 * MS, 20, 2, 2, **pauses)
    return judged(quiet(transactions=(one,)))


def templates(count, share, **changes):
    return tuple(
        replace(template(number), sum_ns=round(TOTAL * share), share=share, **changes)
        for number in range(count)
    )


def test_answers_reasons_and_steps():
    fine = planned(3)
    commit = replace(fine.templates[0], text="commit", kind="COMMIT")
    bare = replace(fine, templates=(replace(fine.templates[0], examples=()),))
    file = FileFacts("a.log", 5_000, "stderr", "%m [%p] ", 97, 1, None, 100, 97, 2, 0)
    rejected = (RejectedLine("a.log", 7, "2026-01-01 00:00:00 UTC 7 LOG:  x"),)
    silent = quiet(executions=replace(quiet().executions, count=0), pool=None)
    results = {
        "a statement that is fine": fine,
        "a statement without a plan": judged(quiet()),
        "a plan without counted rows": planned(3, executed=False),
        "a plan of a fast execution only": planned(3, duration_ms=0.001),
        "a plan that reads much": planned(5_000),
        "a commit has no plan": judged(replace(fine, templates=(commit,))),
        "the three costliest have a status": judged(quiet(templates=templates(4, 0.25, examples=()))),
        "none is costly": judged(quiet(templates=templates(50, 0.02), templates_more=10)),
        "transactions that pause": forgetful(4_500),
        "what a log lacks": replace(bare, missing=missing_of_log(bare)),
        "no durations": answer_log(silent),
        "no durations but errors": answer_log(replace(silent, errors=log_result(templates=1).errors)),
        "a rejected line": answer_log(quiet(files=(file,), rejected=1, rejected_lines=rejected)),
        "an entry without a time": answer_log(quiet(untimed=1)),
        "entries without a time": answer_log(quiet(untimed=1_200)),
        "entries of uncork": answer_log(quiet(own=1_200)),
    }
    cases = []
    for name, result in results.items():
        document = build_log_document(result, parts=0)
        cases.append((name, result.answer, *spoken(document), "\n".join(result.warnings)))
    compare_cases("log/answers", cases)


@pytest.mark.parametrize(
    ("result", "wants_plans"),
    [
        (planned(3), False),
        (judged(quiet()), True),
        (planned(3, executed=False), True),
        # A fast execution says nothing about the slow ones.
        (planned(3, duration_ms=0.001), False),
        (planned(5_000), False),
    ],
)
def test_plans_are_asked_for_only_if_the_log_has_none_that_counts(result, wants_plans):
    assert any("auto_explain" in one.remedy for one in result.missing) is wants_plans


def test_a_report_shows_the_costliest_templates_and_counts_the_others():
    many = tuple(replace(template(number), sum_ns=MS, share=0.0) for number in range(MOST_TEMPLATES + 7))
    document = build_log_document(judged(quiet(templates=many, templates_more=10)))
    (table,) = (section.blocks[0] for section in document.sections if section.id == "templates")
    (details,) = (section.blocks for section in document.sections if section.id == "details")
    assert len(table.rows) == len(details) == MOST_TEMPLATES
    assert table.caption == "Templates by total time; 17 other templates not shown"
    assert ("templates", "1 017") in document.facts


def test_a_finding_has_a_section_with_its_bill_and_evidence():
    section = build_log_document(forgetful(4_500), parts=0).sections[0]
    assert (section.id, section.title[:25]) == ("finding-1", "1. Application shop pause")
    words = str(section.blocks)
    assert "80 % of the busy time" in words and "in 4 pauses of over a second, 4.50 s in all" in words
    assert forgetful(0).findings == ()


def test_lines_are_counted_only_if_some_were_rejected():
    assert lines_words(quiet()) == ""
    file = FileFacts("a.log", 5_000, "stderr", "%m [%p] ", 97, 1, None, 100, 97, 2, 0)
    assert lines_words(quiet(files=(file,), rejected=1)) == (
        "100: 97 start an entry or add to one, 2 continue one or are empty, 1 belong to no entry"
    )
