"""What the core measures of operations whose times are declared, without any server."""

import json

import pyarrow as pa

from uncork import _native


def fake_load(*latencies_ns, operations=100):
    """Return the totals and the rows of times of operations that take these times in turn."""
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
        "fake": {"latencies_ns": list(latencies_ns)},
    }
    totals, rows, *_ = _native.run_load(json.dumps(plan).encode(), pa.table({}))
    return json.loads(totals), pa.table(rows).to_pylist()


def histogram(latency_ns=1_000_000, operations=100):
    """Return the histogram of operations that all take so long."""
    _, rows = fake_load(latency_ns, operations=operations)
    return next(row["histogram"] for row in rows if row["kind"] == "operation")
