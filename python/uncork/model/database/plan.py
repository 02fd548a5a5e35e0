"""A plan as a tree, read from EXPLAIN's JSON or text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from uncork.model.records import Record

_FIRST_WORD: Final = re.compile(r"(?:[\s(]|--[^\n]*\n|/\*.*?\*/)*(\w+)", re.DOTALL)
_PLANNED: Final = frozenset({"select", "insert", "update", "delete", "merge", "with", "values", "table"})

PlanSource = Literal["generic", "drawn", "seen", "executed"]
"""Where the parameters of a plan come from: none (a generic plan), drawn from the columns' statistics, the
text of a session that was seen, or an executed statement (auto_explain)."""


class ColumnValues(Record):
    """Values of a column, from ANALYZE: the most common ones first, and the bounds of the histogram.

    `frequencies` are the fractions of rows that have the common values, in their order.
    """

    common: tuple[str, ...]
    bounds: tuple[str, ...]
    frequencies: tuple[float, ...] = ()


class PlanNode(Record):
    """A node of a plan, with the names of EXPLAIN (FORMAT JSON); costs include the nodes below.

    `relation` has the schema unless it is `public`. `conditions` maps the names that EXPLAIN prints
    ("Filter", "Index Cond", "Hash Cond", "Join Filter", "Merge Cond", "One-Time Filter") to their text, and
    `keys` does the same for lists ("Sort Key", "Group Key", "Presorted Key"). `role` is EXPLAIN's "Parent
    Relationship", such as Outer, Inner, SubPlan or InitPlan, and `subplan` the name, such as "SubPlan 1" or
    "CTE totals". `strategy` is how an aggregate works (Plain, Sorted, Hashed, Mixed), how ModifyTable changes
    rows (Insert, Update, Delete, Merge), or the provider of a custom scan.
    `actual_rows` (of all loops), `loops`, `removed` (rows removed by filters, of all loops), `milliseconds`
    (of all loops, with the nodes below), `disk_kib` (temporary space) and `blocks` (shared buffers hit and
    read, with the nodes below) are None unless the plan was executed, the last also without BUFFERS.
    `workers` counts planned parallel processes; `removed_parts` is "Subplans Removed".
    """

    kind: str
    relation: str
    alias: str
    index: str
    startup_cost: float
    cost: float
    rows: float
    width: int
    conditions: tuple[tuple[str, str], ...] = ()
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    role: str = ""
    subplan: str = ""
    common: str = ""
    function: str = ""
    strategy: str = ""
    join: str = ""
    output: tuple[str, ...] = ()
    parallel: bool = False
    workers: int = 0
    removed_parts: int = 0
    actual_rows: float | None = None
    loops: float | None = None
    removed: float | None = None
    milliseconds: float | None = None
    disk_kib: float | None = None
    blocks: float | None = None
    children: tuple[PlanNode, ...] = ()

    def walk(self) -> Iterator[PlanNode]:
        """Yield this node, and all below it, from the top down."""
        yield self
        for child in self.children:
            yield from child.walk()

    def runs_once(self, child: PlanNode) -> bool:
        """Return whether this node executes a child once, for all its rows: an InitPlan, a hashed SubPlan."""
        if child.role != "SubPlan":
            return child.role == "InitPlan"
        texts = (*(text for _, text in self.conditions), *self.output)
        return any(f"hashed {child.subplan})" in text for text in texts)

    def condition(self, name: str) -> str:
        """Return a condition's text by the name that EXPLAIN prints; an empty string if there is none."""
        return next((text for key, text in self.conditions if key == name), "")

    def key(self, name: str) -> tuple[str, ...]:
        """Return a list of keys by the name that EXPLAIN prints."""
        return next((values for key, values in self.keys if key == name), ())


class StatementPlan(Record):
    """A plan of a template. `text` is EXPLAIN's text, to show; `jit` is true if it would be compiled.

    For executed plans, `triggers` are the times of triggers in milliseconds by name, and `jit_ms` is the time
    of compiling.
    """

    template: int
    source: PlanSource
    root: PlanNode
    text: str
    jit: bool = False
    triggers: tuple[tuple[str, float], ...] = ()
    jit_ms: float | None = None


def has_plan(statement: str) -> bool:
    """Return whether a statement is of a kind that the server plans, unlike BEGIN or COPY."""
    word = _FIRST_WORD.match(statement)
    return word is not None and word[1].lower() in _PLANNED


# ---- what the planner would do with candidate indexes, asked on a copy without rows ----


class WhatIfPlan(Record):
    """The plan of a statement with a candidate: costs in the planner's units, and EXPLAIN's text.

    `before` is the cost without any candidate. `used` are the candidate's indexes in the plan.
    """

    template: int
    before: float
    after: float
    used: tuple[str, ...]
    plan: str


class CandidateUse(Record):
    """A candidate, and the statements that can be planned with it.

    `pages` is the estimated size of its indexes. `reason` says why it was not planned, if it was not.
    """

    sql: str
    pages: int
    plans: tuple[WhatIfPlan, ...]
    reason: str = ""

    @property
    def used(self) -> bool:
        """Whether any plan uses the candidate."""
        return any(plan.used for plan in self.plans)


class WhatIf(Record):
    """What the planner chose, by candidate.

    Without `candidates`, `reason` says why nothing was planned. `unplanned` maps statements that the copy
    does not plan to the server's reason. `missing` describes what the copy lacks, for the report.
    """

    candidates: tuple[CandidateUse, ...]
    reason: str = ""
    unplanned: tuple[tuple[int, str], ...] = ()
    missing: tuple[str, ...] = ()
