"""Statements that read a whole table for a few rows by chance, or for their number."""

import pytest

from fakes.planned_evidence import column, evidence, plan, primary_key, statement, table
from uncork.advise.rules.plans import whole_tables
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

COLUMNS = {"post": ("id", "author", "title"), "author": ("id",)}
POSTS = (column("post", "id"), column("post", "author", distinct=40), column("post", "title", type="text"))

KEY = (primary_key("post", "id"),)


def seen(sql, *plans, rows=5.0, size=200_000, calls=600, constraints=KEY):
    one = statement(sql, COLUMNS, *plans, rows=rows, calls=calls)
    return evidence(one, tables=(table("post", size),), columns=POSTS, constraints=constraints)


def drawn(sql="SELECT id, title FROM post ORDER BY random() LIMIT $1", **facts):
    return list(whole_tables.find_random_order(seen(sql, **facts)))


def test_rows_by_chance_are_drawn_by_the_key():
    (one,) = drawn()
    assert one.headline == "ORDER BY random() reads and sorts all rows of post for 5"
    assert fits(finding_headline(one))
    first, second, third = one.candidates
    assert first.sql.startswith("SELECT * FROM post WHERE id = ANY (ARRAY(SELECT least + floor(random() * ")
    assert first.sql.endswith("ORDER BY random() LIMIT 5;")  # the least values would come first
    assert "TABLESAMPLE SYSTEM (0.062)" in second.text
    assert not any(each.same_answers for each in (first, second, third))


def test_without_a_key_of_whole_numbers_blocks_are_drawn():
    (one,) = drawn(constraints=())
    assert "TABLESAMPLE" in one.candidates[0].text
    (filtered,) = drawn("SELECT id FROM post WHERE author = $1 ORDER BY random() LIMIT $2")
    assert [each.kind for each in filtered.candidates] == ["ddl"]


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


def test_a_count_of_all_rows_is_capped_or_estimated():
    (one,) = counted()
    assert one.headline == "Each call counts 200 000 rows of post one by one"
    assert fits(finding_headline(one))
    assert one.candidates[0].sql == "SELECT count(*) FROM (SELECT FROM post LIMIT 1001) AS counted"
    assert one.candidates[1].sql == "SELECT reltuples::bigint FROM pg_class WHERE oid = 'post'::regclass;"
    assert not any(each.same_answers for each in one.candidates)


def test_the_values_of_a_column_are_counted_for_their_number():
    assert counted("SELECT count(author) FROM post") == []
    assert len(counted("SELECT count(1) FROM post")) == 1


def test_a_count_of_most_rows_has_no_estimate():
    (one,) = counted("SELECT count(*) FROM post WHERE author <> $1", 195_000)
    assert one.headline == "Each call counts 200 000 rows of post one by one"
    assert [each.sql for each in one.candidates] == [
        "SELECT count(*) FROM (SELECT FROM post WHERE author <> $1 LIMIT 1001) AS counted",
        "",
    ]


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
