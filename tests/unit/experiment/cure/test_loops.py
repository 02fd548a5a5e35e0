"""Loops of a client become variants that send the same rows, with what was assumed and what they save."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.goldens import compare_cases
from uncork.experiment.cure.loops import (
    LEAST_ROWS,
    ROWS,
    batches_of,
    loop_arms,
    loops_experiment,
    many_rows,
    own_cost,
)
from uncork.experiment.cure.setups import Refused
from uncork.experiment.spec.schema import parse_spec
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload

READ = CapturedStatement(
    1, "SELECT note FROM item WHERE id = $1", tuple((str(n % 50),) for n in range(200)), "drawn", 3600, 1e6,
    0.5, ("item",), changes=False,
)  # fmt: skip
ADD = CapturedStatement(
    2, "INSERT INTO event (kind, body) VALUES ($1, $2)", (("1", "it's"), ("2", None)), "seen", 7200, 1e6, 0.5,
    ("event",), changes=True,
)  # fmt: skip
DROP = replace(READ, template=3, sql="DELETE FROM item WHERE id = $1", changes=True)
TYPES = {1: {1: "integer"}, 2: {1: "integer", 2: "text"}, 3: {1: "integer"}}


def finding(habit, *numbers, bill=None):
    candidate = Candidate("client", "Send many.", habit=habit)
    return Finding("any", "x", ("shop",), bill, numbers, candidates=(candidate,))


def arms(habit, *statements):
    found = finding(habit, *(one.template for one in statements))
    return loop_arms(found, found.candidates[0], statements, TYPES)


def written(habit, statement):
    """Return what is said about each way to send many rows, and the experiment about them."""
    ways, batches = arms(habit, replace(statement, sets=statement.sets[:50]))
    text = loops_experiment("Is it faster?", "dbname=copy", habit, batches, ways, budget_s=30)
    assert parse_spec(text, file="loop.toml", read=str, overrides={}).baseline == "current"
    for way in ways:
        change = way.arm
        yield "\n".join((change.name, change.text, change.sql, "", *change.against, *way.assumed))
    yield text


def test_what_the_client_does_is_compared_with_each_way_to_send_many():
    compare_cases("cure/loops", [
        ("lookups in a loop", *written("loops", READ)),
        ("inserts in a loop in a transaction", *written("loops in a transaction", ADD)),
        ("a commit for each insert", *written("commits each", ADD)),
        ("a pipeline of inserts", *written("pipelines", ADD)),
        ("a delete sends each set once and restores the data", *written("loops", DROP)),
    ])  # fmt: skip


def test_a_batch_never_has_a_key_twice():
    found = batches_of(READ, TYPES[1], many_rows(READ.sql, TYPES[1]))
    assert len(found.sets) == 40 and len(set(found.sets)) == 40
    few = replace(READ, sets=tuple((str(n),) for n in range(7)) * 3)
    found = batches_of(few, TYPES[1], many_rows(READ.sql, TYPES[1]))
    assert (found.rows, len(found.sets)) == (7, 7)
    with pytest.raises(Refused, match="too few for a batch"):
        batches_of(replace(READ, sets=READ.sets[: LEAST_ROWS - 1]), TYPES[1], many_rows(READ.sql, TYPES[1]))


def test_rows_without_a_key_repeat_their_values():
    found = batches_of(ADD, TYPES[2], many_rows(ADD.sql, TYPES[2]))
    assert len(found.sets) == ROWS and set(found.sets) == set(ADD.sets)


def test_a_statement_that_cannot_be_written_is_left_out_and_the_reason_stays_if_none_can():
    fixed = replace(ADD, template=4, sql="SELECT now()", sets=((),))
    found = finding("loops", 4, 1)
    ways, batches = loop_arms(found, found.candidates[0], (fixed, READ), TYPES)
    assert [one.statement.template for one in batches] == [1]
    assert all(set(one.arm.statements) == {1} for one in ways)
    with pytest.raises(Refused, match="no parameter"):
        loop_arms(found, found.candidates[0], (fixed,), TYPES)


def test_the_time_of_a_loop_has_the_waits_that_its_bill_saw():
    workload = CapturedWorkload((READ, ADD), (), 60.0, 1.0)
    waits = finding("commits each", 2, bill=Bill(50, 28.8, 70, 0.9))
    assert [one.mean_ns for one in own_cost(workload, waits).statements] == [1e6, 4e6]
    counted = finding("commits each", 2, bill=Bill(5, 3, 7, 0.1))
    assert own_cost(workload, counted) == workload
