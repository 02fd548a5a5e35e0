"""What a pooler's log tells, in a sentence and in tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.log import PoolFacts
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import count_cell
from uncork.report.words import count_words

__all__ = ["pool_answer", "pool_reasons", "pool_tables"]

_WAITING: Final = 0.1
"""From this share of clients on that wait, of those with a transaction under way, waiting is the answer."""
_SHORT_NS: Final = 1e9


def pool_answer(pool: PoolFacts) -> str:
    """Say in one sentence whether clients had to wait for a connection."""
    if not pool.reports:
        opened = sum(one.count for one in pool.connections if one.side == "client" and not one.ended)
        return f"PgBouncer let in {count_words(opened, 'client')}; it gives no reports (log_stats = 1)."
    rate = f"{format_count(round(pool.queries_s))} queries a second of {format_duration(pool.query_ns)}"
    if _waits(pool):
        return (
            f"Clients of PgBouncer waited for a server's connection: {_clients(pool.waiting)} of the "
            f"{_clients(pool.working)} that had a transaction under way on average ({rate}, waiting "
            "included)."
        )
    return (
        f"Clients of PgBouncer hardly waited for a server's connection: {rate}, {_clients(pool.working)} in "
        f"a transaction on average, {_clients(pool.waiting)} waiting."
    )


def _waits(pool: PoolFacts) -> bool:
    return pool.waiting > _WAITING * pool.working


def _clients(number: float) -> str:
    return f"{number:.3g}"


def pool_reasons(pool: PoolFacts) -> Iterator[str]:
    """Yield what stands out: clients that wait, and clients that stay for a moment only."""
    if pool.reports and _waits(pool):
        held = max(0.0, pool.working - pool.waiting) / max(pool.transactions_s, 1e-9) * 1e9
        yield (
            "Either the pool is too small (default_pool_size), or transactions hold their connections for "
            f"longer than they need them: {format_duration(held)} each, of "
            f"{format_duration(pool.transaction_ns)} with the wait. In the worst period "
            f"{_clients(pool.waiting_max)} clients waited."
        )
    closed = [one for one in pool.connections if one.side == "client" and one.ended]
    count = sum(one.count for one in closed)
    mean = sum(one.mean_ns * one.count for one in closed) / count if count else 0.0
    if count and mean < _SHORT_NS:
        yield (
            f"{count_words(count, 'client')} stayed for less than a second on average: each is let in anew; "
            "a connection that is kept open saves that."
        )


def pool_tables(pool: PoolFacts, most: int) -> Iterator[Table]:
    """Yield the tables: what each second was made of, and connections by why they ended."""
    if pool.reports:
        titles = (
            *("transactions a second", "queries a second", "a transaction", "a query"),
            *("clients in transactions", "of them waiting", "in the worst period"),
        )
        yield Table(
            f"PgBouncer, mean of {count_words(pool.reports, 'period')}",
            tuple(Column(title, number=True) for title in titles),
            (
                (
                    Value(format_count(round(pool.transactions_s))),
                    Value(format_count(round(pool.queries_s))),
                    Value(format_duration(pool.transaction_ns)),
                    Value(format_duration(pool.query_ns)),
                    *(Value(_clients(value)) for value in (pool.working, pool.waiting, pool.waiting_max)),
                ),
            ),
        )
    if pool.connections:
        left = len(pool.connections) - most
        more = f"; {count_words(left, 'other')} not shown" if left > 0 else ""
        yield Table(
            f"Connections of PgBouncer{more}",
            (
                Column("connection", header=True),
                Column("database"),
                Column("user"),
                Column("count", number=True),
                Column("open on average", number=True),
                Column("longest", number=True),
            ),
            tuple(
                (
                    Value(f"{one.side}: {one.ended or 'begun'}"),
                    Value(one.database),
                    Value(one.user),
                    count_cell(one.count),
                    *(_age(value) if one.ended else Value("") for value in (one.mean_ns, one.max_ns)),
                )
                for one in pool.connections[:most]
            ),
            sortable=True,
        )


def _age(nanoseconds: float) -> Value:
    """Show how long a connection was open: the log tells whole seconds."""
    text = format_duration(nanoseconds) if nanoseconds >= _SHORT_NS else "under 1 s"
    return Value(text, sort=round(nanoseconds))
