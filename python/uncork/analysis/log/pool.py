"""Build the facts of a pooler's log."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from uncork.model.results.log import PoolConnections, PoolFacts


def pool_facts(averages: Mapping[str, Mapping[str, int]], connections: pa.Table) -> PoolFacts | None:
    """Return the facts of a pooler; None if the log has none. Pure."""
    reports = averages["pool queries"]["count"]
    rows = connections.to_pylist()
    if not reports and not rows:
        return None

    def mean(name: str) -> float:
        return averages[name]["sum"] / max(reports, 1)

    def time(name: str, count: str) -> float:
        return averages[name]["sum"] * 1000 / max(averages[count]["sum"], 1)

    return PoolFacts(
        reports=reports,
        transactions_s=mean("pool transactions"),
        queries_s=mean("pool queries"),
        transaction_ns=time("pool transaction time", "pool transactions"),
        query_ns=time("pool query time", "pool queries"),
        working=mean("pool transaction time") / 1e6,
        waiting=mean("pool wait") / 1e6,
        waiting_max=averages["pool wait"]["max"] / 1e6,
        connections=tuple(
            PoolConnections(
                side=row["side"],
                database=row["database"],
                user=row["user"],
                ended=row["ended"],
                count=row["count"],
                mean_ns=row["sum_us"] * 1000 / row["count"],
                max_ns=row["max_us"] * 1000,
                host=row["host"] or "",
            )
            for row in sorted(rows, key=lambda row: (row["side"], -row["count"], row["ended"]))
        ),
        bytes_in_s=mean("pool bytes in"),
        bytes_out_s=mean("pool bytes out"),
    )
