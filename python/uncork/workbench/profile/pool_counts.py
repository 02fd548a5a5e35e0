"""Count what PgBouncer does while something else loads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from uncork.engines.watch.pooler import PoolerConsole
from uncork.errors import ServerCrash

__all__ = ["pool_counted"]


@contextmanager
def pool_counted(
    pooler: PoolerConsole, missing: list[str], database: str | None = None
) -> Iterator[dict[str, float]]:
    """Count what a pooler does while the block runs, for one database or for all.

    Yields the counts by their names in `PoolerCounts`, with ``elapsed_ns``; filled when the block ends. If
    the console refuses then, they stay empty, and `missing` receives the reason.

    Raises:
        ServerCrash: if the console refuses at the beginning.
    """
    counted: dict[str, float] = {}
    before = pooler.counts(database)
    yield counted
    try:
        after = pooler.counts(database)
    except ServerCrash as error:
        missing.append(f"what the clients of PgBouncer waited for: {error}")
        return
    grown = {name: value - getattr(before, name) for name, value in asdict(after).items()}
    if min(grown.values()) < 0:
        missing.append("what the clients of PgBouncer waited for: it started anew meanwhile")
        return
    counted.update({"elapsed_ns": grown.pop("at_ns"), **grown})
