"""Tables that were not frozen for so long that the server may soon refuse to write. Pure.

See "Preventing Transaction ID Wraparound Failures" in PostgreSQL's manual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_count

_AGE: Final = 1_000_000_000
"""Transactions since a table's last freeze: five times the age at which autovacuum freezes it
(autovacuum_freeze_max_age), so autovacuum has failed for long."""
_LIMIT: Final = 2_144_483_648
"""The age at which the server refuses transactions that write: three million before the wraparound."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    old = [table for table in evidence.tables.values() if (table.frozen_age or 0) >= _AGE]
    for table in sorted(old, key=lambda one: -(one.frozen_age or 0))[:1]:
        age = table.frozen_age or 0
        others = "" if len(old) == 1 else f" {len(old) - 1} other tables were not frozen for long either."
        yield Finding(
            RULE.name,
            f"Table {table.name} was last frozen {format_count(age)} transactions ago",
            objects=tuple(one.name for one in sorted(old, key=lambda one: -(one.frozen_age or 0))),
            bill=None,
            cost=f"all writing, after {format_count(max(0, _LIMIT - age))} more transactions",
            evidence=(
                f"Autovacuum has not frozen it for long.{others} At {format_count(_LIMIT)} transactions the "
                "server refuses to write.",
            ),
            candidates=(
                Candidate(
                    "maintenance",
                    f"Freeze table {table.name} now. If VACUUM cannot, end what holds it back: old "
                    "transactions, prepared ones, and unused replication slots.",
                    sql=f"VACUUM (FREEZE, VERBOSE) {sql_name(table.name)};",
                    against=(
                        "It reads all pages of the table that are not frozen, and writes most of them.",
                    ),
                ),
            ),
            proof="age(relfrozenxid) in pg_class must fall.",
        )


RULE: Final = Rule("not-frozen", _find)
