"""Rules whose remedy is another text of the statement, and the rewriting of texts."""

import pytest

from fakes.evidence import a_function
from fakes.findings import compare_findings
from fakes.goldens import compare_answers
from fakes.planned_evidence import column, evidence, index, plan, primary_key, statement, table
from uncork.diagnosis.rules.plans import per_row, planning, whole_tables
from uncork.diagnosis.rules.plans.rewrite import (
    joined_aggregate,
    keyset,
    not_exists,
    not_materialized,
    union_of_parts,
    with_columns,
)
from uncork.model.database.catalogue import TableOptions, ViewFacts

COLUMNS = {
    "post": ("id", "created", "author", "title"),
    "item": ("id", "customer"),
    "blocked": ("item",),
    "newest": ("id", "author", "place"),
    "document": ("id", "folder", "body"),
}
POSTS = tuple(column("post", name) for name in COLUMNS["post"])
POST = table("post", 200_000)
UNIQUE = (primary_key("post", "id"),)
PAGE = "SELECT id FROM post ORDER BY created DESC LIMIT $1 OFFSET $2"
BY_INDEX = """Limit  (cost=1.0..2.0 rows=20 width=8)
  ->  Index Scan Backward using post_created on post  (cost=0.42..12724.67 rows=200000 width=8)"""


def pages(sql=PAGE, text=BY_INDEX, rows=20.0, read=80_000, constraints=UNIQUE, columns=POSTS):
    one = statement(sql, COLUMNS, plan(text), rows=rows, calls=100, blocks=900)
    return evidence(
        one,
        tables=(table("post", 200_000, index_rows=100 * read),),
        columns=columns,
        constraints=constraints,
    )


FILTERED = BY_INDEX + "\n        Filter: (author <> $3)"


def test_offset_is_found_beside_a_filter_that_most_rows_pass():
    sql = PAGE.replace(" ORDER", " WHERE author <> $3 ORDER")
    columns = (*POSTS[:2], column("post", "author", distinct=40), POSTS[3])
    (found,) = whole_tables.find_offset(pages(sql, FILTERED, columns=columns))
    assert found.headline == "OFFSET reads 78 000 rows of post for 20 rows"
    assert found.candidates[0].sql == (
        "SELECT id FROM post WHERE (author <> $3) AND (created, id) < ($4, $5) "
        "ORDER BY created DESC, id DESC LIMIT $1"
    )
    one_of_forty = sql.replace("<>", "=")
    assert list(whole_tables.find_offset(pages(one_of_forty, FILTERED, columns=columns))) == []
    unknown = pages(sql.replace("author <> $3", "(author <> $3 OR id = $4)"), FILTERED, columns=columns)
    assert list(whole_tables.find_offset(unknown)) == []


def test_keyset_keeps_the_other_conditions_and_gives_up_on_what_it_does_not_know():
    sql = "SELECT a FROM t WHERE b = $1 OR c = $2 ORDER BY a OFFSET $3 ROWS FETCH FIRST $4 ROWS ONLY"
    assert keyset(sql, ["a"], descending=False) == (
        "SELECT a FROM t WHERE (b = $1 OR c = $2) AND (a) > ($5) ORDER BY a LIMIT $4"
    )
    assert (
        keyset("SELECT rank() OVER (ORDER BY b) FROM t ORDER BY a LIMIT 1 OFFSET 2", ["a"], descending=False)
        == ""
    )
    assert keyset("SELECT a FROM t ORDER BY a", ["a"], descending=False) == ""


INDEXED = (index("blocked", "item"),)
NOT_IN = "SELECT id FROM item WHERE customer = $1 AND id NOT IN (SELECT item FROM blocked)"
HASHED = """Index Scan using item_customer on item  (cost=508.00..530.00 rows=3 width=4)
  Index Cond: (customer = $1)
  Filter: (NOT (ANY (id = (hashed SubPlan 1).col1)))
  SubPlan 1
    ->  Seq Scan on blocked  (cost=0.00..433.00 rows=30000 width=4)"""
ITEMS = (column("item", "id"), column("item", "customer"), column("blocked", "item"))


def excluded(text=HASHED, indexes=INDEXED, columns=ITEMS, ms=20.0, sql=NOT_IN):
    one = statement(sql, COLUMNS, plan(text), ms=ms)
    return evidence(one, tables=(table("item"), table("blocked", 30_000)), columns=columns, indexes=indexes)


@pytest.mark.parametrize(
    "condition", ["NOT (id IN (SELECT item FROM blocked))", "id <> ALL (SELECT item FROM blocked)"]
)
def test_not_in_is_found_in_whatever_words(condition):
    sql = f"SELECT id FROM item WHERE customer = $1 AND {condition}"
    assert len(list(per_row.find_not_in(excluded(sql=sql)))) == 1


def test_not_exists_keeps_aliases_and_gives_up_on_what_it_does_not_know():
    sql = "SELECT 1 FROM a x WHERE x.i NOT IN (SELECT b.j FROM s.b AS b WHERE b.k = $1) AND x.z"
    assert not_exists(sql) == (
        "SELECT 1 FROM a x WHERE NOT EXISTS (SELECT FROM s.b AS b WHERE b.j = x.i AND b.k = $1) AND x.z"
    )
    assert not_exists("SELECT 1 FROM a WHERE i NOT IN (SELECT j FROM b LIMIT 3)", "a") == ""
    assert not_exists("SELECT 1 FROM a WHERE i NOT IN (SELECT j FROM b WHERE k = 1 OR l = 2)", "a") == ""
    assert not_exists("SELECT 1 FROM a WHERE i NOT IN (SELECT j FROM a)", "a") == ""


@pytest.mark.parametrize(
    ("condition", "first", "second"),
    [
        ("a.x = $1 OR b.y = $2", "(a.x = $1)", "(b.y = $2) AND (a.x = $1) IS NOT TRUE"),
        ("((a.x = $1) or (b.y = $2));", "((a.x = $1))",
         "((b.y = $2)) AND ((a.x = $1)) IS NOT TRUE"),
        ("a.z IN ($3, $4) AND (a.x = $1 OR b.y = $2)", "a.z IN ($3, $4) AND (a.x = $1)",
         "a.z IN ($3, $4) AND (b.y = $2) AND (a.x = $1) IS NOT TRUE"),
        ("""a."order" = ' OR ) ' AND (a.x = $1 OR b.y = $2)""",
         """a."order" = ' OR ) ' AND (a.x = $1)""",
         """a."order" = ' OR ) ' AND (b.y = $2) AND (a.x = $1) IS NOT TRUE"""),
    ],
)  # fmt: skip
def test_each_part_of_an_or_gets_a_select_without_the_rows_of_the_others(condition, first, second):
    head = "SELECT a.i FROM a JOIN b ON a.i = b.i WHERE"
    assert union_of_parts(f"{head} {condition}", 2) == f"{head} {first}\nUNION ALL\n{head} {second}"


@pytest.mark.parametrize(
    "condition",
    [
        "a.x = $1 AND a.z = $3 OR b.y = $2 OR b.z = $4",
        "(a.x = $1 OR b.y = $2) = (a.z = $3 OR b.z = $4)",
        "(a.x = $1 OR b.y = $2) AND (a.z = $3 OR b.z = $4)",
        "NOT (a.x = $1 OR b.y = $2)",
        "a.x = $1 OR b.y IN (SELECT 1)",
        "(a.x = $1 OR b.y = $2) ORDER BY a.i",
        "a.x = $1 OR b.y = $2 -- the end",
        "a.x = E'\\' OR ' OR b.y = $2",
    ],
)
def test_an_or_whose_parts_are_uncertain_is_left_alone(condition):
    assert union_of_parts(f"SELECT a.i FROM a JOIN b ON a.i = b.i WHERE {condition}", 2) == ""


PER_ROW = """Seq Scan on item  (cost=0.00..800000.00 rows={rows} width=36)
  SubPlan 1
    ->  Aggregate  (cost=23.39..23.40 rows=1 width=32)
          ->  {scan}"""
PROBE = """Index Scan using post_author on post  (cost=4.33..23.38 rows=5 width=6)
                Index Cond: (author = item.id)"""
SEARCH = "Seq Scan on post  (cost=4.33..23.38 rows=5 width=6)\n                Filter: (author = item.id)"
COUNTED = "SELECT id, (SELECT count(*) FROM post WHERE author = item.id) FROM item"


def counted(rows=40_000, scan=PROBE, ms=1_000.0, found=1.0):
    one = statement(COUNTED, COLUMNS, plan(PER_ROW.format(rows=rows, scan=scan)), ms=ms, rows=found)
    return evidence(one, tables=(table("item"), POST), columns=POSTS)


def test_a_subquery_below_materialize_is_executed_once_for_each_of_its_own_rows():
    """The join reads the rows that Materialize keeps, for each of its 50 outer rows."""
    text = f"""Nested Loop  (cost=0.00..800600.00 rows=9 width=36)
  ->  Seq Scan on blocked  (cost=0.00..1.50 rows=50 width=4)
  ->  Materialize  (cost=0.00..800500.00 rows=40000 width=4)
        ->  {PER_ROW.format(rows=40_000, scan=PROBE).replace(chr(10), chr(10) + " " * 8)}"""
    one = statement(COUNTED, COLUMNS, plan(text), ms=1_000.0)
    tables = (table("item"), table("blocked", 50), POST)
    (found,) = per_row.find_per_row(evidence(one, tables=tables, columns=POSTS))
    assert found.headline == "A subquery on post is executed again for each of 40 000 rows"


def test_the_aggregate_of_each_row_is_joined():
    compare_answers("answers/diagnosis/the_aggregate_of_each_row_is_joined", joined_aggregate)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, (SELECT sum(amount) FROM payment WHERE client = client.id) FROM client",
        "SELECT id, (SELECT sum(p.x) FROM payment p WHERE p.client = c.id AND p.at > c.at) FROM client c",
        "SELECT id, (SELECT sum(p.x) FROM payment p WHERE p.client = c.id OR p.at > $1) FROM client c",
        "SELECT id, (SELECT sum(p.x) FROM payment p WHERE p.client = c.id LIMIT 1) FROM client c",
        "SELECT id, (SELECT sum(p.x) FROM payment p WHERE p.client = c.id) FROM client c, city",
        "SELECT id, (SELECT sum(p.x) FROM payment p WHERE p.client = c.id) FROM client c FOR UPDATE",
        "SELECT DISTINCT (SELECT sum(p.x) FROM payment p WHERE p.client = c.id) FROM client c",
        "SELECT id FROM client c WHERE (SELECT sum(p.x) FROM payment p WHERE p.client = c.id) > $1",
        "SELECT 1 + (SELECT sum(p.x) FROM payment p WHERE p.client = c.id) FROM client c GROUP BY 1",
    ],
)
def test_a_subquery_whose_join_is_uncertain_is_left_alone(sql):
    assert joined_aggregate(sql) == ""


BARRIER = """Subquery Scan on newest  (cost=27080.64..34080.64 rows={rows} width=12)
  Filter: (newest.{column} = $1)
  ->  {node}  (cost=27080.64..31580.64 rows=200000 width=60)
        ->  Seq Scan on post  (cost=0.00..5369.00 rows=200000 width=20)"""


def viewed(rows=100, name="author", node="WindowAgg"):
    text = BARRIER.format(rows=rows, column=name, node=node)
    one = statement(f"SELECT id FROM newest WHERE {name} = $1", COLUMNS, plan(text))
    return evidence(one, tables=(POST,), columns=POSTS, views=(ViewFacts("newest", False, ""),))


STORED = """CTE Scan on shown  (cost=5369.00..9756.50 rows={rows} width=36)
{filter}  CTE shown
    ->  Seq Scan on post  (cost=0.00..5369.00 rows=195000 width=77)"""
WITH = "WITH shown AS MATERIALIZED (SELECT * FROM post) SELECT id FROM shown WHERE id = $1"


def stored(sql=WITH, rows=1, condition="  Filter: (id = $1)\n", size=200_000, **facts):
    one = statement(sql, COLUMNS, plan(STORED.format(rows=rows, filter=condition)), **facts)
    return evidence(one, tables=(table("post", size),), columns=POSTS)


GROUPED = """Nested Loop  (cost=6087.80..6325.14 rows=625 width=16)
  CTE shown
    ->  HashAggregate  (cost=5369.00..6087.80 rows=5000 width=44)
          Group Key: post.author
          ->  Seq Scan on post  (cost=0.00..3309.59 rows=200000 width=20)
  ->  CTE Scan on shown a  (cost=0.00..112.55 rows=25 width=12)
        Filter: (a.{column} = $1)
  ->  CTE Scan on shown b  (cost=0.00..112.55 rows=25 width=12)
        Filter: (b.{column} = '4'::bigint)"""


def grouped(column):
    sql = (
        "WITH shown AS (SELECT author, count(*) AS many FROM post GROUP BY author) "
        "SELECT a.many FROM shown a JOIN shown b USING (author) WHERE a.author = $1"
    )
    one = statement(sql, COLUMNS, plan(GROUPED.format(column=column)))
    return evidence(one, tables=(POST,), columns=POSTS)


def test_not_materialized_keeps_names_of_columns():
    assert not_materialized('WITH "a" (b) AS MATERIALIZED (SELECT 1) SELECT 2', "a") == (
        'WITH "a" (b) AS NOT MATERIALIZED (SELECT 1) SELECT 2'
    )
    assert not_materialized("SELECT 1", "a") == ""


def function(name="factor_of", source="BEGIN RETURN (SELECT f FROM rate WHERE r = $1); END", **facts):
    return a_function(name, source, **facts)


CALLED = "SELECT sum(factor_of(customer)) FROM item WHERE id < $1"
PER_CALL = """Aggregate  (cost=62.79..62.80 rows=1 width=32)
  Output: sum(factor_of(customer))
  ->  Index Scan using item_pkey on item  (cost=0.29..12.29 rows=2000 width=4)"""


def calling(one, *others, functions, **facts):
    return evidence(one, *others, tables=(table("item"),), functions=functions, **facts)


def test_a_function_with_queries_for_each_row_is_found_by_counters_nested_queries_or_time():
    one = statement(CALLED, COLUMNS, calls=100, ms=50.0)
    counted_calls = function(calls=200_000, total_ms=4_000.0)
    (found,) = per_row.find_function(calling(one, functions=(counted_calls,)))
    assert found.headline == "Function factor_of is executed for each row, with a query of its own"
    assert found.bill.share == pytest.approx(0.8)
    assert "join" in found.candidates[0].text
    nested = statement(
        "SELECT f FROM rate WHERE r = $1",
        {"rate": ("r", "f")},
        number=1,
        calls=200_000,
        ms=0.008,
        nested=True,
    )
    (found,) = per_row.find_function(calling(one, nested, functions=(function(),)))
    assert "2 000 times" in found.evidence[0]
    planned = statement(CALLED, COLUMNS, plan(PER_CALL), calls=100, ms=50.0)
    assert len(list(per_row.find_function(calling(planned, functions=(function(),))))) == 1


def test_a_volatile_function_of_constant_arguments_keeps_an_index_from_being_used():
    text = "Seq Scan on item  (cost=0.0..9999.0 rows=1 width=4)\n  Filter: (id = limit_for($1))"
    one = statement("SELECT id FROM item WHERE id = limit_for($1)", COLUMNS, plan(text))
    facts = {"indexes": (index("item", "id"),), "functions": (function("limit_for", "BEGIN RETURN 1; END"),)}
    (found,) = per_row.find_function(calling(one, **facts))
    assert found.candidates[0].sql == "ALTER FUNCTION limit_for STABLE;"
    writes = function("limit_for", "BEGIN INSERT INTO log VALUES (1); RETURN 1; END")
    (found,) = per_row.find_function(calling(one, **{**facts, "functions": (writes,)}))
    assert not any("STABLE" in candidate.sql for candidate in found.candidates)


@pytest.mark.parametrize(
    "called",
    [
        function(calls=100, total_ms=4_000.0),
        function(calls=200_000, total_ms=100.0),
        function("other", calls=200_000, total_ms=4_000.0),
        function(returns_set=True, calls=200_000, total_ms=4_000.0),
    ],
)
def test_a_cheap_function_or_one_call_is_left_alone(called):
    one = statement(CALLED, COLUMNS, calls=100, ms=50.0)
    assert list(per_row.find_function(calling(one, functions=(called,)))) == []


BODY = column("document", "body", type="text", width=18.0)
DOCUMENTS = (column("document", "id"), column("document", "folder"), BODY)
LISTED = "SELECT * FROM document WHERE folder = $1"


def listed(sql=LISTED, rows=100.0, blocks=500.0, outside=40_000_000, body=BODY):
    one = statement(sql, COLUMNS, rows=rows, blocks=blocks)
    options = {"document": TableOptions("document", 1, {}, "permanent", toast_bytes=outside)}
    facts = table("document", 5_000, bytes=42_000_000)
    return evidence(
        one, tables=(facts,), columns=(*DOCUMENTS[:2], body), options=options, wait_class="Client"
    )


JOIN = "SELECT {} FROM item JOIN document ON document.folder = item.id WHERE item.customer = $1"


@pytest.mark.parametrize(
    ("columns", "blocks", "found"),
    [
        ("*", 900.0, True),
        ("item.id, document.body", 900.0, True),
        ("*", 600.0, False),  # the blocks in which an index finds the other table's rows
        ("item.*, document.id", 900.0, False),
        ("item.id, document.folder", 900.0, False),
    ],
)
def test_large_values_of_a_joined_table_count_beside_the_blocks_of_the_join(columns, blocks, found):
    one = list(whole_tables.find_wide_columns(listed(JOIN.format(columns), blocks=blocks)))
    assert [each.objects for each in one] == ([("document", "body")] if found else [])
    assert not any(each.candidates[0].sql for each in one)


def test_only_a_star_of_the_outermost_list_is_replaced():
    assert with_columns("SELECT *\nFROM a", ["b", '"c"']) == 'SELECT b, "c"\nFROM a'
    assert with_columns("SELECT a.* FROM a", ["b"]) == ""


def ranged(sql="SELECT id FROM post WHERE created > $1", rows=40_000.0, ms=80.0, **facts):
    return evidence(statement(sql, COLUMNS, rows=rows, ms=ms, **facts), tables=(POST,), columns=POSTS)


def test_what_is_found_word_for_word():
    compare_findings("rewritten_statements", [
        ("offset gets a condition on the whole order", whole_tables.find_offset(pages())),
        ("offset over an order without a unique column is warned of",
         whole_tables.find_offset(pages(constraints=())),
         whole_tables.find_offset(pages(PAGE.replace("created DESC", "created DESC, id")))),
        ("not in becomes not exists and nulls are spoken of", per_row.find_not_in(excluded()),
         per_row.find_not_in(excluded(columns=(*ITEMS[:2],
                                                     column("blocked", "item", not_null=False))))),
        ("not in that is not hashed is found without an index too",
         per_row.find_not_in(excluded(HASHED.replace("(ANY (id = (hashed SubPlan 1).col1))",
                                                           "(SubPlan 1)"), indexes=(),
                                            ms=5_000.0))),
        ("a subquery for each of many rows becomes one aggregate",
         per_row.find_per_row(counted())),
        ("rows that a call returns count if the plan was made for values with fewer",
         per_row.find_per_row(counted(rows=20, found=30_000.0))),
        ("a filter that cannot enter a view is found", per_row.find_view_barrier(viewed()),
         per_row.find_view_barrier(viewed(node="Unique"))),
        ("a materialised common table is planned with the statement",
         per_row.find_materialised(stored()),
         per_row.find_materialised(stored(WITH.replace("MATERIALIZED ", "").replace(
             "WHERE", "CROSS JOIN shown b WHERE")))),
        ("a filter passes a grouping by its column only",
         per_row.find_materialised(grouped("author")),
         per_row.find_materialised(grouped("many"))),
        ("temporary files of a needless common table are no finding of their own",
         planning.find_spill(stored(temp_bytes=600 * 17_000_000)),
         planning.find_spill(stored(rows=100_000, temp_bytes=600 * 17_000_000))),
        ("large values in a list are found and the other columns named",
         whole_tables.find_wide_columns(listed())),
        ("a range without an end that returns much of a table is found",
         whole_tables.find_unbounded(ranged())),
        ("first pages and other causes are left alone",
         *(whole_tables.find_offset(healthy) for healthy in (
             pages(read=40), pages(rows=60_000.0),
             pages(text=BY_INDEX + "\n        Filter: (author = $3)"),
             pages(text="Limit  (cost=1.0..2.0 rows=20 width=8)\n"
                   "  ->  Sort  (cost=0.42..9.67 rows=20 width=8)\n        Sort Key: created\n"
                   "        ->  Seq Scan on post  (cost=0.0..9.0 rows=200000 width=8)"),
             pages("SELECT id FROM post ORDER BY created DESC LIMIT $1")))),
        ("a hashed not in is as good as an anti join",
         *(per_row.find_not_in(healthy) for healthy in (
             excluded(indexes=()), excluded(ms=0.02),
             excluded("Seq Scan on item  (cost=0.0..9.0 rows=3 width=4)")))),
        ("a subquery for few rows or without an index has another cause or none",
         *(per_row.find_per_row(healthy) for healthy in (
             counted(rows=20), counted(scan=SEARCH), counted(ms=40.0)))),
        ("filters on computed values and unselective ones are left alone",
         *(per_row.find_view_barrier(healthy) for healthy in (
             viewed(rows=90_000), viewed(name="place"), viewed(node="Append")))),
        ("a common table that is read completely is left alone",
         *(per_row.find_materialised(healthy) for healthy in (stored(rows=100_000),
                                                               stored(condition="")))),
        ("rows with narrow or few values are left alone",
         *(whole_tables.find_wide_columns(healthy) for healthy in (
             listed(rows=1.0), listed(blocks=120.0), listed(outside=None), listed(outside=10_000),
             listed("SELECT id FROM document WHERE folder = $1"),
             listed("SELECT count(*) FROM document WHERE folder = $1"),
             listed(body=column("document", "body", type="text", width=18.0, bounds=("a", "b")))))),
        ("bounded ranges and reports are left alone",
         *(whole_tables.find_unbounded(healthy) for healthy in (
             ranged(rows=200.0), ranged(calls=3),
             ranged("SELECT id FROM post WHERE created > $1 AND created < $2"),
             ranged("SELECT id FROM post WHERE created > $1 AND author = $2"),
             ranged("SELECT id FROM post WHERE created > $1 ORDER BY created LIMIT 10")))),
    ])  # fmt: skip
