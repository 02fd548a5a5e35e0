"""Read EXPLAIN's JSON or text as a tree of nodes, from PostgreSQL 13 to 18. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from uncork.model.database.plan import PlanNode, PlanSource, StatementPlan
from uncork.profile.plans.text import parse_plan_text

_CONDITIONS: Final = (
    *("Index Cond", "Recheck Cond", "Order By", "TID Cond", "Hash Cond", "Merge Cond", "Join Filter"),
    *("Filter", "One-Time Filter", "Run Condition", "Cache Key", "Function Call", "Table Function Call"),
    *("Conflict Resolution", "Conflict Filter", "Remote SQL"),
)
_KEYS: Final = ("Sort Key", "Presorted Key", "Group Key", "Conflict Arbiter Indexes")
_REMOVED: Final = "Rows Removed by "
_BLOCK_KIB: Final = 8
_HASH_DIGITS: Final = 16
"""Hexadecimal digits of a hash: 64 bits, as many as query ids of PostgreSQL."""


def plan_tree(text: str) -> PlanNode | None:
    """Return the plan in EXPLAIN's JSON or text; None if there is none."""
    found = _read(text)
    return None if found is None else _node(found["Plan"])


def statement_plan(template: int, source: PlanSource, output: str, text: str = "") -> StatementPlan | None:
    """Return the plan of a template from EXPLAIN's JSON or text; None if there is none.

    `text` is EXPLAIN's text to show, if `output` is not it.
    """
    found = _read(output)
    if found is None:
        return None
    return StatementPlan(
        template=template,
        source=source,
        root=_node(found["Plan"]),
        text=text or output,
        jit="JIT" in found,
        triggers=tuple(
            (trigger.get("Constraint Name") or trigger["Trigger Name"], trigger["Time"])
            for trigger in found.get("Triggers", ())
            if "Time" in trigger
        ),
        jit_ms=_compiling_ms(found),
    )


def _compiling_ms(found: Mapping[str, Any]) -> float | None:
    total = found.get("JIT", {}).get("Timing", {}).get("Total")
    return None if total is None else float(total)


def plan_shape(node: PlanNode) -> tuple[Any, ...]:
    """Return what makes a plan another one: its nodes with their tables and indexes, without numbers."""
    own = (node.kind, node.relation, node.alias, node.index, node.strategy, node.join, node.parallel)
    return (*own, *(plan_shape(child) for child in node.children))


def plan_hash(text: str) -> str | None:
    """Return a hash of the shape of the plan in EXPLAIN's JSON or text; None if there is none.

    It is equal for all plans of one shape (`plan_shape`), whatever their costs, numbers of rows, values and
    times, in JSON or text, on any server and in any version of Python. Schemas do not count, because EXPLAIN
    names them only with VERBOSE.
    """
    root = plan_tree(text)
    if root is None:
        return None
    shape = json.dumps(_without_schemas(plan_shape(root)))
    return hashlib.sha256(shape.encode()).hexdigest()[:_HASH_DIGITS]


def _without_schemas(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    kind, relation, *others = shape
    below = (_without_schemas(one) if isinstance(one, tuple) else one for one in others)
    return (kind, relation.rpartition(".")[2], *below)


def _read(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith(("[", "{")):
        return parse_plan_text(text)
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if isinstance(found, list):
        found = found[0] if found else None
    return found if isinstance(found, dict) and "Plan" in found else None


def _node(plan: Mapping[str, Any]) -> PlanNode:
    loops = plan.get("Actual Loops")
    milliseconds = plan.get("Actual Total Time")
    schema, kind = plan.get("Schema", ""), plan["Node Type"]
    return PlanNode(
        kind=kind,
        relation=_qualified(schema, plan.get("Relation Name", ""), ("public",)),
        alias=plan.get("Alias", ""),
        index=plan.get("Index Name", ""),
        startup_cost=float(plan["Startup Cost"]),
        cost=float(plan["Total Cost"]),
        rows=float(plan["Plan Rows"]),
        width=plan["Plan Width"],
        conditions=tuple((name, _text(plan[name])) for name in _CONDITIONS if name in plan),
        keys=tuple(_keys(plan)),
        role=plan.get("Parent Relationship", ""),
        subplan=plan.get("Subplan Name", ""),
        common=plan.get("CTE Name", ""),
        function=_qualified(schema, plan.get("Function Name", ""), ("public", "pg_catalog")),
        strategy=_strategy(plan),
        join=plan.get("Join Type", ""),
        output=tuple(plan.get("Output", ())),
        parallel=bool(plan.get("Parallel Aware")),
        workers=int(plan.get("Workers Planned", 0)),
        removed_parts=int(plan.get("Subplans Removed", 0)),
        actual_rows=None if loops is None else float(plan["Actual Rows"]) * loops,
        loops=None if loops is None else float(loops),
        removed=None if loops is None else _removed(plan) * loops,
        milliseconds=None if loops is None or milliseconds is None else float(milliseconds) * loops,
        disk_kib=None if loops is None else _disk_kib(plan),
        blocks=None if loops is None else _blocks(plan),
        children=tuple(_node(child) for child in plan.get("Plans", ())),
    )


def _qualified(schema: str, name: str, left_out: tuple[str, ...]) -> str:
    return f"{schema}.{name}" if name and schema and schema not in left_out else name


def _strategy(plan: Mapping[str, Any]) -> str:
    """Return how a node works: an aggregate's strategy, the change of a table, a custom scan's provider."""
    for name in ("Strategy", "Custom Plan Provider", "Operation"):
        found: str = plan.get(name, "")
        if found and found != "Select":
            return found
    return ""


def _keys(plan: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in _KEYS:
        if name in plan:
            yield name, tuple(plan[name])
    yield from plan.get("Key Sets", ())  # from text
    for each in plan.get("Grouping Sets", ()):
        if "Sort Key" in each:
            yield "Sort Key", tuple(each["Sort Key"])
        for name in ("Group Key", "Hash Key"):
            for columns in each.get(f"{name}s", ()):
                yield name, tuple(columns)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join(map(str, value))


def _removed(plan: Mapping[str, Any]) -> float:
    return float(sum(number for name, number in plan.items() if name.startswith(_REMOVED)))


def _blocks(plan: Mapping[str, Any]) -> float | None:
    found = [plan[name] for name in ("Shared Hit Blocks", "Shared Read Blocks") if name in plan]
    return float(sum(found)) if found else None


def _disk_kib(plan: Mapping[str, Any]) -> float:
    """Return the temporary space of a node, else how much it wrote to temporary files if blocks are counted.

    A hash join in several batches reports no space, but BUFFERS counts the blocks that it wrote.
    """
    space = 0.0
    for process in (plan, *plan.get("Workers", ())):
        if process.get("Sort Space Type") == "Disk":
            space += process["Sort Space Used"]
        space += process.get("Disk Usage", 0)
        if process.get("Storage") == "Disk":
            space += process["Maximum Storage"]
    if space or "Temp Written Blocks" not in plan:
        return space
    below = sum(child.get("Temp Written Blocks", 0) for child in plan.get("Plans", ()))
    return float(max(0, plan["Temp Written Blocks"] - below) * _BLOCK_KIB)
