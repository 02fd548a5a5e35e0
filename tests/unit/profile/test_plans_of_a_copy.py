"""Plans of a source and of its copy: which differences void a comparison, and which are small."""

from __future__ import annotations

import pytest

from uncork.profile.plans.agreement import first_difference, is_parallel
from uncork.profile.plans.tree import plan_tree

INDEX = """\
Index Scan using sale_day on public.sale  (cost=0.29..8.30 rows={rows} width=8)
  Index Cond: (sale.day = 7)"""
BITMAP = """\
Bitmap Heap Scan on public.sale  (cost=4.30..8.30 rows={rows} width=8)
  Recheck Cond: (sale.day = 7)
  ->  Bitmap Index Scan on {index}  (cost=0.00..4.30 rows={rows} width=0)
        Index Cond: (sale.day = 7)"""
JOIN = """\
{join}  (cost=1.00..9.00 rows=10 width=8)
  ->  Seq Scan on public.sale  (cost=0.00..4.00 rows=10 width=8)
  ->  {inner}"""
CUSTOMER = "Seq Scan on public.customer  (cost=0.00..4.00 rows=10 width=8)"
KEPT = "Materialize  (cost=0.00..4.00 rows=10 width=8)\n        ->  " + CUSTOMER
HASH = "Hash  (cost=0.00..4.00 rows=10 width=8)\n        ->  " + CUSTOMER


def compared(source, copy):
    """Return the difference's text and whether it is small; None if there is none."""
    found = first_difference(plan_tree(source), plan_tree(copy))
    return None if found is None else (found.text, found.small)


def partitions(*scans):
    lines = ["Append  (cost=0.00..9.00 rows=10 width=8)"]
    for relation, alias, index in scans:
        name = f"public.{relation}" if relation == alias else f"public.{relation} {alias}"
        if index:
            lines.append(f"  ->  Index Scan using {index} on {name}  (cost=0.29..8.30 rows=1 width=8)")
            lines.append(f"        Index Cond: ({alias}.day = 7)")
        else:
            lines.append(f"  ->  Seq Scan on {name}  (cost=0.00..4.00 rows=10 width=8)")
    return "\n".join(lines)


def test_numbers_make_no_difference():
    assert compared(INDEX.format(rows=1), INDEX.format(rows=90)) is None


@pytest.mark.parametrize(
    ("rows", "index", "small"), [(15, "sale_day", True), (90, "sale_day", False), (10, "sale_month", False)]
)
def test_a_bitmap_of_the_same_index_is_a_small_difference_if_it_has_as_many_rows(rows, index, small):
    found = compared(INDEX.format(rows=10), BITMAP.format(rows=rows, index=index))
    assert found == (
        "the plan of the source has Index Scan using sale_day on sale (about 10 rows) "
        f"where the plan of the copy has Bitmap Heap Scan on sale (about {rows} rows)",
        small,
    )


def test_materialize_is_a_small_difference_and_does_not_hide_a_large_one():
    plain, kept = JOIN.format(join="Nested Loop", inner=CUSTOMER), JOIN.format(join="Nested Loop", inner=KEPT)
    small = ("only the plan of the copy keeps rows in a Materialize node", True)
    assert compared(plain, kept) == small
    text, is_small = compared(plain, kept.replace("Seq Scan on public.customer", "Seq Scan on public.client"))
    assert not is_small and "Seq Scan on client" in text


def test_another_join_is_named_with_its_tables():
    text, small = compared(
        JOIN.format(join="Nested Loop Left Join", inner=CUSTOMER), JOIN.format(join="Hash Join", inner=HASH)
    )
    assert not small
    assert text == (
        "the plan of the source has Nested Loop (Left) of sale and customer (about 10 rows) "
        "where the plan of the copy has Hash Join of sale and customer (about 10 rows)"
    )


def test_an_index_that_is_read_whole_differs_from_a_part_of_it():
    whole = INDEX.format(rows=10).replace("Index Cond", "Filter")
    assert compared(whole, INDEX.format(rows=10)) == (
        "the plan of the copy reads a part of the index sale_day, the plan of the source all of it",
        False,
    )


def test_a_subquery_that_is_not_hashed_differs():
    scan = (
        CUSTOMER
        + "\n  Filter: (NOT ({}SubPlan 1))\n  SubPlan 1\n    ->  "
        + CUSTOMER.replace("customer", "sale")
    )
    assert compared(scan.format("hashed "), scan.format("")) == (
        "the plan of the source keeps a subquery of Seq Scan on customer in a hash table, "
        "the plan of the copy does not",
        False,
    )


def test_partitions_that_are_read_in_the_same_way_count_once():
    source = partitions(*((f"sale_2026_{n}", f"sale_{n}", f"sale_2026_{n}_day_idx") for n in (1, 2, 3)))
    copy = partitions(*((f"sale_2025_{n}", f"sale_{n}", f"sale_2025_{n}_day_idx") for n in (1, 2)))
    assert compared(source, source) is None
    assert compared(source, copy) == (
        "the plan of the source reads 3 partitions in Append, the plan of the copy 2",
        True,
    )
    scanned = partitions(("sale_2025_1", "sale_1", "sale_2025_1_day_idx"), ("sale_2025_2", "sale_2", ""))
    text, small = compared(source, scanned)
    assert not small
    assert text == (
        "below Append, the plan of the source has Index Scan using sale_2026_1_day_idx on sale_2026_1, "
        "the plan of the copy Index Scan using sale_2025_1_day_idx on sale_2025_1 and Seq Scan on sale_2025_2"
    )


def test_tables_of_a_union_are_compared_by_name():
    source = partitions(("sale", "sale", ""), ("sale_2", "sale_2", ""))
    text, small = compared(source, partitions(("sale", "sale", ""), ("sale_3", "sale_3", "")))
    assert not small and "Seq Scan on sale_2" in text and "Seq Scan on sale_3" in text


def test_a_plan_with_gather_is_parallel():
    gathered = "Gather  (cost=0.00..9.00 rows=10 width=8)\n  Workers Planned: 2\n  ->  Parallel " + CUSTOMER
    assert is_parallel(plan_tree(gathered)) and not is_parallel(plan_tree(CUSTOMER))
