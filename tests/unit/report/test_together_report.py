"""The report on loads that started together: one answer, one table, one time axis, and accounts of each."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from fakes.http_results import http_result
from fakes.load_results import closed_result, open_result
from uncork.model.results.load import LoadOfTogether, TogetherResult, TogetherRunFacts
from uncork.report.load.together import answer_together, build_together_document
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.schemas import result_schema

RUN = TogetherRunFacts("together-1", "complete", "2026-05-31T08:30:00", "uncork load together", "0.1.0")


def together(*loads, apart_ns: int = 0) -> TogetherResult:
    named = tuple(LoadOfTogether(name, load) for name, load in loads)
    return answer_together(TogetherResult(RUN, "", (), apart_ns, named))


def test_both_throughputs_are_the_answer_and_each_load_keeps_its_own():
    found = together(("sql", closed_result()), ("http", http_result()))
    assert found.answer.startswith("Together, the loads handled 400 transactions a second (sql) and ")
    for one in found.loads:
        assert one.load.answer.rstrip(".") in found.answer
    (table,) = build_together_document(found).sections[0].blocks
    rows = {row[0].text: [value.text for value in row[1:]] for row in table.rows}
    assert rows["operations"] == ["transaction", "request"]
    for place, one in enumerate(found.loads):
        assert rows["started"][place].replace("\u202f", "").replace(" ", "") == str(one.load.counts.started)
    jsonschema.validate(json.loads(json_text(found)), result_schema("together-result"))
    assert "sql-latency" in html_page(build_together_document(found))


@pytest.mark.parametrize(("apart_ns", "warned"), [(1_000_000, False), (90_000_000, True)])
def test_loads_that_did_not_start_together_are_named(apart_ns, warned):
    found = together(("sql", closed_result()), ("http", http_result()), apart_ns=apart_ns)
    assert any("started 90.0 ms apart" in text for text in found.warnings) == warned


def test_a_load_that_ended_long_before_the_other_is_named():
    short = closed_result()
    short = replace(short, run=replace(short.run, elapsed_ns=short.run.elapsed_ns // 2))
    found = together(("sql-1", short), ("sql-2", closed_result()))
    assert found.warnings[0].startswith("Load sql-1 ended ") and "sql-2 was alone" in found.warnings[0]


def test_a_warning_about_several_loads_is_given_once():
    (warning, *_) = answer_together(together(("a", closed_result()))).loads[0].load.warnings
    found = together(("a", closed_result()), ("b", closed_result()), ("c", http_result()))
    assert f"a and b: {warning}" in found.warnings
    assert f"a: {warning}" not in found.warnings


def test_arrivals_that_were_not_sent_are_no_failures_but_said():
    load = open_result()
    sent = replace(load, counts=replace(load.counts, failed=0, errors={}, unsent=9))
    assert "and arrivals not sent in sql" in together(("sql", sent), ("http", http_result())).answer
