"""Indexes that find rows, and tables that are read for a column of each."""

from dataclasses import replace

import pytest

from fakes.planned_evidence import column, evidence, plan, statement, table
from uncork.advise.evidence import Existing
from uncork.advise.rules.indexes import missing_index
from uncork.model.database.index import IndexKey, IndexShape
from uncork.model.results.database import IndexFacts
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

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


def test_scattered_rows_are_worth_an_index_with_their_column():
    (one,) = found()
    assert one.headline == "Calls find rows by sale_shop, then read a block of sale for each"
    assert fits(finding_headline(one))
    assert one.bill.share == pytest.approx(0.85 * (1 - (2_000 / 150 + 4) / 2_005))
    (candidate,) = one.candidates
    assert candidate.sql == ("CREATE INDEX CONCURRENTLY sale_shop_idx ON sale (shop) INCLUDE (amount);")
    assert candidate.undo == "DROP INDEX CONCURRENTLY sale_shop_idx;"
    assert any("sale_shop" in reason for reason in candidate.against)


def test_an_index_in_the_order_of_its_table_reads_few_blocks_twice():
    ordered = [replace(one, correlation=0.99) if one.name == "shop" else one for one in SALES]
    assert found(columns=ordered) == []


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
