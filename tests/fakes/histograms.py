"""Histograms as the core makes them."""

import json

import pyarrow as pa

from uncork import _native


def histogram(latency_ns=1_000_000, operations=100):
    """Return the histogram of operations that all take so long."""
    plan = {
        "driver": "fake",
        "clients": 1,
        "threads": 1,
        "protocol": "prepared",
        "scripts": [
            {"name": "it", "weight": 1, "statements": [{"name": "only", "sql": "SELECT 1", "parameters": []}]}
        ],
        "stop": {"operations": operations},
        "deadline_ns": 60_000_000_000,
        "fake": {"latencies_ns": [latency_ns]},
    }
    _, rows, *_ = _native.run_load(json.dumps(plan).encode(), pa.table({}))
    return next(row["histogram"] for row in pa.table(rows).to_pylist() if row["kind"] == "operation")
