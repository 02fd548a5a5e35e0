"""Empty space in a table that scans read, or that takes much of the disk. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.indexes.whole_reads import reads_whole
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_bytes, share_text

_PART: Final = 0.5
_BYTES: Final = 64 << 20
"""Empty space, as a fraction of the table and in bytes. An updated table needs room for new row versions, a
fifth with autovacuum's defaults. Rewriting a table needs a lock, which a few megabytes are not worth."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    for table in evidence.tables.values():
        if not table.bloat_bytes or not table.bytes:
            continue
        part = min(1.0, table.bloat_bytes / table.bytes)
        readers = [statement for statement in evidence.costliest() if reads_whole(statement, table, evidence)]
        bill = evidence.bill_of({reader.number: part for reader in readers})
        costs_time = worth(bill)
        if not costs_time and (part < _PART or table.bloat_bytes < _BYTES):
            continue
        room = f"{format_bytes(table.bloat_bytes)} of {format_bytes(table.bytes)}"
        read = ", and statements read all of it" if costs_time else ""
        yield Finding(
            RULE.name,
            f"Table {table.name} is {share_text(part)} empty{read}",
            objects=(table.name,),
            bill=bill if costs_time else None,
            templates=tuple(reader.number for reader in readers) if costs_time else (),
            statement=readers[0].text if costs_time else "",
            cost=f"{format_bytes(table.bloat_bytes)} of disk",
            evidence=(f"{room} is space of rows that are gone.",),
            candidates=(
                Candidate(
                    "maintenance",
                    f"Rewrite table {table.name} with pg_repack, or with VACUUM FULL while nobody needs it.",
                    sql=f"VACUUM (FULL, ANALYZE) {sql_name(table.name)};",
                    against=(
                        "VACUUM FULL locks the table against reading and writing until it ends.",
                        "The space comes back unless the cause is removed: find out what kept autovacuum "
                        "from freeing it.",
                    ),
                ),
            ),
            proof="Compare the statements on a copy before and after VACUUM FULL.",
        )


RULE: Final = Rule("bloat", _find)
