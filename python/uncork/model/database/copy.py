"""A copy of a database: what was copied, and what was not."""

from __future__ import annotations

from uncork.model.records import Record


class CopiedTable(Record):
    """A table of the copy. `rows` were copied of about `source_rows`; `bytes` is what was read of it."""

    name: str
    rows: int
    source_rows: float
    bytes: int

    @property
    def whole(self) -> bool:
        """Whether all rows were copied; the number of the source is an estimate."""
        return self.rows >= 0.9 * self.source_rows


class NotCopied(Record):
    """An object that the copy lacks: its kind and name, why, and what that means for measurements."""

    what: str
    why: str
    lost: str


class CopyFacts(Record):
    """How a database was copied. `sampled` is true if some tables have only a part of their rows.

    `how` names the way in a few words, such as "by COPY from one snapshot". `seconds` is how long it took.
    With `source_statistics`, the planner's statistics are those of the source; else the copy was analysed.
    """

    how: str
    tables: tuple[CopiedTable, ...]
    missing: tuple[NotCopied, ...]
    bytes: int
    seconds: float
    sampled: bool
    source_statistics: bool = False
