"""Compare the plans of one statement on a database and on a copy of it, neither executed. Pure.

Two plans agree if they have the same nodes in the same order: how each table is read and through which
index, how tables are joined and in which order, how rows are grouped and sorted, and whether subqueries are
hashed. Numbers are not compared.

Some differences are small. They do not change which rows are read from which table or index:

- Materialize: it keeps rows that were read, and depends on work_mem.
- Index Scan instead of Bitmap Heap Scan on the same index, if both expect a similar number of rows. Near the
  point at which the planner prefers the other one, both cost about the same.
- The number of partitions of a table that are read in the same way, and their names.

All other differences count. A Memoize node replaces most executions of the nodes below it, and Index Only
Scan instead of Index Scan saves the table's pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from uncork.model.database.plan import PlanNode
from uncork.model.records import Record
from uncork.model.units import count_words, series_words
from uncork.profile.plans.difference import times_apart


class PlanAgreement(Record):
    """The plans of one statement on the source and on a copy.

    `template` is the statement's number in the run. With `same`, a measurement on the copy tells about the
    source. `difference` describes the first difference in a sentence; with `same`, it is empty or a small
    difference, such as another number of parallel workers. The plans are EXPLAIN's text, with the values of
    parameters, or empty if the server did not plan the statement.
    """

    template: int
    same: bool
    difference: str
    source_plan: str
    copy_plan: str


_KEPT: Final = "Materialize"
_GATHERED: Final = frozenset({"Gather", "Gather Merge"})
_APPENDED: Final = frozenset({"Append", "Merge Append"})
_ONE_INDEX: Final = frozenset({"Index Scan", "Bitmap Heap Scan"})
_SUBQUERIES: Final = frozenset({"InitPlan", "SubPlan"})
_SIMILAR: Final = 2.0
"""The largest ratio of the expected rows of an Index Scan and a Bitmap Heap Scan that do the same."""
_HASHED: Final = re.compile(r"\(hashed |hashed SubPlan")
_PARTITION: Final = re.compile(r"^(.+)_\d+$")
_OF_PARTITION: Final = re.compile(r"\b(\w+?)_\d+\.")
_NAMED: Final = 3
"""How many tables of a join are named."""


class Difference(Record):
    """A difference in a sentence. A small one does not void a comparison."""

    text: str
    small: bool


def first_difference(source: PlanNode, copy: PlanNode) -> Difference | None:
    """Return the first difference from the top down, a large one if there is any; None if the plans agree."""
    first = None
    for found in _differences(source, copy, appended=False):
        if not found.small:
            return found
        first = first or found
    return first


def is_parallel(plan: PlanNode) -> bool:
    """Return whether parallel workers take part in a plan."""
    return any(node.kind in _GATHERED for node in plan.walk())


def _differences(source: PlanNode, copy: PlanNode, *, appended: bool) -> Iterator[Difference]:
    if (source.kind == _KEPT) != (copy.kind == _KEPT):
        keeps = "source" if source.kind == _KEPT else "copy"
        yield Difference(f"only the plan of the {keeps} keeps rows in a Materialize node", True)
    source, copy = _unkept(source), _unkept(copy)
    if _own(source, appended) != _own(copy, appended):
        index = _index_alone(source)
        small = (
            {source.kind, copy.kind} == _ONE_INDEX
            and index is not None
            and index == _index_alone(copy)
            and (source.relation, source.alias) == (copy.relation, copy.alias)
            and times_apart(source.rows, copy.rows) <= _SIMILAR
        )
        found = f"the plan of the source has {_expected(source)}"
        yield Difference(f"{found} where the plan of the copy has {_expected(copy)}", small)
        return
    yield from _condition_differences(source, copy)
    inputs = _inputs(source), _inputs(copy)
    if len(inputs[0]) != len(inputs[1]):
        many, fewer = (series_words(_name(node) for node in each) or "nothing" for each in inputs)
        yield Difference(
            f"below {_name(source)}, the plan of the source has {many}, the plan of the copy {fewer}", False
        )
        return
    if len(source.children) != len(copy.children):
        yield Difference(
            f"the plan of the source reads {len(source.children)} partitions in {source.kind}, "
            f"the plan of the copy {len(copy.children)}",
            True,
        )
    appended = appended or source.kind in _APPENDED
    for node, other in zip(*inputs, strict=True):
        yield from _differences(node, other, appended=appended)


def _condition_differences(source: PlanNode, copy: PlanNode) -> Iterator[Difference]:
    """Yield differences that the kind of a node does not show: an index read whole, a subquery not hashed."""
    bounded = bool(source.condition("Index Cond"))
    if bounded != bool(copy.condition("Index Cond")):
        least, most = ("source", "copy") if bounded else ("copy", "source")
        yield Difference(
            f"the plan of the {least} reads a part of the index {source.index}, "
            f"the plan of the {most} all of it",
            False,
        )
    hashed = _hashed(source), _hashed(copy)
    if hashed[0] != hashed[1]:
        most, least = ("source", "copy") if hashed[0] > hashed[1] else ("copy", "source")
        yield Difference(
            f"the plan of the {most} keeps a subquery of {_name(source)} in a hash table, the plan of the "
            f"{least} does not",
            False,
        )


def _own(node: PlanNode, appended: bool) -> tuple[Any, ...]:
    """Return what makes a node another one, without its inputs. Below Append, a partition has no name."""
    relation, alias, index = node.relation, node.alias, node.index
    if appended:
        base = _PARTITION.match(alias)
        if base is not None and alias != relation.rpartition(".")[2]:
            relation = alias = base[1]
        condition = node.condition("Index Cond")
        if index and (relation != node.relation or not relation) and _OF_PARTITION.search(condition):
            index = _OF_PARTITION.sub(r"\1.", condition)
    role = node.role if node.role in _SUBQUERIES else ""
    return (node.kind, relation, alias, index, node.strategy, node.join, node.parallel, role)


def _inputs(node: PlanNode) -> list[PlanNode]:
    """Return the inputs of a node, but only one of several partitions that are read in the same way."""
    if node.kind not in _APPENDED:
        return list(node.children)
    found: dict[tuple[Any, ...], PlanNode] = {}
    for child in node.children:
        found.setdefault(_partition_shape(_unkept(child)), child)
    return list(found.values())


def _partition_shape(node: PlanNode) -> tuple[Any, ...]:
    return (*_own(node, appended=True), *(_partition_shape(_unkept(child)) for child in node.children))


def _unkept(node: PlanNode) -> PlanNode:
    return node.children[0] if node.kind == _KEPT and len(node.children) == 1 else node


def _index_alone(node: PlanNode) -> str | None:
    """Return the index of a scan that uses one; None for a bitmap of several."""
    if node.kind == "Index Scan":
        return node.index
    (first, *others) = node.children or (node,)
    return first.index if first.kind == "Bitmap Index Scan" and not others else None


def _hashed(node: PlanNode) -> int:
    texts = (*(text for _, text in node.conditions), *node.output)
    return sum(len(_HASHED.findall(text)) for text in texts)


def _expected(node: PlanNode) -> str:
    return f"{_name(node)} (about {count_words(round(node.rows), 'row')})"


def _name(node: PlanNode) -> str:
    """Return a node as EXPLAIN names it; a join with its tables."""
    name = f"{'Parallel ' if node.parallel else ''}{node.kind}"
    details = [text for text in (node.strategy, node.join) if text and text not in ("Inner", "Plain")]
    if details:
        name += f" ({', '.join(details)})"
    if node.index:
        name += f" using {node.index}"
    if node.relation:
        return f"{name} on {node.relation}"
    tables = list(dict.fromkeys(plan_node.relation for plan_node in node.walk() if plan_node.relation))
    if not node.join or not tables:
        return name
    others = len(tables) - _NAMED
    named = tables if others <= 0 else [*tables[:_NAMED], f"{others} more"]
    return f"{name} of {series_words(named)}"
