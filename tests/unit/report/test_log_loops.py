"""Statements that clients repeat in loops: from the rows of a log to the findings of its report."""

from dataclasses import replace

import pyarrow as pa
import pytest

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


def test_templates_in_turn_are_one_finding_with_the_query_before():
    (one,) = findings({}, {"template": 2, "elapsed_us": 500_000, "sum_us": 100_000})
    assert one.rule == "one-by-one" and one.templates == (1, 2)
    assert one.headline == "A client sends 1 600 statements one by one within transactions"
    assert one.bill.share == pytest.approx(1.4 / 1.8)  # 0.9 s of statements, and 0.9 s of waits outside
    assert (
        "1 600 executions, up to 60 in a row, took 1.40 s, of which the server waited 900 ms"
        in (one.evidence[0])
    )
    assert one.evidence[1] == "They follow each execution of select id from orders"


def test_a_batch_in_a_transaction_is_written_with_one_statement():
    (one,) = findings({"template": 2, "parent": None, "parents": 0})
    assert one.headline == "A client inserts 800 rows into log one by one within transactions"
    assert "Insert many rows with one statement" in one.candidates[0].text


@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_pipeline_does_not_let_the_server_wait(in_transaction):
    row = {"template": 2, "parent": None, "parents": 0, "in_transaction": in_transaction}
    if not in_transaction:
        row |= {"parent": 0, "parents": 40}
    (one,) = findings({**row, "groups": 25, "at_once": 14})
    assert one.headline == "A client inserts 800 rows into log in a pipeline"
    assert one.evidence == (
        "800 executions, up to 60 in a row, took 900 ms, 500 ms of it between executions, with their "
        "messages.",
        "The client sends them in a pipeline: it does not wait for each answer.",
        "A driver's batch is no bulk statement: the server executes each statement on its own.",
        *(() if in_transaction else ("They follow each execution of select id from orders",)),
    )
    (candidate,) = one.candidates
    assert (candidate.habit, "pipeline" in candidate.text) == ("pipelines", False)
    assert candidate.text.startswith(
        "Insert many rows with one statement (several VALUES, unnest of arrays, COPY)"
    )


@pytest.mark.parametrize(("groups", "at_once"), [(30, 4), (25, 0), (1, 1), (0, 0)])
def test_a_loop_whose_statements_seldom_follow_at_once_waits_for_each_answer(groups, at_once):
    (one,) = findings({"template": 2, "parent": None, "parents": 0, "groups": groups, "at_once": at_once})
    assert one.headline == "A client inserts 800 rows into log one by one within transactions"
    assert "the server waited" in one.evidence[0]


def test_a_lookup_after_a_list_names_its_table():
    (one,) = findings({"in_transaction": False})
    assert one.rule == "lookup-loop"
    assert one.headline == "A client looks up rows of items one by one, up to 60 in a row"


def test_a_loop_that_takes_little_time_is_no_finding():
    assert findings({"elapsed_us": 40_000, "sum_us": 30_000}) == ()


@pytest.mark.parametrize(("executions", "many"), [((20, 900, 0), 1), ((200, 900, 0), 0)])
def test_outside_of_transactions_the_query_before_must_be_followed_by_the_loop(executions, many):
    loops = found({"in_transaction": False}, executions=executions)
    assert len(loops) == many
    result = replace(log_result(templates=1), loops=loops)
    assert loop_notes(result) == ({1: "repeated up to 60 times in a session"} if many else {})
