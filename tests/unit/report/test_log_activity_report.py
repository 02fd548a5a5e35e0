"""The slowest statements, hours, sessions and background work of a log in its reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.goldens import terminal
from fakes.log_results import BEGIN_US, MS, log_result
from fakes.terminals import markdown_of
from uncork.model.results.log import (
    CheckpointWork,
    HourFacts,
    LeftOut,
    LogFilter,
    LogResult,
    Peak,
    QueryId,
    SessionFacts,
    SessionTally,
    SlowStatement,
    VacuumWork,
)
from uncork.report.blocks import Table
from uncork.report.log.answer import answer_log
from uncork.report.log.document import build_log_document, render_log_terminal
from uncork.report.log.tables import activity_tables, hours_table, session_tables, slowest_table

HOUR_US = 3_600_000_000


def slow(number: int) -> SlowStatement:
    text = f"SELECT *\n\tFROM orders\n  WHERE id = {number}"
    return SlowStatement(
        (90 - number) * MS, BEGIN_US, 0, "ada", "shop", "web", "10.0.0.7", "a.log", 5, text, "$1 = '7'"
    )


@pytest.fixture
def full() -> LogResult:
    """A log with all that this file is about."""
    base = log_result()
    tallies = (SessionTally("shop", 9, 8, 800 * MS, 300 * MS), SessionTally("stock", 1, 0, 0, 0))
    server = replace(
        base.server,
        checkpoint_work=CheckpointWork(
            *(4, 2, 1, 1, 1_000, 0.03, 4, 8, 12, 2_560_000.0, 4_096_000, 2_048_000.0),
            *(16_000 * MS, 2_000 * MS, 400 * MS, 44),
        ),
        vacuum_work=(
            VacuumWork("d.s.orders", False, 2, 60 * MS, 40 * MS, 2, 6, 200, 14, 34, 8, 10, 20, 4, 4_912),
            VacuumWork("d.s.orders", True, 3, 9 * MS, 4 * MS, 0, 0, 0, 0, 77, 1, 2, 0, 0, 0),
        ),
    )
    first = replace(base.templates[0], query_ids=(QueryId("-77", 5), QueryId("88", 1)))
    return replace(
        base,
        server=server,
        templates=(first, *base.templates[1:]),
        p50_ns=2 * MS,
        p95_ns=30 * MS,
        p99_ns=70 * MS,
        peak=Peak(BEGIN_US + 7_000_000, 1_234),
        slowest=tuple(slow(number) for number in range(60)),
        hours=(
            HourFacts(BEGIN_US, 70, 700 * MS, MS, 2 * MS, 3 * MS, 0),
            HourFacts(BEGIN_US + HOUR_US, 0, 0, None, None, None, 5),
        ),
        sessions=SessionFacts(10, 8, 800 * MS, 300 * MS, 90 * MS, 290 * MS, 5, None, tallies, (), (), ()),
        filters=LogFilter(
            ("shop",), (), (), (), (), 312, (LeftOut("database", "stock", 300), LeftOut("database", "", 12))
        ),
    )


def rows(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[value.text for value in row] for row in table.rows]


def test_the_terminal_shows_the_quantiles_at_once_and_the_rest_in_full(full):
    def render(result, console, **options):
        render_log_terminal(answer_log(result), console, top=3, **options)

    short = terminal(render, 100)(full)
    assert "p50 2.00 ms, p95 30.0 ms, p99 70.0 ms, peak 1 234 statements a second" in " ".join(short.split())
    words = "The filters (database shop) left out 312 of 412 entries: 312 by database (stock 300, (none) 12)"
    assert words in " ".join(short.replace("  ", " ").split())
    titles = ("Slowest single statements", "By hour", "Sessions by user", "Work of checkpoints")
    assert not [title for title in titles if title in short]
    long = terminal(lambda result, console: render(result, console, full=True), 100)(full)
    assert not [title for title in titles if title not in long]
    assert "90.0 ms  2026-05-30 22:00:00  database shop, user ada, web, from 10.0.0.7" in long
    assert "    SELECT * FROM orders WHERE id = 0\n" in long and "id = 3\n" not in long


def test_tables_have_what_was_stored(full):
    whose = ["2026-05-30 22:00:00", "shop", "ada", "web", "10.0.0.7"]
    assert rows(slowest_table(full, 2)) == [
        ["90.0 ms", *whose, "SELECT * FROM orders WHERE id = 0"],
        ["89.0 ms", *whose, "SELECT * FROM orders WHERE id = 1"],
    ]
    assert rows(hours_table(full.hours, 300)) == [
        ["2026-05-30 22:00", "70", "700 ms", "1.00 ms", "2.00 ms", "3.00 ms", "0"],
        ["2026-05-30 23:00", "0", "", "", "", "", "5"],
    ]
    assert hours_table(full.hours[:1], 300) is None
    whole, users = session_tables(full.sessions)
    assert rows(whole) == [["10", "8", "100 ms", "90.0 ms", "290 ms", "300 ms", "5", "at the beginning"]]
    assert rows(users) == [["shop", "9", "8", "800 ms", "100 ms", "300 ms"], ["stock", "1", "0", "", "", ""]]


def test_background_work_is_shown_by_table(full):
    tables = {table.caption: rows(table) for table in activity_tables(full)}
    assert ["buffers written", "1 000; 3.0 % of shared_buffers each"] in tables["Work of checkpoints"]
    assert tables["Autovacuum by table"] == [["d.s.orders", "2", "60.0 ms", "40.0 ms", "200", "14", "6"]]
    assert tables["Autoanalyze by table"] == [["d.s.orders", "3", "9.00 ms", "77", "1", "2", "0 B"]]


def test_the_page_has_everything(full):
    page = markdown_of(build_log_document)(answer_log(full))
    for text in (
        "Slowest single statements",
        "by the hour",
        "Sessions by user",
        "Work of checkpoints",
        "-77, 88",
    ):
        assert text in page
