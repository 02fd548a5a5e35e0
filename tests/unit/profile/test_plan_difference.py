"""Plans told apart: their text read, another plan, other statistics, no difference."""

import pytest

from uncork.profile.plans.difference import PlanLine, plan_difference, plan_lines

SCAN = (
    "Seq Scan on sale  (cost=0.00..{cost} rows={rows} width={width}) "
    "(actual time=0.01..2.30 rows={actual} loops={loops})"
)
JOIN = """\
Hash Right Join  (cost=9.00..25.13 rows=120 width=12) (actual time=0.1..0.4 rows=118.00 loops=1)
  Hash Cond: (o.customer = c.id)
  Buffers: shared hit=12 read=3
  ->  Seq Scan on "order" o  (cost=0.00..15.00 rows=1000 width=8) (actual time=0.0..0.1 rows=1000.00 loops=1)
        Filter: (note = '(cost=1.00..2.00 rows=3 width=4)'::text)
        Rows Removed by Filter: 7
  ->  Hash  (cost=5.00..5.00 rows=100 width=4) (actual time=0.05..0.05 rows=100.00 loops=1)
        Buckets: 1024  Batches: 1  Memory Usage: 12kB
        ->  Index Scan Backward using c_pkey on c  (cost=0.15..5.00 rows=100 width=4) (never executed)
        SubPlan 1
          ->  Result  (cost=0.00..0.01 rows=1 width=4)
Planning Time: 0.1 ms
Execution Time: 0.5 ms"""


def scan(rows=1000, actual="1000", *, cost="35.50", width=4, loops=1):
    return SCAN.format(rows=rows, actual=actual, cost=cost, width=width, loops=loops)


def told(before, after):
    return plan_difference(("Seq Scan on sale", before), ("Seq Scan on sale", after))


def test_the_nodes_of_a_text_are_read_from_the_top_down():
    nodes = plan_lines(JOIN)
    assert [(node.depth, node.name) for node in nodes] == [
        (0, "Hash Right Join"),
        (1, 'Seq Scan on "order" o'),
        (1, "Hash"),
        (2, "Index Scan Backward using c_pkey on c"),
        (2, "Result"),
    ]
    assert nodes[0] == PlanLine("Hash Right Join", 0, 25.13, 120, 12, 118.0, 1)
    assert [node.actual for node in nodes] == [118.0, 1000.0, 100.0, None, None]


def test_texts_of_other_engines_have_no_nodes():
    assert plan_lines("SCAN sale USING INDEX city\n└── EMPTY_RESULT") == ()
    assert plan_difference(("SCAN sale", "SCAN sale 1"), ("SCAN sale", "SCAN sale 2")) is None


def test_another_shape_is_another_plan():
    kind, text = plan_difference(
        ("Seq Scan on sale\n  Filter: (city = ?)", scan()),
        ("Index Scan using c on sale\n  Index Cond: (city = ?)", scan()),
        ("main", "branch"),
    )
    assert kind == "changed"
    assert text.splitlines()[:2] == ["--- main", "+++ branch"]
    assert "-Seq Scan on sale" in text
    assert "+Index Scan using c on sale" in text


@pytest.mark.parametrize("other", ["Hash Join", "Hash Left Join"])
def test_what_the_shape_has_no_word_for_is_another_plan_too(other):
    kind, text = plan_difference(("Hash Join", JOIN), ("Hash Join", JOIN.replace("Hash Right Join", other)))
    assert (kind, f"+{other}" in text, "-Hash Right Join" in text) == ("changed", True, True)


def test_an_alias_is_no_other_plan():
    assert plan_difference(("", JOIN), ("", JOIN.replace('"order" o', '"order" orders'))) is None


def test_times_and_buffers_are_no_difference():
    assert told(scan(), scan().replace("2.30", "9.99") + "\n  Buffers: shared hit=99") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (scan(1, "1"), scan(2, "1")),  # the planner has no half rows
        (scan(100_000, cost="1000.00"), scan(100_900, cost="1009.00")),
        (scan(actual="333", loops=3), scan(actual="334", loops=3)),  # an average over loops
        (scan(actual="0.50", loops=2), scan(actual="1.00", loops=2)),
    ],
)
def test_rounding_is_no_difference(before, after):
    assert told(before, after) is None


@pytest.mark.parametrize(
    ("after", "summary", "line"),
    [
        (scan(4000), "Seq Scan on sale is expected to return 4 000 rows instead of 1 000",
         "Seq Scan on sale: estimated rows 1 000 → 4 000; actual rows 1 000"),
        (scan(1050),
         "Seq Scan on sale is expected to return 1 050 rows instead of 1 000, a difference that ANALYZE "
         "can cause by chance",
         "Seq Scan on sale: estimated rows 1 000 → 1 050; actual rows 1 000"),
        (scan(1050, "5000"), "Seq Scan on sale is expected to return 1 050 rows instead of 1 000",
         "Seq Scan on sale: estimated rows 1 000 → 1 050; actual rows 1 000 → 5 000"),
        (scan(actual="500", loops=4), "Seq Scan on sale returns 2 000 rows instead of 1 000",
         "Seq Scan on sale: actual rows 1 000 → 2 000"),
        (scan(cost="71.00"),
         "the planner estimates the cost of Seq Scan on sale at 71 instead of 35.5",
         "Seq Scan on sale: cost 35.5 → 71; actual rows 1 000"),
        (scan(width=36), "rows of Seq Scan on sale are expected to be 36 bytes wide instead of 4",
         "Seq Scan on sale: width 4 → 36 B; actual rows 1 000"),
    ],
)  # fmt: skip
def test_other_numbers_of_the_same_plan_are_other_statistics(after, summary, line):
    assert told(scan(), after) == ("statistics", f"{summary}\n{line}")


def test_the_innermost_of_nodes_that_differ_alike_is_named_and_only_nodes_that_differ_are_shown():
    after = JOIN.replace("rows=100 width=4) (never", "rows=300 width=4) (never").replace(
        "rows=100 width=4) (actual", "rows=300 width=4) (actual"
    )
    kind, text = plan_difference(("x", JOIN), ("x", after))
    assert kind == "statistics"
    assert text.splitlines() == [
        "Index Scan Backward using c_pkey on c is expected to return 300 rows instead of 100",
        "  Hash: estimated rows 100 → 300; actual rows 100",
        "    Index Scan Backward using c_pkey on c: estimated rows 100 → 300",
    ]
