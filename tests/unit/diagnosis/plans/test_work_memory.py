"""Rules about sorts on disk and about compiling."""

from fakes.findings import compare_findings
from fakes.planned_evidence import column, evidence, index, plan, statement, table
from uncork.diagnosis.rules.plans import planning

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


def test_a_hash_table_on_disk_gets_memory_only():
    text = """HashAggregate  (cost=1.0..2.0 rows=90000 width=8)
  Group Key: customer
  ->  Seq Scan on item  (cost=0.29..28.29 rows=100000 width=4)"""
    (found,) = planning.find_spill(spilling("SELECT customer FROM item GROUP BY customer", text))
    assert found.headline.startswith("GROUP BY of item in a hash table writes")
    assert [one.kind for one in found.candidates] == ["setting"]


def compiled(jit_ms, ms=50.0, calls=600):
    one = statement(SORTED, COLUMNS, plan(SORT), ms=ms, calls=calls, jit_ns=calls * jit_ms * 1e6)
    return evidence(one, tables=(table("item"),))


def test_what_is_found_word_for_word():
    compare_findings("work_memory", [
        ("a sort on disk is named and gets memory or an index", planning.find_spill(spilling()),
         planning.find_spill(spilling(SORTED + " LIMIT 10")),
         planning.find_spill(spilling(indexes=(index("item", "customer", "note"),)))),
        ("compiling that takes longer than it gains is found", planning.find_jit(compiled(40.0))),
        ("reports and sorts in memory are left alone",
         *(planning.find_spill(healthy) for healthy in (spilling(megabytes=0), spilling(calls=2)))),
        ("compiling that pays off and reports are left alone",
         *(planning.find_jit(healthy) for healthy in (compiled(8.0), compiled(0.0),
                                                  compiled(40.0, calls=3)))),
    ])  # fmt: skip
