"""Rules about plans that rest on wrong numbers of rows: sick examples, and healthy ones beside them."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result
from fakes.findings import compare_findings
from fakes.planned_evidence import column, evidence, index, plan, statement, table
from uncork.diagnosis.rules.plans import planning
from uncork.model.database.catalogue import TableOptions

COLUMNS = {"car": ("id", "maker", "model", "dealer"), "dealer": ("id", "region")}
JOIN = "SELECT * FROM car JOIN dealer ON dealer.id = car.dealer WHERE maker = $1 AND model = $2"
NESTED = """Nested Loop  (cost=0.00..2500.00 rows=1 width=8)
  ->  Seq Scan on car  (cost=0.00..2400.00 rows=1 width=4)
        Filter: ((maker = $1) AND (model = $2))
  ->  Seq Scan on dealer  (cost=0.00..100.00 rows=5000 width=4)"""
CARS = (
    column("car", "maker", 100.0),
    column("car", "model", 400.0),
    column("car", "dealer", 5000.0),
    column("dealer", "id", -1.0),
)


ALONE = """Seq Scan on car  (cost=0.00..2400.00 rows=1 width=4)
  Filter: ((maker = $1) AND (model = $2))"""


def cars(rows=200_000.0, ms=2_000.0, columns=CARS, text=NESTED, sql=JOIN, **facts):
    """Return the evidence of a join that takes 2 s, though its plan costs 2 500."""
    one = statement(sql, COLUMNS, plan(text), ms=ms)
    return evidence(one, tables=(table("car", rows, **facts), table("dealer", 5_000)), columns=columns)


def rules(seen):
    every = (planning.find_stale, planning.find_correlated, planning.find_generic_plan)
    return [finding.rule for find in every for finding in find(seen)]


INSERT = """Insert on car  (cost=0.00..10.00 rows=0 width=0)
  ->  Function Scan on generate_series n  (cost=0.00..10.00 rows=1000 width=4)"""


def test_an_insert_does_not_read_the_rows_of_its_table():
    unknown = tuple(replace(one, distinct=None) for one in CARS if one.table == "car")
    facts = {"live": 200_000, "bytes": 4_000 * 8192, "analysed_us": None, "autovacuum": False}
    sql = "INSERT INTO car (id) SELECT n FROM generate_series($1, $2) AS n"
    seen = cars(None, columns=unknown, text=INSERT, sql=sql, **facts)
    assert list(planning.find_stale(seen)) == []


def test_a_standby_does_not_know_when_its_primary_analysed_a_table():
    hidden = tuple(replace(one, distinct=None) for one in CARS if one.table == "car")
    seen = cars(live=200_000, bytes=4_000 * 8192, analysed_us=None, columns=hidden)
    assert "stale-statistics" in rules(seen)
    assert "stale-statistics" not in rules(replace(seen, database=replace(database_result(), standby=True)))


def test_statistics_are_out_of_date_after_many_changes_and_the_undo_restores_the_option():
    seen = cars(modified=150_000)
    old = TableOptions("car", 1, {"autovacuum_analyze_scale_factor": "2"}, "permanent")
    (found,) = planning.find_stale(replace(seen, catalogue=replace(seen.catalogue, options={"car": old})))
    assert found.candidates[1].sql == "ALTER TABLE car SET (autovacuum_analyze_scale_factor = 0.02);"
    assert found.candidates[1].undo == "ALTER TABLE car SET (autovacuum_analyze_scale_factor = 2);"
    assert rules(seen) == ["stale-statistics"]  # and not correlated-columns


@pytest.mark.parametrize(
    "healthy",
    [
        cars(modified=150_000, ms=20.0),  # as fast as planned
        cars(modified=150_000, ms=60.0),  # slower, but reading the tables once takes as long
        cars(modified=20_000, ms=20.0),  # autovacuum comes at a tenth
        evidence(),
    ],
)
def test_old_statistics_that_cost_nothing_are_no_finding(healthy):
    assert rules(healthy) == []


def test_a_full_scan_by_old_statistics_is_found_if_an_index_would_serve():
    text = "Seq Scan on car  (cost=0.00..2400.00 rows=50000 width=4)\n  Filter: (maker = $1)"
    one = statement("SELECT id FROM car WHERE maker = $1", COLUMNS, plan(text), rows=3)
    facts = {"tables": (table("car", modified=90_000),), "columns": CARS}
    assert rules(evidence(one, indexes=(index("car", "maker"),), **facts)) == ["stale-statistics"]
    assert rules(evidence(one, **facts)) == []


def test_a_statement_that_no_call_ended_during_the_watch_is_slow_all_the_same():
    seen = cars()
    endless = replace(seen.statements[0], calls=None, mean_ns=None, rows=None, blocks=None)
    assert rules(replace(seen, statements={0: endless})) == []  # nothing counts calls


@pytest.mark.parametrize(
    "healthy",
    [
        cars(ms=100.0),
        cars(columns=(column("car", "maker", None), column("car", "model", 400.0))),
        cars(columns=(column("car", "maker", 2.0), column("car", "model", 2.0))),  # cannot leave one row
        cars(text=NESTED.replace("rows=1 width=4", "rows=2000 width=4")),  # extended statistics exist
        cars(sql=JOIN.replace(" AND ", " OR ")),
        cars(text=ALONE),
    ],
)
def test_columns_are_left_alone_if_the_estimate_is_right_or_harmless(healthy):
    assert rules(healthy) == []


ORDERS = {"orders": ("id", "state")}
SKEWED = (
    column("orders", "state", 3.0, common=(("done", 0.6), ("paid", 0.399), ("open", 0.001))),
    column("orders", "id"),
)
GENERIC = """Limit  (cost=0.42..900.00 rows=6000 width=8)
  ->  Index Scan using orders_pkey on orders  (cost=0.42..9000.00 rows=66000 width=8)
        Filter: (state = $1)"""
FOR_OPEN = """Limit  (cost=300.00..300.10 rows=20 width=8)
  ->  Sort  (cost=300.00..301.00 rows=127 width=8)
        Sort Key: id
        ->  Index Scan using orders_state on orders  (cost=0.29..290.00 rows=127 width=8)
              Index Cond: (state = 'open'::text)"""
NEXT = "SELECT id FROM orders WHERE state = $1 ORDER BY id LIMIT $2"


def orders(*plans, sql=NEXT, columns=SKEWED, indexes=(), ms=100.0, rows=20.0, **facts):
    one = statement(sql, ORDERS, *plans, ms=ms, rows=rows)
    return evidence(one, tables=(table("orders", 200_000, **facts),), columns=columns, indexes=indexes)


def test_without_a_plan_for_the_values_an_index_on_the_column_shows_what_it_would_cost():
    text = "Seq Scan on orders  (cost=0.00..4000.00 rows=66000 width=8)\n  Filter: (state = $1)"
    facts = {"sql": "SELECT id FROM orders WHERE state = $1", "rows": 10.0}
    assert rules(orders(plan(text), indexes=(index("orders", "state"),), **facts)) == ["generic-plan"]
    assert rules(orders(plan(text), **facts)) == []


def test_what_is_found_word_for_word():
    compare_findings("wrong_estimates", [
        ("a table that was never analysed is named with its remedy",
         planning.find_stale(cars(
             None, live=200_000, bytes=4_000 * 8192, analysed_us=None,
             columns=tuple(replace(one, distinct=None) for one in CARS if one.table == "car"),
             autovacuum=False))),
        ("columns that depend on each other get statistics together",
         planning.find_correlated(cars())),
        ("a generic plan that costs more than the plan for the values is found",
         planning.find_generic_plan(orders(plan(GENERIC), plan(FOR_OPEN, "drawn")))),
        ("a generic plan without skew or gain is no finding",
         *(rules(healthy) for healthy in (orders(plan(GENERIC)),
                                          orders(plan(GENERIC), plan(GENERIC, "drawn")),
                                          orders(plan(GENERIC), plan(FOR_OPEN, "drawn"), ms=5.0),
                                          orders(plan(GENERIC), plan(FOR_OPEN, "drawn"),
                                                 columns=(column("orders", "state", 3.0),)),
                                          orders(plan(GENERIC), plan(FOR_OPEN, "drawn"),
                                                 columns=(column("orders", "state", 3.0,
                                                                 common=(("a", 0.34), ("b", 0.33),
                                                                         ("c", 0.33))),))))),
    ])  # fmt: skip
