"""Rules about sorts on disk and about compiling."""

import pytest

from fakes.planned_evidence import column, evidence, index, plan, statement, table
from uncork.advise.rules.plans import planning

COLUMNS = {"item": ("id", "customer", "note")}
SORTED = "SELECT id FROM item WHERE customer = $1 ORDER BY note DESC"
SORT = """Sort  (cost=50.71..51.96 rows=50000 width=69)
  Sort Key: note DESC
  ->  Seq Scan on item  (cost=0.29..28.29 rows=50000 width=69)"""
MEGABYTE = 1_000_000


def spilling(sql=SORTED, text=SORT, indexes=(), megabytes=30, calls=600):
    one = statement(sql, COLUMNS, plan(text), temp_bytes=calls * megabytes * MEGABYTE, calls=calls)
    return evidence(
        one,
        tables=(table("item"),),
        columns=tuple(column("item", name) for name in COLUMNS["item"]),
        indexes=indexes,
    )


def test_a_sort_on_disk_is_named_and_gets_memory_or_an_index():
    (found,) = planning.find_spill(spilling())
    assert found.headline == "The sort of item by note writes 30.0 MB of temporary files in each call"
    memory, by_index = found.candidates
    assert memory.sql == "ALTER ROLE app SET work_mem = '64MB';"
    assert by_index.sql == ("CREATE INDEX CONCURRENTLY item_customer_note_idx ON item (customer, note DESC);")
    (found,) = planning.find_spill(spilling(SORTED + " LIMIT 10"))
    assert [one.kind for one in found.candidates] == ["index", "setting"]
    (found,) = planning.find_spill(spilling(indexes=(index("item", "customer", "note"),)))
    assert [one.kind for one in found.candidates] == ["setting"]


def test_a_hash_table_on_disk_gets_memory_only():
    text = """HashAggregate  (cost=1.0..2.0 rows=90000 width=8)
  Group Key: customer
  ->  Seq Scan on item  (cost=0.29..28.29 rows=100000 width=4)"""
    (found,) = planning.find_spill(spilling("SELECT customer FROM item GROUP BY customer", text))
    assert found.headline.startswith("GROUP BY of item in a hash table writes")
    assert [one.kind for one in found.candidates] == ["setting"]


@pytest.mark.parametrize("healthy", [spilling(megabytes=0), spilling(calls=2)])
def test_reports_and_sorts_in_memory_are_left_alone(healthy):
    assert list(planning.find_spill(healthy)) == []


def compiled(jit_ms, ms=50.0, calls=600):
    one = statement(SORTED, COLUMNS, plan(SORT), ms=ms, calls=calls, jit_ns=calls * jit_ms * 1e6)
    return evidence(one, tables=(table("item"),))


def test_compiling_that_takes_longer_than_it_gains_is_found():
    (found,) = planning.find_jit(compiled(40.0))
    assert found.headline == "Compiling (jit) takes 40.0 ms of the 50.0 ms of a repeated statement"
    assert found.bill.share == pytest.approx((40 - 0.25 * 10) / 50)
    off, above = found.candidates
    assert (off.sql, off.undo) == ("ALTER ROLE app SET jit = off;", "ALTER ROLE app RESET jit;")
    assert above.sql == "ALTER ROLE app SET jit_above_cost = 200;"


@pytest.mark.parametrize("healthy", [compiled(8.0), compiled(0.0), compiled(40.0, calls=3)])
def test_compiling_that_pays_off_and_reports_are_left_alone(healthy):
    assert list(planning.find_jit(healthy)) == []
