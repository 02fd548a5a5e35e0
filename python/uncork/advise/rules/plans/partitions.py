"""What is known of partitioned tables: their key columns and their partitions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode

_KEY: Final = re.compile(r"^(?P<strategy>RANGE|LIST|HASH)\s*\((?P<columns>.*)\)$", re.IGNORECASE | re.DOTALL)
_COLUMN: Final = re.compile(r'^\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>[\w$]+))(?:\s+[\w$.]+)*\s*$')


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A partitioned table. `columns` are those of its key; an expression of the key is left out.

    `parts` counts the known partitions, of all levels.
    """

    table: str
    strategy: str
    columns: tuple[str, ...]
    parts: int


def partitioned(evidence: Evidence) -> Iterator[Partitioned]:
    """Yield the partitioned tables that are no partitions themselves."""
    parents: dict[str, str] = {
        name: options.parent for name, options in evidence.catalogue.options.items() if options.parent
    }
    for name, options in evidence.catalogue.options.items():
        key = _KEY.match(options.partition_key)
        if key is None or options.parent:
            continue
        columns = []
        for part in key["columns"].split(","):
            found = _COLUMN.match(part)
            if found is not None:
                columns.append((found["quoted"] or "").replace('""', '"') or found["plain"])
        known = sum(_root(parent, parents) == name for parent in parents if parent not in parents.values())
        yield Partitioned(name, key["strategy"].upper(), tuple(columns), known)


def _root(name: str, parents: dict[str, str]) -> str:
    while name in parents:
        name = parents[name]
    return name


def scanned_parts(statement: Statement, table: str, evidence: Evidence) -> tuple[PlanNode, ...]:
    """Return the scans of a table's partitions in the best plan of a statement."""
    if statement.plan is None:
        return ()
    parents = {name: option.parent for name, option in evidence.catalogue.options.items() if option.parent}
    return tuple(
        node
        for node in statement.plan.root.walk()
        if node.relation and node.relation != table and _root(node.relation, parents) == table
    )
