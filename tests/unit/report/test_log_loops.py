"""Statements that clients repeat in loops: from the rows of a log to the findings of its report."""

from dataclasses import replace

import pyarrow as pa
import pytest

from fakes.findings import compare_findings
from fakes.log_results import MS, log_result
from uncork.analysis.log.evidence import evidence_of_log
from uncork.analysis.log.result import loops_of
from uncork.diagnosis.findings import find_findings
from uncork.report.log.tables import loop_notes

TEXTS = ["select id from orders", "select name from items where id = ?", "insert into log values (?)"]
ROW = {
    "template": 1,
    "parent": 0,
    "server": "",
    "in_transaction": True,
    "stretches": 20,
    "executions": 800,
    "parents": 20,
    "squares": 32_000.0,
    "groups": 0,
    "at_once": 0,
    "longest": 60,
    "elapsed_us": 900_000,
    "sum_us": 400_000,
    "file": 0,
    "offset": 0,
}


def found(*rows, executions=(20, 900, 900)):
    return loops_of(pa.Table.from_pylist([{**ROW, **row} for row in rows]), TEXTS, executions)


def findings(*rows):
    """Return what a log of a second shows of loops, without anything else that stands out."""
    result = log_result(templates=3)
    templates = (
        replace(
            one,
            number=place,
            text=TEXTS[place],
            sum_ns=300 * MS,
            lists=None,
            repetition=None,
            examples=(),
            applications=(),
        )
        for place, one in enumerate(result.templates)
    )
    quiet = replace(
        result,
        first_us=0,
        last_us=1_000_000,
        templates=tuple(templates),
        transactions=(),
        errors=(),
        server=replace(result.server, lock_waits=()),
        loops=found(*rows),
    )
    return find_findings(evidence_of_log(quiet))


BATCH = {"template": 2, "parent": None, "parents": 0}
PIPELINE = {"groups": 25, "at_once": 14}


def test_findings_word_for_word():
    many = ((30, 4), (25, 0), (1, 1), (0, 0))
    compare_findings("loops_in_logs", [
        ("templates in turn are a finding with the query before",
         findings({}, {"template": 2, "elapsed_us": 500_000, "sum_us": 100_000})),
        ("a batch in a transaction is written with one statement", findings(BATCH)),
        ("a pipeline does not let the server wait", findings(BATCH | PIPELINE)),
        ("a pipeline outside of transactions",
         findings({**BATCH, **PIPELINE, "in_transaction": False, "parent": 0, "parents": 40})),
        ("statements that seldom follow at once wait for each answer",
         *(findings({**BATCH, "groups": groups, "at_once": at_once}) for groups, at_once in many)),
        ("a look-up after a list names its table", findings({"in_transaction": False})),
    ])  # fmt: skip


def test_a_loop_that_takes_little_time_is_no_finding():
    assert findings({"elapsed_us": 40_000, "sum_us": 30_000}) == ()


@pytest.mark.parametrize(("executions", "many"), [((20, 900, 0), 1), ((200, 900, 0), 0)])
def test_outside_of_transactions_the_query_before_must_be_followed_by_the_loop(executions, many):
    loops = found({"in_transaction": False}, executions=executions)
    assert len(loops) == many
    result = replace(log_result(templates=1), loops=loops)
    assert loop_notes(result) == ({1: "repeated up to 60 times in a session"} if many else {})
