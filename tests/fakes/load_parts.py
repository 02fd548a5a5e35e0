"""Parts of a load on the core's fake driver, in virtual time: stored as runs, without a server."""

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.engines import process
from uncork.engines.conninfo import Address
from uncork.load.run import measurement
from uncork.model.load import LoadMeasurement
from uncork.model.tables.load import LoadInterval
from uncork.store.loads import write_environment, write_measurement, write_plan
from uncork.store.parts import RESERVATIONS
from uncork.store.snapshots import add_snapshot
from uncork.workbench.load.progress_log import storable
from uncork.workbench.run_record import draft, start_run

SECOND = 10**9
ARRIVALS = {"kind": "poisson", "rate": 200.0}


def plan(number: int, count: int, *, threads: int = 1, **changes: Any) -> dict[str, Any]:
    """Return the plan of a part of an open loop of 8 clients for 12 s."""
    return {
        "connection": asdict(Address("db", 5432, "u", "d")), "driver": "fake", "clients": 8,
        "max_clients": 16, "threads": threads, "protocol": "simple", "pipeline_depth": 1,
        "scripts": [{"name": "s", "weight": 1, "statements": [{"name": "s", "sql": "SELECT 1"}]}],
        "variables": {}, "seed": 5, "arrivals": ARRIVALS, "latency_limit_ns": None, "max_tries": 1,
        "connect_each": False, "warmup_ns": 0, "stop": {"duration_ns": 12 * SECOND},
        "deadline_ns": 100 * SECOND, "interval_ns": SECOND,
        "fake": {"latencies_ns": [1_000_000, 3_000_000, 2_500_000, 40_000_000, 900_000]},
        "part": {"index": number - 1, "count": count}, **changes,
    }  # fmt: skip


def carried_out(plan: Mapping[str, Any]) -> LoadMeasurement:
    """Return what the core measures."""
    totals, *tables, _ = _native.run_load(json.dumps(plan).encode(), pa.table({}))
    return measurement(json.loads(totals), *(pa.table(table).to_pylist() for table in tables))


def store_part(
    root: Path,
    number: int,
    count: int = 4,
    *,
    facts: Mapping[str, Any] | None = None,
    version: str = "0.1.0",
    latency: int = 1,
    killed_after: int | None = None,
    **changes: Any,
) -> str:
    """Carry out a part and store its run; return the run's id. `latency` multiplies its latencies.

    `killed_after` stores what a part leaves that is killed after so many seconds.
    """
    wanted = plan(number, count, **changes)
    wanted["fake"] = {"latencies_ns": [latency * one for one in wanted["fake"]["latencies_ns"]]}
    measured = carried_out(wanted)
    part = {
        "number": number, "count": count, "start_at_ns": None, "host": f"host-{number}",
        "machine": number,
    }  # fmt: skip
    options = {"command": f"uncork load sql --shard {number}/{count}", "measured_us": 1_000_000_000_000_000}
    manifest = draft(
        kind="load",
        name=f"part-{number}",
        question="load: s by 8 clients",
        server="u@db:5432/d",
        seed=5,
        options={**options, "part": {**part, **(facts or {})}},
        commit=lambda: None,
    )
    record = start_run(root, manifest)
    stored = {**wanted, "driver": "postgres", "scripts": [{"name": "s", "weight": 1, "text": "SELECT 1;"}]}
    write_plan(record.folder, {name: value for name, value in stored.items() if name != "fake"})
    write_environment(record.folder, {"core": {"version": version}, "machine": {"processors": "8"}})
    if killed_after is None:
        write_measurement(record.folder, measured)
        record.end("complete", "")
        return record.folder.name
    _leave(record.folder, [row for row in measured.series if row.interval < killed_after])
    reserved = sum(row.started for row in measured.series if row.interval < killed_after) + 16
    (record.folder / RESERVATIONS).write_bytes(struct.pack("<Q", reserved))
    # Its process is gone.
    path = record.folder / "manifest.json"
    left = json.loads(path.read_text())
    path.write_text(json.dumps({**left, "owner": {**process.identity(os.getpid()), "pid": 2**22 + 1}}))
    return record.folder.name


def _leave(folder: Path, series: list[LoadInterval]) -> None:
    for row in series:
        add_snapshot(folder, storable({"elapsed_ns": row.start_ns + SECOND, "series": [asdict(row)]}))
