"""Tables of time by step: of templates in a log, by the kernel's counts, and of a load's transactions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fakes.database_results import database_result
from tests.fakes.load_results import closed_result
from tests.fakes.log_results import log_result

from uncork.model.results.database import KernelFacts
from uncork.model.results.load import LoadStep, StepGap
from uncork.report.database.tables import kernel_table
from uncork.report.load.document import build_load_document
from uncork.report.load.tables import pool_sentence, step_gap_sentences, steps_table
from uncork.report.log.tables import protocol_table


def cells(table):
    return [[value.text for value in row] for row in table.rows]


def test_templates_are_sorted_by_processor_time_and_the_rest_is_waiting():
    found = database_result()
    first, second, *others = found.templates
    slow = KernelFacts(user_ns=2e9, system_ns=1e9, read_bytes=8192, written_bytes=0)
    execution_ns = first.statements.execution_ns
    kernels = (slow, KernelFacts(297e9, 0.0, 0, 0))
    counted = (replace(one, kernel=kernel) for one, kernel in zip((first, second), kernels, strict=True))
    whole = replace(found, templates=(*counted, *others), kernel_whole_ns=3_000.0)
    table = kernel_table(whole, 10, width=60)
    parallel, row = cells(table)
    assert row[:3] == ["3.00 s", "1.0 %", "2.00 s"]
    assert table.rows[1][4].sort == round(execution_ns - 3e9)
    assert parallel[4] == "0 ns"  # parallel workers used more than the elapsed time
    assert "shorter than" not in table.caption
    coarse = kernel_table(replace(whole, kernel_whole_ns=12e6), 1, width=60)
    assert "executions shorter than 12.0 ms count as user time as a whole" in coarse.caption
    assert "1 other template not shown" in coarse.caption
    assert kernel_table(found, 10, width=60) is None


def test_parse_bind_and_execute_are_shown_by_template():
    found = log_result(templates=2)
    table = protocol_table(found, 1, width=60)
    assert cells(table)[0][:2] == ["300 µs", "0 ns"]
    assert table.caption.endswith("; 1 other template not shown")
    none = tuple(replace(one, parse=one.bind) for one in found.templates)
    assert protocol_table(replace(found, templates=none), 9, width=60) is None


def test_the_steps_of_a_transaction_say_where_they_come_from():
    assert steps_table(closed_result()) is None
    steps = (LoadStep("network", 2e5, 0.2), LoadStep("execute", 7e5, 0.7), LoadStep("server", 1e5, 0.1))
    table = steps_table(replace(closed_result(), steps=steps))
    assert [row[1:] for row in cells(table)] == [["200 µs", "20 %"], ["700 µs", "70 %"], ["100 µs", "10 %"]]
    assert "1.00 ms on average" in table.caption
    assert "planning" in table.rows[2][0].note
    planned = (LoadStep("plan", 1e5, 0.1), *steps[1:])
    assert "planning" not in steps_table(replace(closed_result(), steps=planned)).rows[2][0].note


def test_a_step_from_the_log_is_no_part_of_the_rest():
    steps = (LoadStep("parse", 1e5, 0.1), LoadStep("bind", 1e5, 0.1), LoadStep("server", 8e5, 0.8))
    table = steps_table(replace(closed_result(), steps=steps))
    assert [row[0].note for row in table.rows] == [
        "the server's log",
        "the server's log, with planning",
        "samples: sending results, waiting for a processor",
    ]


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ((LoadStep("pool", 9e7, 0.9), LoadStep("unknown", 1e7, 0.1)), "waits 90.0 ms for a connection of Pg"),
        ((LoadStep("pool", 2e7, 0.2), LoadStep("unknown", 8e7, 0.8)), None),
        ((LoadStep("unknown", 8e7, 1.0),), None),
        ((), None),
    ],
)
def test_a_pool_is_named_if_it_takes_most_of_the_time(steps, sentence):
    result = replace(closed_result(), steps=steps)
    found = pool_sentence(result)
    document = build_load_document(result)
    assert (found is None) if sentence is None else (sentence in found and found in document.reasons)
    assert any("default_pool_size" in one.text for one in document.steps) == (sentence is not None)


def test_the_next_loads_are_not_watched():
    words = "-c 4 --pooler 'host=a dbname=pgbouncer' --postgres=dbname=b --logs x.log --advise -T 5 bench"
    run = replace(closed_result().run, reproduce=f"uncork load sql {words}")
    commands = [one.command for one in build_load_document(replace(closed_result(), run=run)).steps]
    assert any(one.startswith("uncork load sql -c 4 -T 5 bench -R ") for one in commands)
    assert not any("pgbouncer" in one or "x.log" in one or "=b" in one for one in commands)


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (StepGap("pool", "no source"), ("part of the unknown rest", "add --pooler")),
        (
            StepGap("pool", "incomplete", 3, 1000),
            ("counted 3 statements, the load sent 1 000", "connects to"),
        ),
        (StepGap("pool", "others", 30, 10), ("counted 30 statements", "no other clients")),
        (StepGap("parse", "no source"), ("add --logs", "log_min_duration_statement = 0")),
        (StepGap("parse", "simple protocol"), ("one duration", "-M extended")),
        (StepGap("parse", "incomplete", 3, 10), ("has 3 statements, the load sent 10", "sample_rate = 1")),
        (StepGap("parse", "others", 30, 10), ("has 30 statements", "no other clients")),
        (StepGap("parse", "unlabelled", 0, 10), ("log_duration", "log_min_duration_statement = 0")),
    ],
)
def test_a_step_that_is_unknown_is_named_with_what_would_show_it(gap, words):
    (sentence,) = step_gap_sentences(replace(closed_result(), step_gaps=(gap,)))
    assert all(one in sentence for one in words)
