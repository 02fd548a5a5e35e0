"""Random keys (UUIDs of version 4), whose inserts touch pages all over an index. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Piece, Statement
from uncork.advise.rule import Rule, worth
from uncork.advise.wal_waits import waits_for_wal
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import format_count, share_text

__all__ = ["RULE"]

_VERSION_4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_MAKERS: Final = ("gen_random_uuid()", "uuid_generate_v4()", "uuidv4()")
_VALUES: Final = 8
_PAGES: Final = 0.2
"""Full-page images for each inserted row. Keys in order fill one page after the other: hundreds of rows share
one."""
_UUIDV7: Final = 18
"""The first version of PostgreSQL with uuidv7()."""


def _find(seen: Evidence) -> Iterator[Finding]:
    for one in seen.costliest():
        shape = one.shape
        if shape is None or shape.kind != "insert" or not one.rows:
            continue
        table = next((use.name for use in shape.tables if use.changed), "")
        columns = seen.catalogue.columns.get(table, ())
        column = next((each for each in columns if _random(each, seen)), None)
        pages, share = _full_pages(one, seen)
        if column is None or pages < _PAGES * one.rows:
            continue
        number, part = one.number, share

        def costs(piece: Piece, number: int = number, part: float = part) -> float:
            if piece.template != number or piece.wait_event.lower() == "walsync":
                return 0.0  # each commit needs a flush
            return part if waits_for_wal(piece) else float(piece.wait_event == "DataFileRead")

        bill = seen.bill(costs)
        if worth(bill):
            yield Finding(
                RULE.name,
                f"Random keys in {table}.{column.name} make inserts write whole pages to the WAL",
                objects=(table, f"{table}.{column.name}"),
                bill=bill,
                templates=(number,),
                statement=one.text,
                evidence=(
                    f"{format_count(pages)} full-page images for {format_count(one.rows)} inserted rows are "
                    f"{share_text(share)} of its WAL: each row goes to another page of the index.",
                ),
                candidates=(_candidate(table, column, seen),),
                proof="Compare inserts with both keys on a copy with uncork run, across several checkpoints.",
            )


def _random(column: ColumnFacts, seen: Evidence) -> bool:
    """Return whether an index begins with a column of random UUIDs."""
    if column.type != "uuid":
        return False
    indexed = any(
        each.shape is not None and each.shape.method == "btree" and each.shape.columns[:1] == (column.name,)
        for each in seen.indexes.get(column.table, ())
    )
    values = [*(value for value, _ in column.common), *column.bounds]
    drawn = len(values) >= _VALUES and all(_VERSION_4.fullmatch(value) for value in values)
    return indexed and (drawn or any(maker in column.default for maker in _MAKERS))


def _full_pages(one: Statement, seen: Evidence) -> tuple[int, float]:
    """Return the full-page images that a statement wrote, and their part of its WAL."""
    templates = () if seen.database is None else seen.database.templates
    facts = next((each.statements for each in templates if each.number == one.number), None)
    if facts is None or not one.wal_bytes or seen.database is None:
        return 0, 0.0
    return facts.wal_fpi, min(1.0, facts.wal_fpi * seen.database.block_bytes / one.wal_bytes)


def _candidate(table: str, column: ColumnFacts, seen: Evidence) -> Candidate:
    version = None if seen.database is None else re.search(r"\d+", seen.database.server_version)
    text = "Use UUIDs of version 7, which begin with the time, so that new rows are next to each other."
    against = ("Keys then show when a row was created.", "Existing keys stay where they are.")
    name = f"ALTER TABLE {sql_name(table)} ALTER COLUMN {quoted(column.name)}"
    if not column.default or version is None or int(version[0]) < _UUIDV7:
        return Candidate("client", text, against=against)
    undo = f"{name} SET DEFAULT {column.default};"
    return Candidate("ddl", text, f"{name} SET DEFAULT uuidv7();", undo, against=against)


RULE: Final = Rule("random-keys", _find)
