"""Indexes that find rows, and tables that are read for a column of each."""

from dataclasses import replace

import pytest

from fakes.findings import compare_findings
from fakes.planned_evidence import column, evidence, plan, statement, table
from uncork.diagnosis.evidence import Existing
from uncork.diagnosis.rules.indexes import missing_index
from uncork.model.database.index import IndexKey, IndexShape
from uncork.model.results.database import IndexFacts

COLUMNS = {"sale": ("id", "shop", "amount", "note")}
SALES = (
    column("sale", "id"),
    column("sale", "shop", distinct=200),
    column("sale", "amount", distinct=1_000),
    column("sale", "note", type="text", width=100.0),
)
SUM = "SELECT sum(amount) FROM sale WHERE shop = $1"
BITMAP = """Aggregate  (cost=9.0..9.0 rows=1 width=8)
  ->  Bitmap Heap Scan on sale  (cost=1.0..8.0 rows=2000 width=4)
        Recheck Cond: (shop = 7)
        ->  Bitmap Index Scan on sale_shop  (cost=0.0..1.0 rows=2000 width=0)
              Index Cond: (shop = 7)"""


def existing(*columns, included=(), method="btree", name="sale_shop"):
    shape = IndexShape("sale", tuple(map(IndexKey, columns)), method, included, name=name)
    return Existing(IndexFacts(1, name, "sale", "", 8192, 1, 1, None, "", ""), lambda _: shape)


def found(sql=SUM, text=BITMAP, *, blocks=2_005.0, indexes=(), columns=SALES, **facts):
    one = statement(sql, COLUMNS, plan(text, "drawn"), blocks=blocks, rows=1.0, ms=3.5)
    seen = evidence(
        one,
        tables=(table("sale", 400_000, **facts),),
        columns=columns,
        indexes=(existing("shop"), *indexes),
    )
    return list(missing_index.find_covering(seen))


def test_a_plain_index_scan_is_the_same():
    text = BITMAP.splitlines()[0] + (
        "\n  ->  Index Scan using sale_shop on sale  (cost=1.0..8.0 rows=2000 width=4)\n"
        "        Index Cond: (shop = 7)"
    )
    assert len(found(text=text)) == 1


@pytest.mark.parametrize(
    "healthy",
    [
        found(blocks=60.0),  # few rows
        found(blocks=600.0),  # rows in the order of the index
        found("SELECT * FROM sale WHERE shop = $1"),
        found("SELECT note FROM sale WHERE shop = $1"),  # too wide
        found("SELECT sum(amount) FROM sale WHERE shop = $1 FOR UPDATE"),
        found(indexes=(existing("shop", included=("amount",), name="other"),)),
        found(indexes=(existing("shop", "amount", name="other"),)),
        found(updated=9_000),  # blocks that VACUUM has not marked
        found(text=BITMAP.replace("Bitmap Heap Scan on sale", "Seq Scan on sale").rpartition("\n  ")[0]),
    ],
)
def test_few_clustered_wide_changed_or_covered_rows_are_left_alone(healthy):
    assert healthy == []


def test_what_is_found_word_for_word():
    compare_findings("covering_index", [
        ("scattered rows are worth an index with their column", found()),
        ("an index in the order of its table reads few blocks twice",
         found(columns=([
             replace(one, correlation=0.99) if one.name == "shop" else one for one in SALES]))),
    ])  # fmt: skip
