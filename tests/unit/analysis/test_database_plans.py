"""Stored plans of a watched server."""

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.analysis.database.plans import missing_plans, plans_of, statement_plans
from uncork.model.tables.database import DATABASE_TABLES
from uncork.store.evidence import read_evidence

SCAN = "Seq Scan on sale  (cost=0.00..387.00 rows=20000 width=8)"


def row(query_id, source, plan, reason="", *, denied=False, jit=False):
    return {
        **{"query_id": query_id, "template": query_id, "source": source, "number": 0, "plan": plan},
        **{"json": None, "jit": jit, "reason": reason, "denied": denied},
    }


def test_a_run_without_the_newer_columns_is_read(tmp_path):
    older = {"query_id": [7], "template": [3], "plan": [SCAN], "reason": [""], "denied": [False]}
    folder = tmp_path / "database_plans"
    folder.mkdir()
    pq.write_table(pa.table(older), folder / "000001.parquet")
    (tmp_path / "facts.json").write_text("{}")
    _, tables = read_evidence(tmp_path, DATABASE_TABLES)
    rows = tables["database_plans"].to_pylist()
    (plan,) = statement_plans(rows)
    assert (plan.template, plan.source, plan.root.relation, plan.text, plan.jit) == (
        *(3, "generic", "sale", SCAN, False),
    )
    (shown,) = plans_of(rows)
    assert (shown.text, shown.source) == (SCAN, "generic")


def test_the_generic_plan_is_shown_else_the_first():
    rows = [
        row(1, "generic", SCAN, jit=True),
        row(1, "drawn", SCAN.replace("sale", "drawn")),
        row(2, "generic", None, "no type"),
        row(2, "seen", SCAN.replace("sale", "seen")),
        row(3, "generic", None, "no type"),
    ]
    assert [(one.template, one.source, one.reason) for one in plans_of(rows)] == [
        *((1, "generic", ""), (2, "seen", ""), (3, "generic", "no type")),
    ]
    assert [(one.template, one.source, one.jit) for one in statement_plans(rows)] == [
        *((1, "generic", True), (1, "drawn", False), (2, "seen", False)),
    ]


def test_missing_plans_are_listed_by_reason_unless_another_plan_exists():
    rows = [
        row(1, "generic", None, "no type"),
        row(1, "seen", SCAN),
        row(2, "generic", None, "permission denied for table t", denied=True),
        row(3, "generic", None, 'relation "u" does not exist'),
        row(4, "generic", None, "operator is not unique"),
        row(5, "generic", None, "operator is not unique"),
        row(6, "generic", None, 'relation "pg_temp_6.pg_temp_16449" does not exist'),
        row(7, "generic", None, "permission denied for schema pg_temp_4", denied=True),
    ]
    denied, unclear, unknown = missing_plans(rows, "app")
    assert "permission denied for table t" in denied.what and "pg_read_all_data" in denied.remedy
    assert unclear.lost == "the plans of 2 of the costliest statements"
    assert unknown.what == ('statements that the server can plan (the server: "relation "u" does not exist")')
    assert "search_path" in unknown.remedy
