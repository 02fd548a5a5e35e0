"""Complete a sample, so that every row that its rows reference by a foreign key is there.

The copy knows which keys are missing; the source returns their rows through the unique index that
each foreign key has. These rows can reference further rows, so this repeats until nothing is
missing. References that form cycles are followed for `_ROUNDS` rounds, and while the budget lasts.
What such a row references and still is not there is then set to NULL; if the column is NOT NULL,
the row is deleted, and the rows that reference it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from uncork.engines.copying.objects import ForeignKey, Table, identifier
from uncork.engines.copying.rows import Pace, transfer
from uncork.model.database.copy import NotCopied

_ROUNDS: Final = 12
_DELETIONS: Final = 200
_BATCH: Final = 5000
"""How many keys one query asks for. The text of a batch of bigints has 100 kB."""


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key as SQL: quoted tables and columns, and the types of the referenced columns.

    `read` are the columns to copy of the referenced table. `own` is true if a table references
    itself. `cut` are the columns that can be NULL, if that is enough for the constraint. `loose` is
    true if it is part of a cycle of references. `shown` names the child.
    """

    child: str
    parent: str
    columns: tuple[str, ...]
    referenced: tuple[str, ...]
    types: tuple[str, ...]
    read: tuple[str, ...]
    own: bool
    cut: tuple[str, ...]
    loose: bool
    shown: str

    @property
    def lacking(self) -> str:
        """The condition for a row `c` of the child that references a row which is not there."""
        given = " AND ".join(f"c.{column} IS NOT NULL" for column in self.columns)
        return f"{given} AND NOT EXISTS (SELECT FROM {self.parent} p WHERE {self.joined('p', 'c')})"

    def joined(self, parent: str, child: str) -> str:
        """The condition for a row of the child that references a row of the parent."""
        pairs = zip(self.columns, self.referenced, strict=True)
        return " AND ".join(f"{parent}.{there} = {child}.{here}" for here, there in pairs)


def links(
    keys: Sequence[ForeignKey],
    tables: Mapping[int, Table],
    read: Mapping[int, tuple[str, ...]],
    whole: set[int],
    not_null: Collection[tuple[int, str]],
    loose: Collection[tuple[int, int]],
) -> tuple[Link, ...]:
    """Return the foreign keys that a sample can break: those to tables of which not all rows are copied.

    `read` has the columns to copy of each table that is copied. A partitioned table is one table.
    `not_null` are the columns that cannot be NULL, each with its table, and `loose` the pairs of
    tables whose references are part of a cycle.
    """
    return tuple(
        Link(
            child=tables[key.table].quoted,
            parent=tables[key.references].quoted,
            columns=tuple(map(identifier, key.columns)),
            referenced=tuple(map(identifier, key.referenced)),
            types=tuple(key.types),
            read=read[key.references],
            own=key.table == key.references,
            cut=_nullable(key, not_null),
            loose=(key.table, key.references) in loose,
            shown=tables[key.table].shown,
        )
        for key in keys
        if key.valid and key.plain and not key.derived
        if key.table in read and key.references in read and key.references not in whole
    )


def _nullable(key: ForeignKey, not_null: Collection[tuple[int, str]]) -> tuple[str, ...]:
    found = [column for column in key.columns if (key.table, column) not in not_null]
    if "MATCH FULL" in key.definition and len(found) < len(key.columns):
        return ()
    return tuple(map(identifier, found))


def close_sample(
    found: Sequence[Link],
    source: psycopg.Connection[Any],
    target: psycopg.Connection[Any],
    keys: psycopg.Connection[Any],
    pace: Pace,
    budget: int,
) -> tuple[int, tuple[NotCopied, ...]]:
    """Fetch the rows that are missing, then cut what still is not there. Return the bytes read, and the cuts.

    `keys` is a second connection to the copy. `budget` is how many bytes to fetch along cycles.
    When this returns, all foreign keys hold, unless deletions did not end within `_DELETIONS`
    rounds. Raises SourceFailed if the source fails; psycopg.Error if the copy fails.
    """
    size = 0
    for number in range(_ROUNDS + len(found) + 1):
        fetched = 0
        for link in found:
            left = budget - size if link.loose else None
            if link.loose and (number >= _ROUNDS or budget <= size):
                continue
            rows, bytes_ = _fetch(link, source, target, keys, pace, left)
            fetched, size = fetched + rows, size + bytes_
        if not fetched:
            break
    cut = dict.fromkeys(found, 0)
    for _ in range(_DELETIONS):
        changed = 0
        for link in found:
            rows = _null(link, target) if link.cut else _delete(link, target)
            cut[link] += rows
            changed += rows
        if not changed:
            break
    return size, tuple(_cut(link, rows) for link, rows in cut.items() if rows)


def _cut(link: Link, rows: int) -> NotCopied:
    what = f"{rows} references {', '.join(link.columns)} of table {link.shown}"
    why = "they are part of a cycle of references, and their rows do not fit in the sample"
    return NotCopied(what, why, "they are NULL on the copy" if link.cut else "these rows are not on the copy")


def _null(link: Link, target: psycopg.Connection[Any]) -> int:
    """Set the references of a link to NULL that lead nowhere; return how many."""
    cut = ", ".join(f"{column} = NULL" for column in link.cut)
    return target.execute(f"UPDATE {link.child} c SET {cut} WHERE {link.lacking}".encode()).rowcount


def _fetch(
    link: Link,
    source: psycopg.Connection[Any],
    target: psycopg.Connection[Any],
    keys: psycopg.Connection[Any],
    pace: Pace,
    budget: int | None,
) -> tuple[int, int]:
    rows = size = 0
    for batch in _missing(link, keys):
        if budget is not None and size >= budget:
            break
        arrays = ", ".join(f"{text}::{type_}[]" for text, type_ in zip(batch, link.types, strict=True))
        wanted = ", ".join(f"k{number}" for number in range(len(batch)))
        same = " AND ".join(f"p.{there} = k.k{number}" for number, there in enumerate(link.referenced))
        chosen = ", ".join(f"p.{column}" for column in link.read)
        query = f"SELECT {chosen} FROM {link.parent} p JOIN unnest({arrays}) AS k ({wanted}) ON {same}"
        columns = ", ".join(link.read)
        read = f"COPY ({query}) TO STDOUT"
        done = transfer(source, target, read, f"COPY {link.parent} ({columns}) FROM STDIN", pace)
        rows, size = rows + done.rows, size + done.bytes
    return rows, size


def _missing(link: Link, keys: psycopg.Connection[Any]) -> Iterator[Sequence[str]]:
    """Yield the missing keys in batches: for each column of the key a literal of an array."""
    columns = ", ".join(f"c.{column} AS k{number}" for number, column in enumerate(link.columns))
    order = ", ".join(f"k{number}" for number in range(len(link.columns)))
    arrays = ", ".join(f"quote_literal(array_agg(k{number})::text)" for number in range(len(link.columns)))
    missing = f"SELECT DISTINCT {columns} FROM {link.child} c WHERE {link.lacking}"
    query = (
        f"SELECT {arrays} FROM (SELECT *, row_number() OVER (ORDER BY {order}) / {_BATCH} AS batch "
        f"FROM ({missing}) AS m) AS b GROUP BY batch ORDER BY batch"
    )
    with keys.transaction(), keys.cursor("uncork_missing") as cursor:
        cursor.itersize = 4
        yield from cursor.execute(query.encode())


def _delete(link: Link, target: psycopg.Connection[Any]) -> int:
    """Delete the rows of a link that lack what they reference; return how many."""
    if not link.own:
        return target.execute(f"DELETE FROM {link.child} c WHERE {link.lacking}".encode()).rowcount
    names = ", ".join(f"k{number}" for number in range(len(link.referenced)))
    own = ", ".join(f"c.{column}" for column in link.referenced)
    step = " AND ".join(f"c.{column} = d.k{number}" for number, column in enumerate(link.columns))
    same = " AND ".join(f"c.{column} = d.k{number}" for number, column in enumerate(link.referenced))
    query = (
        f"WITH RECURSIVE doomed ({names}) AS (SELECT {own} FROM {link.child} c WHERE {link.lacking} UNION "
        f"SELECT {own} FROM {link.child} c JOIN doomed d ON {step}) "
        f"DELETE FROM {link.child} c USING doomed d WHERE {same}"
    )
    return target.execute(query.encode()).rowcount
