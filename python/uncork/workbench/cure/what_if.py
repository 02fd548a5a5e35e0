"""Ask the planner which candidate indexes it would use, on a copy that has sizes and no rows.

This drops candidates that no plan uses. It proves nothing: a plan that costs less can take longer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from uncork.engines.copying.database import copy_source
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.sparse.copy import RESTORES, SETTINGS, SparseCopy, read_source_sizes
from uncork.engines.watch.planner import Planner
from uncork.model.database.plan import CandidateUse, PlanNode, WhatIf, WhatIfPlan
from uncork.model.database.workload import CapturedStatement
from uncork.profile.plans.tree import plan_tree
from uncork.workbench.cure.gate import with_first_values

_DATABASE: Final = "what_if"
_DISK: Final = 1 << 30
"""A limit for the rows that are copied: none are."""
_NOT_PLANNED: Final = ("rows of ", "setting ", "roles ", "dead rows ")
"""What a copy lacks and plans do not depend on, or what is restored with the sizes."""
_CONCURRENTLY: Final = re.compile(r"^(\s*CREATE\s+(?:UNIQUE\s+)?INDEX\s+)CONCURRENTLY\b", re.IGNORECASE)


def what_if(
    source: str,
    candidates: Sequence[str],
    statements: Sequence[CapturedStatement],
    *,
    binaries: Path | None = None,
) -> WhatIf:
    """Plan statements with each candidate (a CREATE INDEX statement) alone, and without any.

    `source` is a connection string; the source is only read. A statement is planned with its
    first set of values.

    Not the same as on the source are: the smallest and the largest value of a column, which the
    planner may look up in an index instead of the histogram; the values of CREATE STATISTICS; and
    the statistics of an expression in a candidate, which exist after the first ANALYZE.

    Raises:
        ConnectError: if the source cannot be reached or read.
        SetupError: if the copy cannot be made.
    """
    version, sizes = read_source_sizes(source)
    if sizes is None:
        return WhatIf(
            (), f"the source runs PostgreSQL {version}, and statistics can be copied from {RESTORES} only"
        )
    server = EmbeddedServer(dict(SETTINGS), binaries=binaries)
    server.start()
    try:
        target = server.conninfo(_DATABASE)
        facts = copy_source(source, target, tables=(), disk=_DISK, told=lambda _: None)
        server.restart()  # it may have read pages of indexes, which are now written beside it
        texts = [_CONCURRENTLY.sub(r"\1", candidate) for candidate in candidates]
        with closing(SparseCopy(target, sizes, texts)) as copy:
            found = _planned(copy, candidates, statements)
        lost = [
            f"{copied.what}: {copied.why}"
            for copied in facts.missing
            if not copied.what.startswith(_NOT_PLANNED)
        ]
        return replace(found, missing=(*lost, *found.missing))
    finally:
        server.stop()


def _planned(copy: SparseCopy, candidates: Sequence[str], statements: Sequence[CapturedStatement]) -> WhatIf:
    unplanned: dict[int, str] = {}
    before: dict[int, tuple[str, PlanNode]] = {}
    found = []
    with copy.planning() as planner:
        for statement in statements:
            text = with_first_values(planner, statement)
            with planner.using(statement.settings):
                explained = planner.explain(text, as_json=True)
            tree = None if explained is None or explained.output is None else plan_tree(explained.output)
            if tree is None:
                unplanned[statement.template] = (
                    explained.reason if explained else "it is a command without a plan"
                )
            else:
                before[statement.template] = text, tree
        for place, candidate in enumerate(candidates):
            names = copy.indexes.get(place, {})
            copy.show(names)
            plans = [
                _with(planner, template, text, tree.cost, names) for template, (text, tree) in before.items()
            ]
            found.append(
                CandidateUse(
                    candidate,
                    sum(names.values()),
                    tuple(plan for plan in plans if plan is not None) if names else (),
                    copy.reasons.get(place, ""),
                )
            )
    return WhatIf(tuple(found), "", tuple(unplanned.items()), tuple(copy.missing))


def _with(
    planner: Planner, template: int, text: str, before: float, names: dict[str, int]
) -> WhatIfPlan | None:
    explained, shown = (planner.explain(text, as_json=as_json) for as_json in (True, False))
    tree = None if explained is None or explained.output is None else plan_tree(explained.output)
    if tree is None or shown is None:
        return None
    used = sorted({node.index for node in tree.walk()} & set(names))
    return WhatIfPlan(template, before, tree.cost, tuple(used), shown.output or "")
