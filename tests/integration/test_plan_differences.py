"""Plans of a real PostgreSQL told apart: other statistics that leave the plan as it is, or flip it."""

from __future__ import annotations

import re

import psycopg
import pytest

from uncork.analysis.guard.explanations import plan_differences
from uncork.engines.watch.observe import explain
from uncork.model.results.experiment import PlanFacts

pytestmark = pytest.mark.postgres

CITY = "SELECT id FROM sale WHERE city = 7"
RARE = "SELECT id FROM sale WHERE note = 'rare'"
CITIES = "SELECT city, count(*) FROM sale GROUP BY city"
JOIN = "SELECT count(*) FROM sale JOIN shop ON shop.city = sale.city WHERE shop.open"


@pytest.fixture
def sales(embedded):
    """A table whose statistics change only when a test asks for it."""
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS sale, shop")
        connection.execute("CREATE TABLE sale (id int, city int, note text) WITH (autovacuum_enabled = off)")
        connection.execute("CREATE TABLE shop (city int, open bool) WITH (autovacuum_enabled = off)")
        connection.execute("INSERT INTO sale SELECT n, n % 100, 'note' FROM generate_series(1, 20000) AS n")
        connection.execute("INSERT INTO shop SELECT n, n % 2 = 0 FROM generate_series(0, 99) AS n")
        connection.execute("CREATE INDEX sale_city ON sale (city)")
        connection.execute("ANALYZE sale; ANALYZE shop")
        yield connection
        connection.execute("DROP TABLE sale, shop")


def plan(connection, statement):
    found = explain(connection, "s1", statement, ())
    assert found is not None
    return PlanFacts(
        (), "report", "any", "s1", found.text, found.shape, "", found.buffers, found.execution_ns
    )


def told(connection, statement, *changes):
    """Return how the plan of a statement differs after changes: its kind and text, or None."""
    before = plan(connection, statement)
    for change in changes:
        connection.execute(change)
    found = plan_differences([before], [plan(connection, statement)])
    return (found[0].kind, found[0].text) if found else None


@pytest.mark.parametrize("statement", [CITY, CITIES, JOIN])
def test_nothing_changed_is_no_difference(sales, statement):
    assert told(sales, statement) is None
    assert told(sales, statement, "ANALYZE sale") is None  # all of so small a table is its sample


def test_rows_that_the_planner_has_not_heard_of_are_told(sales):
    skew = "INSERT INTO sale SELECT n, 7, 'note' FROM generate_series(1, 600) AS n"
    kind, text = told(sales, CITY, skew)
    assert kind == "statistics"
    assert "actual rows 200 → 800" in text


def test_analyze_after_a_skewed_insert_changes_estimates_and_not_the_plan(sales):
    sales.execute("INSERT INTO sale SELECT n, 7, 'note' FROM generate_series(1, 600) AS n")
    kind, text = told(sales, CITY, "ANALYZE sale")
    assert kind == "statistics"
    assert re.search(r"is expected to return 800 rows instead of 20\d$", text.splitlines()[0])
    assert re.search(r"estimated rows 20\d → 800", text)
    assert text.endswith("actual rows 800")


def test_a_lower_statistics_target_changes_estimates_and_not_the_plan(sales):
    sales.execute("UPDATE sale SET note = CASE WHEN id <= 20 THEN 'rare' ELSE 'odd' END WHERE id <= 220")
    sales.execute("ANALYZE sale")
    # Only the most common value is still remembered: all others are taken for equally rare.
    kind, text = told(sales, RARE, "ALTER TABLE sale ALTER note SET STATISTICS 1", "ANALYZE sale")
    assert kind == "statistics"
    assert "Seq Scan on sale: estimated rows 20 → 110" in text
    assert text.endswith("actual rows 20")


def test_a_number_of_values_that_is_told_changes_estimates_and_not_the_plan(sales):
    kind, text = told(sales, CITIES, "ALTER TABLE sale ALTER city SET (n_distinct = 10)", "ANALYZE sale")
    assert kind == "statistics"
    assert "HashAggregate: estimated rows 100 → 10" in text
    assert text.splitlines()[-1].endswith("actual rows 100")


def test_statistics_may_flip_the_plan_and_that_is_another_plan(sales):
    kind, text = told(
        sales,
        CITY,
        "ALTER TABLE sale ALTER city SET (n_distinct = 1)",
        "ALTER TABLE sale ALTER city SET STATISTICS 1",
        "INSERT INTO sale SELECT n, 7, 'note' FROM generate_series(1, 60000) AS n",
        "ANALYZE sale",
    )
    assert kind == "changed"
    assert "+Seq Scan on sale" in text
