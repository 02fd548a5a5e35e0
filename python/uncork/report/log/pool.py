"""The sentences and tables of a report on PgBouncer's log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.log import PoolFacts
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import bytes_cell, count_cell
from uncork.report.words import count_words

_WAITING: Final = 0.1
"""Share of clients in a transaction that must wait before waiting is the answer."""
_SHORT_NS: Final = 1e9


def pool_answer(pool: PoolFacts) -> str:
    """Return in one sentence whether clients had to wait for a connection."""
    if not pool.reports:
        opened = sum(
            connection.count
            for connection in pool.connections
            if connection.side == "client" and not connection.ended
        )
        came = count_words(opened, "client")
        return f"PgBouncer accepted {came}, but logged no statistics. To log them, set log_stats = 1."
    rate = f"{format_count(round(pool.queries_s))} queries a second, {format_duration(pool.query_ns)} each"
    if _waits(pool):
        return (
            f"PgBouncer's clients waited for a server connection. On average {_clients(pool.waiting)} of the "
            f"{_clients(pool.working)} clients in a transaction were waiting ({rate}, waiting included)."
        )
    return (
        f"PgBouncer's clients hardly waited for a server connection. On average {_clients(pool.waiting)} of "
        f"the {_clients(pool.working)} clients in a transaction were waiting ({rate})."
    )


def _waits(pool: PoolFacts) -> bool:
    return pool.waiting > _WAITING * pool.working


def _clients(number: float) -> str:
    return f"{number:.3g}"


def pool_reasons(pool: PoolFacts) -> Iterator[str]:
    """Yield the findings: clients that wait, and clients that connect only briefly."""
    if pool.reports and _waits(pool):
        held = max(0.0, pool.working - pool.waiting) / max(pool.transactions_s, 1e-9) * 1e9
        yield (
            "Either the pool is too small (default_pool_size), or transactions hold their connections too "
            f"long: {format_duration(held)} each, {format_duration(pool.transaction_ns)} including the wait. "
            f"In the worst period {_clients(pool.waiting_max)} clients waited."
        )
    closed = [
        connection for connection in pool.connections if connection.side == "client" and connection.ended
    ]
    count = sum(one.count for one in closed)
    mean = sum(one.mean_ns * one.count for one in closed) / count if count else 0.0
    if count and mean < _SHORT_NS:
        yield (
            f"{count_words(count, 'client')} stayed connected for less than a second on average: keep "
            "connections open to save the cost of connecting."
        )


def pool_tables(pool: PoolFacts, most: int) -> Iterator[Table]:
    """Yield the tables: averages of PgBouncer's periods, and connections by why they ended."""
    if pool.reports:
        titles = (
            *("transactions per second", "queries per second", "time per transaction", "time per query"),
            *("clients in transactions", "of them waiting", "waiting in the worst period"),
            *("received per second", "sent per second"),
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
                    *(bytes_cell(round(value)) for value in (pool.bytes_in_s, pool.bytes_out_s)),
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
                Column("host"),
                Column("count", number=True),
                Column("open on average", number=True),
                Column("longest", number=True),
            ),
            tuple(
                (
                    Value(f"{connection.side}: {connection.ended or 'opened'}"),
                    Value(connection.database),
                    Value(connection.user),
                    Value(connection.host),
                    count_cell(connection.count),
                    *(
                        _age(value) if connection.ended else Value("")
                        for value in (connection.mean_ns, connection.max_ns)
                    ),
                )
                for connection in pool.connections[:most]
            ),
            sortable=True,
        )


def _age(nanoseconds: float) -> Value:
    """Format how long a connection was open; the log has whole seconds."""
    text = format_duration(nanoseconds) if nanoseconds >= _SHORT_NS else "under 1 s"
    return Value(text, sort=round(nanoseconds))
