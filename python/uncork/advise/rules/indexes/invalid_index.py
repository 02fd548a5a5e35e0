"""An invalid index, which writes maintain and no statement uses. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.indexes.problems import Problem, problems
from uncork.advise.rules.indexes.upkeep import LEAST_BYTES
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import count_words, format_bytes

if TYPE_CHECKING:
    from uncork.model.results.database import IndexFacts

_BUILDS: Final = ("create index", "create unique index", "reindex")


def _find(evidence: Evidence) -> Iterator[Finding]:
    if any(
        statement.text.startswith(_BUILDS) and evidence.all_of(statement.number)
        for statement in evidence.statements.values()
    ):
        return  # an index is invalid while it is built concurrently
    wanted: dict[str, list[Problem]] = {}
    for problem in problems(evidence):
        if problem.obstacle is not None and problem.obstacle.kind == "invalid":
            wanted.setdefault(problem.obstacle.index, []).append(problem)
    for name, indexes in evidence.indexes.items():
        for index in indexes:
            if index.facts.warning == "invalid" and name in evidence.tables:
                yield from _finding(index.facts, wanted.get(index.facts.name, []), evidence)


def _finding(index: IndexFacts, mine: list[Problem], evidence: Evidence) -> Iterator[Finding]:
    fractions = {problem.statement.number: problem.fraction for problem in mine}
    bill = evidence.bill_of(fractions)
    costly, size = worth(bill), index.bytes or 0
    if not costly and size < LEAST_BYTES:
        return
    yield Finding(
        "invalid-index",
        f"Index {index.name.rpartition('.')[2]} of {index.table} is invalid, so no statement uses it",
        objects=(index.name, index.table),
        bill=bill if costly else None,
        templates=tuple(fractions) if costly else (),
        statement=mine[0].statement.text if costly else "",
        cost=f"{format_bytes(size)} of disk",
        evidence=(
            "CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY failed and left it. Writes still maintain it.",
            *((f"It would serve {count_words(len(fractions), 'statement')}.",) if fractions else ()),
        ),
        candidates=(
            Candidate(
                "index",
                "Build the index again.",
                sql=f"REINDEX INDEX CONCURRENTLY {sql_name(index.name)};",
                on_copy=f"{index.definition};" if costly else "",
                against=("If a unique index failed because of duplicate rows, remove these first.",),
            ),
            Candidate(
                "index",
                "Or drop it, if another index serves instead.",
                sql=f"DROP INDEX CONCURRENTLY {sql_name(index.name)};",
                undo=f"{index.definition.replace(' INDEX ', ' INDEX CONCURRENTLY ', 1)};",
                unprovable="A copy has no invalid indexes, so dropping one changes nothing there.",
            ),
        ),
        proof="Run EXPLAIN on the statement after the change: the plan has the index.",
    )


RULE: Final = Rule("invalid-index", _find)
