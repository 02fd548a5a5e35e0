"""Read EXPLAIN's JSON or text as a tree of nodes, from PostgreSQL 13 to 18. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from uncork.model.database.plan import PlanNode, PlanSource, StatementPlan

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
    compiling = found.get("JIT", {}).get("Timing", {}).get("Total")
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
        jit_ms=None if compiling is None else float(compiling),
    )


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
    conditions = {
        name: plan[name] if isinstance(plan[name], str) else ", ".join(map(str, plan[name]))
        for name in _CONDITIONS
        if name in plan
    }
    removed = sum(number for name, number in plan.items() if name.startswith(_REMOVED))
    blocks = [plan[name] for name in ("Shared Hit Blocks", "Shared Read Blocks") if name in plan]
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
        conditions=tuple(conditions.items()),
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
        removed=None if loops is None else float(removed) * loops,
        milliseconds=None if loops is None or milliseconds is None else float(milliseconds) * loops,
        disk_kib=None if loops is None else _disk_kib(plan),
        blocks=None if loops is None or not blocks else float(sum(blocks)),
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


# ---- EXPLAIN's text in the structure of EXPLAIN (FORMAT JSON) ----

_NODE: Final = re.compile(
    r"^(?P<indent> *)(?P<arrow>-> +)?(?P<name>\S.*?) +\(cost=(?P<startup>[\d.]+)\.\.(?P<cost>[\d.]+) "
    r"rows=(?P<rows>\d+) width=(?P<width>\d+)\)"
    r"(?: \((?:actual (?:time=[\d.]+\.\.(?P<time>[\d.]+) )?rows=(?P<actual>[\d.]+) loops=(?P<loops>\d+)"
    r"|(?P<never>never executed))\))?\s*$"
)
_DETAIL: Final = re.compile(r"^ +(?P<name>[A-Z][A-Za-z-]*(?: [A-Za-z0-9]+)*):(?: +(?P<value>.*))?$", re.S)
_HEADING: Final = re.compile(r"^ +(?P<name>(?P<kind>InitPlan|SubPlan|CTE) .+)$")
_TRIGGER: Final = re.compile(
    r"^Trigger (?:for constraint )?(?P<name>.+?)(?: on .+)?: (?:time=(?P<time>[\d.]+) )?calls="
)
_WORKER: Final = re.compile(r"^ +Worker \d+: +(?P<rest>.*)$")
_SORT_DISK: Final = re.compile(r"Sort Method: .*  Disk: (\d+)kB")
_DISK_USAGE: Final = re.compile(r"Disk Usage: (\d+)kB")
_STORAGE: Final = re.compile(r"Storage: Disk +Maximum Storage: (\d+)kB")
_TEMPORARY: Final = re.compile(r"temp [^,]*?written=(\d+)")
_SHARED: Final = re.compile(r"shared(?: hit=(\d+))?(?: read=(\d+))?")
_COMPILING: Final = re.compile(r"Total ([\d.]+) ms")

_UNQUOTED: Final = re.compile(r"(?:[^'\"]|'[^']*'|\"[^\"]*\")*")
"""A text in which every quote is closed."""

_NAME: Final = r'(?:"(?:[^"]|"")*"|[^\s".]+)'
_SCAN: Final = re.compile(
    rf"^(?P<kind>.+?)(?: using (?P<index>{_NAME}))? on "
    rf"(?:(?P<schema>{_NAME})\.)?(?P<target>{_NAME})(?: (?P<alias>{_NAME}))?$"
)
_JOIN: Final = re.compile(
    r"^(?P<kind>Hash|Merge|Nested Loop)(?: (?P<join>(?:Right |Left )?(?:Semi|Anti)|Left|Right|Full))? Join$"
)
_CUSTOM: Final = re.compile(r"^Custom Scan \((?P<provider>[^)]*)\)")
_AGGREGATES: Final = {
    "Aggregate": "Plain",
    "GroupAggregate": "Sorted",
    "HashAggregate": "Hashed",
    "MixedAggregate": "Mixed",
}
_CHANGES: Final = ("Insert", "Update", "Delete", "Merge")
_LISTS: Final = frozenset(
    {"Output", "Sort Key", "Presorted Key", "Group Key", "Hash Key", "Conflict Arbiter Indexes"}
)
_MEMBERS: Final = frozenset({"Append", "Merge Append", "BitmapAnd", "BitmapOr"})
_BEFORE_TARGET: Final = {
    "CTE Scan": "CTE Name",
    "WorkTable Scan": "CTE Name",
    "Function Scan": "Function Name",
}
_ALIASES: Final = ("Values Scan", "Subquery Scan", "Table Function Scan", "Named Tuplestore Scan")


@dataclass(slots=True)
class _Open:
    """A node whose details and children follow: they are indented by `inside` columns."""

    plan: dict[str, Any]
    inside: int
    heading: tuple[str, str] | None = None
    plain: int = 0


def parse_plan_text(text: str) -> dict[str, Any] | None:
    """Return a plan with the names of EXPLAIN (FORMAT JSON); None if the text contains no plan.

    Lines before the first node are ignored, and so is a common indentation, as in the logs of auto_explain.
    Grouping sets are listed under "Group Key" and "Hash Key", as (name, columns) under "Key Sets".
    """
    lines = [line.expandtabs(0) for line in text.splitlines()]
    nodes = ((place, _NODE.match(line)) for place, line in enumerate(lines))
    first = next((place for place, node in nodes if node is not None and node["arrow"] is None), None)
    if first is None:
        return None
    margin = len(lines[first]) - len(lines[first].lstrip())
    plan = (line[margin:] if line[:margin].isspace() else line for line in lines[first:])
    return _Reader().read(_joined(plan))


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Join lines whose break is inside of a literal or a quoted name."""
    open_line = ""
    for line in lines:
        whole = f"{open_line}\n{line}" if open_line else line
        unfinished = _UNQUOTED.fullmatch(whole) is None
        open_line = whole if unfinished else ""
        if not unfinished:
            yield whole
    if open_line:
        yield open_line


@dataclass(slots=True)
class _Reader:
    """Reads a plan line by line, from the top down."""

    found: dict[str, Any] = field(default_factory=dict)
    open: list[_Open] = field(default_factory=list)

    def read(self, lines: Iterable[str]) -> dict[str, Any]:
        for line in lines:
            node = _NODE.match(line)
            if node is not None and (node["arrow"] is not None) == bool(self.open):
                self._node(node)
            elif line[:1] != " ":
                self._ending(line)
            else:
                self._detail(line)
        return self.found

    def _node(self, match: re.Match[str]) -> None:
        plan = {**_named_node(match["name"]), **_numbers(match)}
        arrow = len(match["indent"])
        if not self.open:
            self.found["Plan"] = plan
            self.open.append(_Open(plan, 2))
            return
        while len(self.open) > 1 and self.open[-1].inside > arrow:
            self.open.pop()
        parent = self.open[-1]
        if arrow > parent.inside and parent.heading is not None:
            plan["Parent Relationship"], plan["Subplan Name"] = parent.heading
        else:
            plan["Parent Relationship"] = _relationship(parent)
            parent.plain += 1
        parent.plan.setdefault("Plans", []).append(plan)
        self.open.append(_Open(plan, arrow + 6))

    def _detail(self, line: str) -> None:
        if "JIT" in self.found:
            compiling = _COMPILING.search(line)
            if compiling is not None:
                self.found["JIT"] = {"Timing": {"Total": float(compiling[1])}}
            return
        column = len(line) - len(line.lstrip())
        heading, detail, worker = _HEADING.match(line), _DETAIL.match(line), _WORKER.match(line)
        while len(self.open) > 1 and self.open[-1].inside > column and (heading or detail or worker):
            self.open.pop()
        node = self.open[-1]
        if worker is not None:
            node.plan.setdefault("Workers", []).append(_space(worker["rest"]))
        elif heading is not None:
            kind = "InitPlan" if heading["kind"] == "CTE" else heading["kind"]
            node.heading = (kind, heading["name"])
        elif detail is not None and column > node.inside and "Workers" in node.plan:
            node.plan["Workers"][-1].update(_space(line.strip()))
        elif detail is not None:
            _add(node.plan, detail["name"], detail["value"] or "", line)

    def _ending(self, line: str) -> None:
        trigger = _TRIGGER.match(line)
        if trigger is not None and trigger["time"] is not None:
            one = {"Trigger Name": trigger["name"], "Time": float(trigger["time"])}
            self.found.setdefault("Triggers", []).append(one)
        elif line.startswith("JIT:"):
            self.found["JIT"] = {}


def _add(plan: dict[str, Any], name: str, value: str, line: str) -> None:
    if name in ("Group Key", "Hash Key"):
        plan.setdefault("Key Sets", []).append((name, () if value == "()" else _split(value)))
    elif name in _LISTS:
        if name == "Sort Key" and name in plan:
            plan.setdefault("Key Sets", []).append((name, _split(value)))
        else:
            plan[name] = _split(value)
    elif name.startswith("Rows Removed by") or name in ("Workers Planned", "Subplans Removed"):
        plan[name] = float(value)
    elif name in ("Sort Method", "Batches", "Storage", "Buffers"):
        plan.update(_space(line.strip()))
    elif name not in plan:
        plan[name] = value


def _space(line: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (sort := _SORT_DISK.search(line)) is not None:
        found |= {"Sort Space Used": int(sort[1]), "Sort Space Type": "Disk"}
    if (usage := _DISK_USAGE.search(line)) is not None:
        found["Disk Usage"] = int(usage[1])
    if (storage := _STORAGE.search(line)) is not None:
        found |= {"Storage": "Disk", "Maximum Storage": int(storage[1])}
    if line.startswith("Buffers:"):
        temporary = _TEMPORARY.search(line)
        found["Temp Written Blocks"] = 0 if temporary is None else int(temporary[1])
        shared = _SHARED.search(line)
        hit, read = (0, 0) if shared is None else (int(number or 0) for number in shared.groups())
        found |= {"Shared Hit Blocks": hit, "Shared Read Blocks": read}
    return found


def _numbers(match: re.Match[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "Startup Cost": float(match["startup"]),
        "Total Cost": float(match["cost"]),
        "Plan Rows": float(match["rows"]),
        "Plan Width": int(match["width"]),
    }
    if match["never"] is not None:
        found |= {"Actual Rows": 0.0, "Actual Loops": 0.0, "Actual Total Time": 0.0}
    elif match["actual"] is not None:
        found |= {"Actual Rows": float(match["actual"]), "Actual Loops": float(match["loops"])}
        if match["time"] is not None:
            found["Actual Total Time"] = float(match["time"])
    return found


def _named_node(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"Parallel Aware": name.startswith("Parallel ")}
    for word in ("Async ", "Parallel ", "Partial ", "Finalize ", "Simple "):
        name = name.removeprefix(word)
    provider = _CUSTOM.match(name)
    if provider is not None:
        found["Custom Plan Provider"] = provider["provider"]
        name = name.replace(provider[0], "Custom Scan", 1)
    scan = _SCAN.match(name)
    if scan is not None:
        found |= _target(scan)
        name = scan["kind"]
    join = _JOIN.match(name) or (_JOIN.match(f"{name} Join") if name == "Nested Loop" else None)
    if join is not None:
        kind = join["kind"] if join["kind"] == "Nested Loop" else f"{join['kind']} Join"
        return {**found, "Node Type": kind, "Join Type": join["join"] or "Inner"}
    if name in _AGGREGATES:
        return {**found, "Node Type": "Aggregate", "Strategy": _AGGREGATES[name]}
    if name.startswith(("HashSetOp", "SetOp")):
        return {**found, "Node Type": "SetOp", "Strategy": "Hashed" if name.startswith("Hash") else "Sorted"}
    if name in _CHANGES:
        return {**found, "Node Type": "ModifyTable", "Operation": name}
    if name.removeprefix("Foreign ") in _CHANGES:
        return {**found, "Node Type": "Foreign Scan", "Operation": name.removeprefix("Foreign ")}
    return {**found, "Node Type": name.removesuffix(" Backward")}


def _target(scan: re.Match[str]) -> dict[str, Any]:
    target = _unquoted(scan["target"])
    if scan["kind"] == "Bitmap Index Scan":
        return {"Index Name": target}
    found: dict[str, Any] = {"Alias": _unquoted(scan["alias"] or scan["target"])}
    if scan["index"] is not None:
        found["Index Name"] = _unquoted(scan["index"])
    if scan["schema"] is not None:
        found["Schema"] = _unquoted(scan["schema"])
    if scan["kind"] not in _ALIASES:
        found[_BEFORE_TARGET.get(scan["kind"], "Relation Name")] = target
    return found


def _relationship(parent: _Open) -> str:
    kind = parent.plan["Node Type"]
    if kind in _MEMBERS:
        return "Member"
    if kind == "Subquery Scan":
        return "Subquery"
    if kind == "Custom Scan":
        return "child"
    return "Inner" if parent.plain else "Outer"


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _split(value: str) -> tuple[str, ...]:
    """Split a list at its commas, but not inside of parentheses, brackets and quotes."""
    found, begun, depth, quote = [], 0, 0, ""
    for place, letter in enumerate(value):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(value[begun:place].strip())
            begun = place + 1
    return (*found, value[begun:].strip())
