"""What the report says of batches."""

import dataclasses

import pytest

from fakes.results import bare_result, comparison
from uncork.model.results.experiment import ArmMetric, BatchFacts, Cost, FactorFacts, PublishedFigure
from uncork.report.experiment.batches import atomicity_words
from uncork.report.experiment.document import build_document
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text

CELL = (("rows", "1000"),)


def batch(variant, strategy, *, executions, round_trips, commits=1, implicit=False, chunk=1, cell=CELL):
    rows = int(cell[0][1])
    return BatchFacts(
        cell, "select", variant, strategy, rows, chunk, executions, round_trips, commits, implicit
    )


def cost(variant, server_ns, sent):
    none = dict.fromkeys(
        ("client_user_ns", "client_system_ns", "shared_hit", "shared_read", "shared_dirtied", "temp_bytes")
    )
    return Cost(
        cell=CELL,
        workload="select",
        variant=variant,
        operations=10,
        server_user_ns=server_ns,
        server_system_ns=0.0,
        wal_bytes=None,
        wal_records=None,
        rows=1000.0,
        sent_bytes=sent,
        received_bytes=None,
        **none,
    )


def metric(variant, value):
    return ArmMetric(CELL, "select", variant, False, 10, 0, value, ())


ROWS = batch("char", "rows", executions=1000, round_trips=1000, commits=1000)
PIPELINE = batch("uuid", "pipeline", executions=1000, round_trips=1, implicit=True)
UNNEST = batch("bytea", "unnest", executions=1, round_trips=1, implicit=True, chunk=1000)
FIGURE = PublishedFigure(
    name="peak CPU",
    before="14.3 cores",
    after="3 cores",
    published_ratio=0.21,
    cost="server CPU",
    unit="ns",
    cell=CELL,
    workload="select",
    variants=("char", "uuid"),
    measured=(200_000.0, 50_000.0),
    note="a peak there, a mean here",
)


@pytest.fixture(scope="module")
def result():
    found = bare_result(comparison("uuid", cell=CELL), factors=(FactorFacts("rows", ("1000",), True),))
    return dataclasses.replace(
        found,
        batches=(ROWS, PIPELINE),
        costs=(cost("char", 200e6, 500e3), cost("uuid", 50e6, 500e3)),
        metrics=(metric("char", 400e6), metric("uuid", 100e6)),
        figures=(FIGURE, dataclasses.replace(FIGURE, name="disk", cost="", measured=None)),
    )


def tables(result):
    (section,) = [one for one in build_document(result).sections if one.id == "batches"]
    return [block for block in section.blocks if hasattr(block, "columns")]


def texts(table):
    return [[(value.text, value.note) for value in row] for row in table.rows]


def test_costs_are_divided_by_the_rows_of_a_batch(result):
    table = tables(result)[0]
    assert [column.title for column in table.columns] == [
        "cell",
        "variant",
        "time",
        "round trips",
        "statements",
        "server CPU",
        "sent",
    ]
    assert texts(table) == [
        [
            ("rows 1 000", ""),
            ("char", ""),
            ("400 µs", ""),
            ("1", ""),
            ("1", ""),
            ("200 µs", ""),
            ("500 B", ""),
        ],
        [
            ("rows 1 000", ""),
            ("uuid", ""),
            ("100 µs", "−75 %"),
            ("0.001", ""),
            ("1", ""),
            ("50.0 µs", "−75 %"),
            ("500 B", ""),
        ],
    ]


def test_what_a_batch_is_stands_beside_its_speed(result):
    rows, pipeline = texts(tables(result)[1])
    assert rows[2:] == [("1 000", ""), ("1 000", ""), ("the earlier rows stay", ""), rows[5]]
    assert pipeline[1] == ("one statement per row, all sent without waiting", "")
    assert "implicit transaction" in pipeline[4][0]
    assert pipeline[5] == ("all until the batch ends", "")


def test_published_figures_stand_beside_what_corresponds(result):
    first, second = texts(tables(result)[2])
    assert [text for text, _ in first[1:5]] == [
        "14.3 cores → 3 cores",
        "−79 %",
        "server CPU: 200 µs → 50.0 µs",
        "−75 %",
    ]
    assert second[3] == ("no counterpart", "")


def test_the_change_of_atomicity_is_said_in_words():
    assert atomicity_words((ROWS, PIPELINE, UNNEST)) == (
        "Not only speed differs: char commits each row separately, so a failing row leaves the earlier rows "
        "in place; uuid and bytea run each batch as one transaction, so a failing row undoes the whole "
        "batch, and hold every row lock until the batch ends; uuid does so without an explicit BEGIN."
    )


@pytest.mark.parametrize("batches", [(), (ROWS,), (PIPELINE, UNNEST)])
def test_nothing_is_said_where_nothing_changes(batches):
    assert atomicity_words(batches) == ""


def test_the_section_is_in_every_form(result):
    for text in (markdown_text(build_document(result)), html_page(build_document(result))):
        assert "Costs per row" in text
        assert "one statement per row, all sent without waiting" in text
    assert '"strategy": "pipeline"' in json_text(result)


def test_experiments_without_batches_have_no_such_section():
    assert all(section.id != "batches" for section in build_document(bare_result(comparison())).sections)
