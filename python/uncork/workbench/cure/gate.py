"""Decide whether a copy stands for its source: both must plan the statements of a finding in the same way.

Both servers only plan the statements (EXPLAIN), with the first few sets of captured values. The
source does so in the read-only session of a watch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Final

from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.planner import Explained, Planner
from uncork.model.database.plan import PlanNode
from uncork.model.database.workload import CapturedStatement
from uncork.model.units import count_words
from uncork.profile.parameter_values import with_values
from uncork.profile.plans.agreement import PlanAgreement, first_difference, is_parallel
from uncork.profile.plans.tree import plan_tree

_SETS: Final = 3
"""Sets of values with which a statement is planned. Common and rare values can lead to different plans."""
_LONGEST_NS: Final = 10_000_000_000
"""Time after which no further statement is planned. One statement of a few tables takes a millisecond."""
_NO_PLAN: Final = "it is a command without a plan"


def plans_agree(source: str, copy: str, statements: Sequence[CapturedStatement]) -> tuple[PlanAgreement, ...]:
    """Compare how the source and the copy plan statements, in the order of `statements`.

    `source` and `copy` are connection strings. Both plan a statement with the settings of its role. If the
    plans of a statement differ and one of them is parallel, the plans without parallel workers
    decide: workers depend on the processors and the settings of a server.

    Raises:
        ConnectError: if a server cannot be reached.
        ServerCrash: if a server went away.
        UsageError: if a server is older than PostgreSQL 13.
    """
    begun = time.monotonic_ns()
    found = []
    with (
        closing(ServerWatch(source)) as watched,
        closing(ServerWatch(copy)) as copied,
        watched.planning() as of_source,
        copied.planning() as of_copy,
    ):
        for statement in statements:
            if time.monotonic_ns() - begun > _LONGEST_NS:
                reason = f"not compared: planning took longer than {_LONGEST_NS // 10**9} s"
                found.append(PlanAgreement(statement.template, False, reason, "", ""))
                continue
            with of_source.using(statement.settings), of_copy.using(statement.settings):
                found.append(_agreement(of_source, of_copy, statement))
    return tuple(found)


def with_first_values(planner: Planner, statement: CapturedStatement) -> str:
    """Return a statement with its first set of values as literals."""
    return _texts(planner, statement)[0]


@dataclass(frozen=True, slots=True)
class _Compared:
    text: str
    same: bool
    difference: str = ""
    serial: bool = False


def _agreement(source: Planner, copy: Planner, statement: CapturedStatement) -> PlanAgreement:
    """Compare the plans for each set of values, up to the first one with a large difference, and report it.

    Without a large difference, report the first small one.
    """
    texts = _texts(source, statement)
    compared = []
    for place, text in enumerate(texts):
        one = _compare(source, copy, text)
        if not one.same and place:
            one = replace(one, difference=f"{one.difference}, with set {place + 1} of {len(texts)} of values")
        compared.append(one)
        if not one.same:
            break
    shown = max(compared, key=lambda one: (not one.same, bool(one.difference)))
    plans = [_shown(planner, shown) for planner in (source, copy)]
    return PlanAgreement(statement.template, shown.same, shown.difference, *plans)


def _texts(planner: Planner, statement: CapturedStatement) -> list[str]:
    """Return the statement with its first distinct sets of values; without values, its own text."""
    sets = list(dict.fromkeys(values for values in statement.sets if values))[:_SETS]
    try:
        found = [
            with_values(statement.sql, dict(enumerate(values, start=1)), planner.literal) for values in sets
        ]
    except ValueError:  # the grammar of another version of PostgreSQL
        found = []
    return found or [statement.sql]


def _compare(source: Planner, copy: Planner, text: str, *, serial: bool = False) -> _Compared:
    trees: list[PlanNode] = []
    for side, planner in (("source", source), ("copy", copy)):
        explained = _explained(planner, text, as_json=True, serial=serial)
        tree = None if explained.output is None else plan_tree(explained.output)
        if tree is None:
            return _Compared(
                text, False, f"the {side} does not plan the statement: {explained.reason}", serial
            )
        trees.append(tree)
    difference = first_difference(*trees)
    if difference is None or difference.small:
        return _Compared(text, True, "" if difference is None else difference.text, serial)
    if serial or not any(map(is_parallel, trees)):
        return _Compared(text, False, difference.text, serial)
    again = _compare(source, copy, text, serial=True)
    if not again.same:
        return again
    workers = [max(node.workers for node in tree.walk()) for tree in trees]
    if workers[0] == workers[1]:
        return _Compared(text, True, "without parallel workers, both plans are the same")
    many, fewer = (
        count_words(worker, "parallel worker") if worker else "no parallel workers" for worker in workers
    )
    return _Compared(text, True, f"the plan of the source uses {many}, the plan of the copy {fewer}")


def _shown(planner: Planner, compared: _Compared) -> str:
    return _explained(planner, compared.text, as_json=False, serial=compared.serial).output or ""


def _explained(planner: Planner, text: str, *, as_json: bool, serial: bool) -> Explained:
    with planner.without_workers() if serial else nullcontext():
        return planner.explain(text, as_json=as_json) or Explained(None, _NO_PLAN)
