"""The gate before a verdict: a copy has to plan statements as its source does."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from uncork.model.database.workload import CapturedStatement
from uncork.workbench.cure.gate import plans_agree

pytestmark = pytest.mark.postgres
ROWS = 100_000
SETUP = (
    "CREATE TABLE parcel AS SELECT n AS id, n % {rows} / 2 AS place, n % 10 = 0 AS lost "
    "FROM generate_series(1, {rows}) AS n",
    "ALTER TABLE parcel ADD PRIMARY KEY (id)",
    "CREATE INDEX parcel_place ON parcel (place)",
    "VACUUM ANALYZE parcel",
)


@pytest.fixture(scope="module")
def databases(embedded):
    """Connection strings: a source, a copy with its rows, and a copy with a thousandth of them."""
    rows = {"gate_source": ROWS, "gate_whole": ROWS, "gate_part": ROWS // 1000}
    for name, many in rows.items():
        with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(embedded.conninfo(name), autocommit=True) as connection:
            for one in SETUP:
                connection.execute(one.format(rows=many))
    yield [embedded.conninfo(name) for name in rows]
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        for name in rows:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def captured(template, sql, *sets, changes=False):
    return CapturedStatement(template, sql, sets or ((),), "executed", 1.0, 1.0, 0.5, ("parcel",), changes)


STATEMENTS = (
    captured(1, "SELECT * FROM parcel WHERE place = $1", ("7",), ("8",), ("7",)),
    captured(2, "UPDATE parcel SET lost = $2 WHERE id = $1", ("7", None), changes=True),
    captured(3, "SELECT count(*) FROM parcel WHERE lost"),
)


def test_both_sides_plan_with_the_settings_of_a_statements_role(databases):
    source, whole, _ = databases
    scan = replace(STATEMENTS[0], settings={"enable_indexscan": "off", "enable_bitmapscan": "off"})
    found = plans_agree(source, whole, (scan, STATEMENTS[0]))
    assert all(one.same for one in found)
    assert "Seq Scan on parcel" in found[0].source_plan and found[0].source_plan == found[0].copy_plan
    assert "Index Scan using parcel_place" in found[1].copy_plan  # the settings ended with the statement


def test_a_copy_with_the_same_rows_plans_the_statements_alike(databases):
    source, whole, _ = databases
    found = plans_agree(source, whole, STATEMENTS)
    assert [(one.template, one.same, one.difference) for one in found] == [
        (1, True, ""),
        (2, True, ""),
        (3, True, ""),
    ]
    assert "Index Scan using parcel_place on parcel" in found[0].source_plan
    assert found[0].source_plan == found[0].copy_plan
    assert "Filter: lost" in found[2].copy_plan


def test_a_copy_with_few_rows_differs_and_the_nodes_are_named(databases):
    source, _, part = databases
    first, second, third = plans_agree(source, part, STATEMENTS)
    assert (first.same, second.same, third.same) == (False, False, True)
    assert first.difference == (
        "the plan of the source has Index Scan using parcel_place on parcel (about 2 rows) "
        "where the plan of the copy has Seq Scan on parcel (about 2 rows)"
    )
    assert first.copy_plan.startswith("Seq Scan on parcel")
    assert "Index Scan using parcel_pkey on parcel" in second.difference


def test_values_that_lead_to_another_plan_on_one_side_only_void_the_statement(databases):
    source, whole, part = databases
    wide = captured(4, "SELECT sum(id) FROM parcel WHERE place < $1", ("1000000",), ("10",))
    (one,) = plans_agree(source, whole, [wide])
    assert one.same and "Seq Scan" in one.source_plan
    (other,) = plans_agree(source, part, [wide])
    assert not other.same and other.difference.endswith("with set 2 of 2 of values")
    assert "place < '10'" in other.copy_plan or "place < 10" in other.copy_plan


def test_parallel_workers_on_one_side_only_are_a_small_difference(databases):
    source, whole, _ = databases
    names = ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size")
    parallel = f"{source} options='{' '.join(f'-c {name}=0' for name in names)}'"
    (one,) = plans_agree(parallel, whole, [STATEMENTS[2]])
    assert one.same
    assert one.difference == (
        "the plan of the source uses 2 parallel workers, the plan of the copy no parallel workers"
    )
    assert "Gather" in one.source_plan and "Gather" not in one.copy_plan


def test_what_a_server_does_not_plan_is_no_agreement(databases):
    source, whole, _ = databases
    with psycopg.connect(whole, autocommit=True) as connection:
        connection.execute("CREATE TABLE new AS SELECT 1 AS id")
    missing, command = plans_agree(
        source, whole, [captured(5, "SELECT * FROM new"), captured(6, "VACUUM parcel")]
    )
    assert not missing.same and missing.source_plan == "" and "new" in missing.difference
    assert missing.difference.startswith("the source does not plan the statement: relation")
    assert command.difference == "the source does not plan the statement: it is a command without a plan"
