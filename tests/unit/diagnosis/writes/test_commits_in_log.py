"""Rows that are written one by one in a log, and requests that each write one."""

from dataclasses import replace

import pytest

from fakes.log_results import MS, contributions, log_result
from uncork.diagnosis.evidence import Evidence, Piece, Statement
from uncork.diagnosis.findings import find_findings
from uncork.diagnosis.rules.writes import row_by_row
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.model.database.wait_classes import CPU
from uncork.model.results.log import Repetition

INSERT = "insert into event (kind) values (?)"


def logged(*, rows, executions=9_000, in_rows=9_000):
    node = PlanNode("ModifyTable", "event", "event", "", 0.0, 1.0, 0.0, 0, milliseconds=0.1)
    template = replace(
        log_result(templates=1).templates[0],
        text=INSERT,
        executions=executions,
        mean_ns=2.0 * MS,
        repetition=Repetition(rows, in_rows, in_rows // rows, 1_800 * MS, 900 * MS),
        applications=contributions("loader"),
    )
    statement = Statement(0, INSERT, calls=executions, plans=(StatementPlan(0, "executed", node, ""),))
    log = replace(log_result(templates=1), templates=(template,), transactions=())
    pieces = (Piece(0, CPU, "", "loader", "app", (0.5,) * 20),)
    return Evidence(60.0, pieces, {0: statement}, log=log, log_numbers={0: 0})


def test_a_loader_commits_each_row():
    (found,) = find_findings(logged(rows=2), [row_by_row.find_commits_in_log])
    assert found.headline == "Application loader inserts 9 000 rows into event with a commit for each"


@pytest.mark.parametrize(
    "facts",
    [
        {"rows": 12},  # twelve sessions that each insert one row for each request
        {"rows": 3, "in_rows": 2_000},  # most of them follow other statements
    ],
)
def test_requests_that_each_insert_one_row_are_no_batch(facts):
    assert find_findings(logged(**facts), [row_by_row.find_commits_in_log]) == ()
