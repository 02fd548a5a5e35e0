"""The sentences and tables of a report on PgBouncer's log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.log import PoolConnections, PoolFacts
from uncork.model.units import count_words, format_count, format_duration
from uncork.report.blocks import Table, Value
from uncork.report.cells import bytes_cell, column, count_cell, header, not_shown, number, table_of

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
        yield table_of(
            f"PgBouncer, mean of {count_words(pool.reports, 'period')}",
            [pool],
            number("transactions per second", lambda mean: format_count(round(mean.transactions_s))),
            number("queries per second", lambda mean: format_count(round(mean.queries_s))),
            number("time per transaction", lambda mean: format_duration(mean.transaction_ns)),
            number("time per query", lambda mean: format_duration(mean.query_ns)),
            number("clients in transactions", lambda mean: _clients(mean.working)),
            number("of them waiting", lambda mean: _clients(mean.waiting)),
            number("waiting in the worst period", lambda mean: _clients(mean.waiting_max)),
            number("received per second", lambda mean: bytes_cell(round(mean.bytes_in_s))),
            number("sent per second", lambda mean: bytes_cell(round(mean.bytes_out_s))),
        )
    if pool.connections:
        yield table_of(
            f"Connections of PgBouncer{not_shown(len(pool.connections) - most, 'other')}",
            pool.connections[:most],
            header("connection", lambda connection: f"{connection.side}: {connection.ended or 'opened'}"),
            column("database", lambda connection: connection.database),
            column("user", lambda connection: connection.user),
            column("host", lambda connection: connection.host),
            number("count", lambda connection: count_cell(connection.count)),
            number("open on average", lambda connection: _age(connection, connection.mean_ns)),
            number("longest", lambda connection: _age(connection, connection.max_ns)),
            sortable=True,
        )


def _age(connection: PoolConnections, nanoseconds: float) -> Value:
    """Return how long connections that ended were open; the log has whole seconds."""
    if not connection.ended:
        return Value("")
    text = format_duration(nanoseconds) if nanoseconds >= _SHORT_NS else "under 1 s"
    return Value(text, sort=round(nanoseconds))
