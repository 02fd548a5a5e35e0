"""Plans of EXPLAIN, in JSON and in text, as trees of nodes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.goldens import compare_answers
from uncork.profile.plans.tree import plan_hash, plan_shape, plan_tree, statement_plan

EXPLAINED = Path(__file__).parent / "explained"
SCAN = "Seq Scan on public.sale  (cost=0.00..387.00 rows=20000 width=8)"


def stored(name):
    return (EXPLAINED / name).read_text()


def without_times(node):
    return replace(node, milliseconds=None, blocks=None, children=tuple(map(without_times, node.children)))


@pytest.mark.parametrize("form", ["json", "txt"])
def test_a_common_table_and_subplans_have_names_and_roles(form):
    root = plan_tree(stored(f"cte-15.{form}"))
    assert [(one.kind, one.role, one.subplan) for one in root.children] == [
        ("Aggregate", "InitPlan", "CTE totals"),
        ("Aggregate", "InitPlan", "InitPlan 3 (returns $2)"),
        ("Aggregate", "SubPlan", "SubPlan 2"),
        ("Seq Scan", "SubPlan", "SubPlan 4"),
    ]
    assert (root.common, root.alias, root.relation) == ("totals", "t", "")
    assert root.condition("Filter") == "((t.s > $2) AND (NOT (hashed SubPlan 4)))"
    assert root.output == ("t.customer", "t.s", "(SubPlan 2)")
    totals = root.children[0]
    assert (totals.strategy, totals.key("Group Key")) == ("Hashed", ("sale.customer",))
    index = root.children[2].children[0]
    assert (index.index, index.relation, index.alias) == ("sale_customer", "sale", "x")
    # EXPLAIN prints averages of all loops.
    assert (index.loops, index.actual_rows) == (952, 9520)
    assert (root.removed, root.children[3].removed) == (1048, 1900)


@pytest.mark.parametrize("name", ["cte-15", "sort-18"])
def test_json_and_text_are_read_as_the_same_tree(name):
    of_json, of_text = (without_times(plan_tree(stored(f"{name}.{form}"))) for form in ("json", "txt"))
    assert of_json == of_text


def test_a_node_has_the_blocks_that_it_hit_and_read():
    found = plan_tree(stored("cte-15.txt"))
    assert (found.blocks, found.children[0].blocks) == (2105, 187)
    assert plan_tree(stored("cte-15.json")).blocks is None  # explained without BUFFERS


@pytest.mark.parametrize("form", ["json", "txt"])
def test_a_sort_on_disk_and_its_time_are_read(form):
    root = plan_tree(stored(f"sort-18.{form}"))
    assert root.disk_kib == 1176
    assert root.key("Sort Key") == ("sale.note DESC", "sale.day")
    assert 40 < root.milliseconds < 70
    assert root.children[0].disk_kib == 0


def test_parallel_nodes_and_what_their_workers_wrote_are_read():
    text = stored("parallel-18.txt")
    nodes = list(plan_tree(text).walk())
    assert [one.kind for one in nodes if one.parallel] == ["Hash Join", "Seq Scan", "Hash", "Seq Scan"]
    assert [one.workers for one in nodes if one.kind == "Gather Merge"] == [2]
    scan = next(one for one in nodes if one.relation == "sale")
    assert (scan.loops, scan.actual_rows) == (3, pytest.approx(20_000, abs=1))
    on_disk = text.replace("quicksort  Memory: 25kB", "external merge  Disk: 100kB")
    assert next(one for one in plan_tree(on_disk).walk() if one.kind == "Sort").disk_kib == 300


def test_the_words_of_a_node_are_taken_apart():
    def answer(line):
        node = plan_tree(f"{line}  (cost=1.00..2.50 rows=3 width=4)")
        assert (node.startup_cost, node.cost, node.rows, node.width) == (1.0, 2.5, 3.0, 4)
        names = ("kind", "join", "strategy", "relation", "alias", "index", "function", "parallel")
        return "\n".join(f"{name}: {getattr(node, name)}" for name in names if getattr(node, name))

    compare_answers("profile/plan_nodes", answer)


def test_a_plan_in_a_log_is_read_below_the_text_of_its_query():
    plan = statement_plan(
        7,
        "executed",
        "Query Text: UPDATE sale\n\t  SET note = 'x'\n"
        "\tUpdate on sale  (cost=0.00..8.44 rows=0 width=0) (actual time=0.090..0.090 rows=0 loops=1)\n"
        "\t  ->  Seq Scan on sale  (cost=0.00..8.44 rows=9 width=10) (never executed)\n"
        "\t        Filter: (note = 'a\n\tb, c'::text)\n"
        "\tTrigger touched on sale: time=0.016 calls=9\n"
        "\tTrigger for constraint sale_customer_fkey: time=1.500 calls=9\n"
        "\tJIT:\n\t  Functions: 3",
    )
    assert (plan.template, plan.source, plan.jit) == (7, "executed", True)
    assert plan.triggers == (("touched", 0.016), ("sale_customer_fkey", 1.5))
    (scan,) = plan.root.children
    assert (scan.loops, scan.actual_rows, scan.role) == (0, 0, "Outer")
    assert scan.condition("Filter") == "(note = 'a\nb, c'::text)"


def test_parts_that_were_pruned_and_sets_of_groups_are_read():
    assert plan_tree("Append  (cost=0.00..0.01 rows=2 width=8)\n  Subplans Removed: 2").removed_parts == 2
    sets = plan_tree(f"MixedAggregate  (cost=0.00..9.0 rows=1 width=1)\n  Hash Key: a, b\n  Group Key: ()\n"
                     f"  ->  {SCAN}")  # fmt: skip
    assert sets.keys == (("Hash Key", ("a", "b")), ("Group Key", ()))
    assert sets.children[0].role == "Outer"


def test_json_of_auto_explain_has_triggers_and_compilation():
    plan = {
        "Query Text": "SELECT 1",
        "Plan": json.loads(stored("sort-18.json"))[0]["Plan"],
        "JIT": {"Functions": 2},
        "Triggers": [{"Trigger Name": "t", "Constraint Name": "fk", "Relation": "sale", "Time": 2.5}],
    }
    found = statement_plan(1, "executed", json.dumps(plan), "shown")
    assert (found.jit, found.triggers, found.text) == (True, (("fk", 2.5),), "shown")


def test_shapes_ignore_numbers_and_texts_without_a_plan_are_none():
    one, other = plan_tree(SCAN), plan_tree(SCAN.replace("20000", "7"))
    assert plan_shape(one) == plan_shape(other) != plan_shape(plan_tree(SCAN.replace("sale", "sales")))
    assert plan_tree("") is None
    assert plan_tree("Seq Scan on sale") is None
    assert plan_tree('[{"Plan": ') is None
    assert plan_tree("[]") is None


def reordered(value):
    """Return JSON with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["cte-15", "sort-18"])
def test_the_hash_of_a_plan_is_that_of_its_shape_in_any_form(name):
    text, document = stored(f"{name}.txt"), json.loads(stored(f"{name}.json"))
    found = plan_hash(text)
    assert found == plan_hash(json.dumps(document)) == plan_hash(json.dumps(reordered(document)))
    assert re.fullmatch("[0-9a-f]{16}", found)


def test_the_hash_ignores_numbers_and_values_but_not_tables_indexes_and_joins():
    plan = (
        "Nested Loop  (cost=0.42..99.10 rows=5 width=8)\n"
        "  ->  Seq Scan on sale  (cost=0.00..387.00 rows=20000 width=8)\n"
        "        Filter: (day = 7)\n"
        "  ->  Index Scan using item_pkey on item  (cost=0.42..8.44 rows=1 width=4)"
    )
    # Stored runs are compared by it, so that it must not change with versions of uncork.
    assert plan_hash(plan) == "ede2b8df204f8ce8"
    other = plan.replace("day = 7", "day = 8").replace("20000", "3").replace("387.00", "2.00")
    executed = other.replace("width=8)", "width=8) (actual time=0.1..0.2 rows=3 loops=1)")
    assert plan_hash(other) == plan_hash(executed) == plan_hash(plan)
    assert plan_hash(plan.replace("on sale", "on shop.sale")) == plan_hash(plan)  # EXPLAIN VERBOSE
    changes = ("sale", "sales"), ("item_pkey", "item_code"), ("Nested Loop", "Nested Loop Left Join")
    assert len({plan_hash(plan.replace(*change)) for change in changes} | {plan_hash(plan)}) == 4
    assert plan_hash("SCAN sale") is None  # of another engine
