"""Statements that read a whole table for a few rows by chance, or for their number."""

import pytest

from fakes.findings import compare_findings
from fakes.planned_evidence import column, evidence, plan, primary_key, statement, table
from uncork.diagnosis.rules.plans import whole_tables

COLUMNS = {"post": ("id", "author", "title"), "author": ("id",)}
POSTS = (column("post", "id"), column("post", "author", distinct=40), column("post", "title", type="text"))

KEY = (primary_key("post", "id"),)


def seen(sql, *plans, rows=5.0, size=200_000, calls=600, constraints=KEY):
    one = statement(sql, COLUMNS, *plans, rows=rows, calls=calls)
    return evidence(one, tables=(table("post", size),), columns=POSTS, constraints=constraints)


def drawn(sql="SELECT id, title FROM post ORDER BY random() LIMIT $1", **facts):
    return list(whole_tables.find_random_order(seen(sql, **facts)))


@pytest.mark.parametrize(
    "healthy",
    [
        drawn("SELECT id, title FROM post ORDER BY id LIMIT $1"),
        drawn("SELECT id, title FROM post ORDER BY random()", rows=200_000.0),
        drawn(size=900),
        drawn(calls=3),
        drawn(rows=150_000.0),
        drawn("SELECT p.id FROM post p JOIN author a ON a.id = p.author ORDER BY random() LIMIT $1"),
    ],
)
def test_small_tables_and_other_orders_are_left_alone(healthy):
    assert healthy == []


SCAN = "Aggregate  (cost=9.0..9.0 rows=1 width=8)\n  ->  Seq Scan on post  (cost=0.0..8.0 rows={} width=0)"


def counted(sql="SELECT count(*) FROM post", rows_of_plan=None, source="drawn", **facts):
    plans = [] if rows_of_plan is None else [plan(SCAN.format(rows_of_plan), source)]
    return list(whole_tables.find_count(seen(sql, *plans, rows=1.0, **facts)))


@pytest.mark.parametrize(
    "healthy",
    [
        counted("SELECT count(*) FROM post WHERE author = $1", 5_000),  # an index makes it cheap
        counted("SELECT count(*) FROM post WHERE author = $1", 195_000, "generic"),
        counted("SELECT count(*) FROM post WHERE author = $1"),
        counted("SELECT author, count(*) FROM post GROUP BY author"),
        counted("SELECT count(*), max(id) FROM post"),
        counted("SELECT count(DISTINCT author) FROM post"),
        counted(calls=3),
        counted(size=5_000),
    ],
)
def test_small_counts_and_reports_are_left_alone(healthy):
    assert healthy == []


def test_what_is_found_word_for_word():
    compare_findings("chance_and_counts", [
        ("rows by chance are drawn by the key", drawn()),
        ("without a key of whole numbers blocks are drawn", drawn(constraints=()),
         drawn("SELECT id FROM post WHERE author = $1 ORDER BY random() LIMIT $2")),
        ("a count of all rows is capped or estimated", counted()),
        ("the values of a column are counted for their number",
         counted("SELECT count(author) FROM post"), counted("SELECT count(1) FROM post")),
        ("a count of most rows has no estimate",
         counted("SELECT count(*) FROM post WHERE author <> $1", 195_000)),
    ])  # fmt: skip
