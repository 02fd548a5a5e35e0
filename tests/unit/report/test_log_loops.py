"""Statements that clients repeat in loops: from the rows of a log to the sentences of its report."""

from dataclasses import replace

import pyarrow as pa
import pytest

from fakes.log_results import MS, log_result
from uncork.analysis.log.loops import loops_of
from uncork.model.results.log import LogTimes
from uncork.report.log.answer import answer_log
from uncork.report.log.loops import loop_notes

TEXTS = ["select id from orders", "select name from items where id = ?", "insert into log values (?)"]
ROW = {
    "template": 1,
    "parent": 0,
    "in_transaction": True,
    "stretches": 20,
    "executions": 800,
    "parents": 20,
    "squares": 32_000.0,
    "longest": 60,
    "elapsed_us": 900_000,
    "sum_us": 400_000,
}


def found(*rows, executions=(20, 900, 900)):
    return loops_of(pa.Table.from_pylist([{**ROW, **row} for row in rows]), TEXTS, executions)


def reasons(*rows):
    """Return what a report says of loops in a log of a second without any other finding."""
    result = log_result(templates=1)
    quiet = replace(
        result,
        templates=(replace(result.templates[0], lists=None, repetition=None),),
        executions=LogTimes(1_000, 1_000 * MS, MS),
        transactions=(),
        errors=(),
        server=replace(result.server, lock_waits=()),
        loops=found(*rows),
    )
    return answer_log(quiet).reasons


def test_templates_in_turn_are_one_finding_with_their_ratio_to_the_query_before():
    (reason,) = reasons({}, {"template": 2, "elapsed_us": 500_000, "sum_us": 100_000})
    assert reason == (
        "Repeated in transactions (N+1): 2 templates ran in turn, 40 times each for every execution of the "
        "query before them (20 executions). With the waits before them they take 74 % of the time; one "
        "statement for all rows (a join, or WHERE key = ANY of a list) would save up to 1 560 round trips "
        "and 900 ms of waiting: select name from items where id = ?; the query before them: select id from "
        "orders"
    )


def test_a_batch_in_a_transaction_is_told_as_a_fact():
    (reason,) = reasons({"template": 2, "parent": None, "parents": 0})
    assert reason.startswith(
        "Repeated in transactions: one template ran 40 times per transaction on average and up to 60 times, "
        "in 20 transactions."
    )
    (reason,) = reasons({"parent": None, "parents": 0, "stretches": 1, "executions": 60})
    assert "one template ran 60 times in one transaction. " in reason


def test_a_loop_that_takes_little_time_is_no_finding():
    assert reasons({"elapsed_us": 40_000, "sum_us": 30_000}) == ()


@pytest.mark.parametrize(("executions", "many"), [((20, 900, 0), 1), ((200, 900, 0), 0)])
def test_outside_of_transactions_the_query_before_must_be_followed_by_the_loop(executions, many):
    loops = found({"in_transaction": False}, executions=executions)
    assert len(loops) == many
    result = replace(log_result(templates=1), loops=loops)
    assert loop_notes(result) == ({1: "repeated up to 60 times in a session"} if many else {})
