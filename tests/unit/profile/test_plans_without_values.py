"""Plans, statements and messages without the values of the data."""

from __future__ import annotations

import json

import pytest

from fakes.goldens import compare_answers
from uncork.profile.plans.tree import plan_shape, plan_tree
from uncork.profile.plans.without_values import (
    message_without_values,
    plan_without_values,
    statement_without_values,
)

TEXT = """Limit  (cost=0.29..8.31 rows=7 width=40)
  ->  Index Scan using "it's 5" on t2 x_1  (cost=0.29..8.31 rows=1 width=40)
        Index Cond: ((id = 4711) AND (c2 = ANY ('{4711,5}'::integer[])) AND (n = '-4711'::integer))
        Filter: ((name = E'Ada\\\\b''c
  Filter: Ada (cost=1
 Ada'::text) AND (NOT (hashed SubPlan 1)) AND (v::numeric(10,2) = 47.11) AND ($1 > 4e-3))
        Order By: (p <-> 4711)
        SubPlan 1
          ->  Seq Scan on s  (cost=0.00..2.00 rows=3 width=4)
  InitPlan 2
    ->  Gather  (cost=1.00..2.00 rows=3 width=4)
          Workers Planned: 2
          ->  Seq Scan on s s_1  (cost=0.00..2.00 rows=3 width=4)
JIT:
  Functions: 5"""
HIDDEN = """Limit  (cost=0.29..8.31 rows=7 width=40)
  ->  Index Scan using "it's 5" on t2 x_1  (cost=0.29..8.31 rows=1 width=40)
        Index Cond: ((id = ?) AND (c2 = ANY (?::integer[])) AND (n = ?::integer))
        Filter: ((name = ?::text) AND (NOT (hashed SubPlan 1)) AND (v::numeric(10,2) = ?) AND ($1 > ?))
        Order By: (p <-> ?)
        SubPlan 1
          ->  Seq Scan on s  (cost=0.00..2.00 rows=3 width=4)
  InitPlan 2
    ->  Gather  (cost=1.00..2.00 rows=3 width=4)
          Workers Planned: 2
          ->  Seq Scan on s s_1  (cost=0.00..2.00 rows=3 width=4)
JIT:
  Functions: 5"""
JSON = [
    {"Plan": {"Node Type": "Index Scan", "Relation Name": "t 4711's", "Alias": "t_1",
              "Index Name": "t2_idx", "Startup Cost": 0.29, "Total Cost": 8.31, "Plan Rows": 4,
              "Plan Width": 40, "Output": ["id", "'Ada'::text", '"4711 name"', "(InitPlan 1).col1"],
              "Index Cond": "(t_1.id = 4711)", "Filter": "(t_1.name = 'Ada\nLovelace'::text)",
              "Remote SQL": "SELECT id FROM public.t WHERE ((id = 4711))"}},
]  # fmt: skip


def test_text_keeps_names_and_estimates():
    assert plan_without_values(TEXT) == HIDDEN
    assert plan_without_values(HIDDEN) == HIDDEN
    assert plan_shape(plan_tree(HIDDEN)) == plan_shape(plan_tree(TEXT))


def test_json_keeps_names_and_estimates():
    found = json.loads(plan_without_values(json.dumps(JSON)))
    assert found[0]["Plan"] == {
        **JSON[0]["Plan"],
        "Output": ["id", "?::text", '"4711 name"', "(InitPlan 1).col1"],
        "Index Cond": "(t_1.id = ?)",
        "Filter": "(t_1.name = ?::text)",
        "Remote SQL": "SELECT id FROM public.t WHERE ((id = ?))",
    }


def test_statements_of_the_server():
    compare_answers("profile/without_values", statement_without_values)


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ('invalid input syntax for type integer: "A"da 4711"', "invalid input syntax for type integer: ?"),
        ("value 4711 is out of range", "value ? is out of range"),
        ("permission denied for table t2", "permission denied for table t2"),
        ("", ""),
    ],
)
def test_messages_of_the_server(message, kept):
    assert message_without_values(message) == kept
