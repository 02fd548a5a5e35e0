"""Made-up but plausible loads: what the core would answer for them, and what a report says of them.

The histograms are real ones, written here in HdrHistogram's form V2, so that whatever reads the core's reads
these.
"""

import math
import random
import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace

from fakes.answered import load_result
from uncork.load.run import load_plan, measurement, without_password
from uncork.model.load import Arrivals, LoadMeasurement, LoadScript, LoadSpec
from uncork.model.results.load import LoadResult
from uncork.store.layout import Manifest

TPCB = (
    "\\set aid random(1, 100000 * :scale)\n\\set delta random(-5000, 5000)\nBEGIN;\n"
    "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
    "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nEND;\n"
)
SELECT = "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
CONNECTION = {
    "host": "db.example", "port": 5432, "user": "bench", "database": "bench", "password": "hush",
    "options": "", "application_name": "uncork", "connect_timeout_ns": 10_000_000_000,
    "sslmode": "prefer",
}  # fmt: skip
ENVIRONMENT = {
    "server": {"version": "PostgreSQL 18.4 on x86_64-linux", "setting shared_buffers": "128MB"},
    "machine": {"kernel": "6.1.0", "processors": "8", "processor": "Imaginary 3000"},
    "core": {"version": "0.1.0", "profile": "release"},
}

_HALF = 1024
"""Half the sub-buckets of a histogram of three significant digits."""


def histogram(values: Iterable[int]) -> bytes:
    """Return an HDR histogram in the form V2 with three significant digits."""
    counts: dict[int, int] = {}
    for value in values:
        place = _index(value)
        counts[place] = counts.get(place, 0) + 1
    body = bytearray()
    last = -1
    for place in sorted(counts):
        if place > last + 1:
            body += _zigzag(last + 1 - place)
        body += _zigzag(counts[place])
        last = place
    head = struct.pack(">iiiiqqd", 0x1C849313, len(body), 0, 3, 1, 2**63 - 1, 1.0)
    return head + bytes(body)


def _index(value: int) -> int:
    bucket = max(0, value.bit_length() - 11)
    return (bucket + 1) * _HALF + (value >> bucket) - _HALF


def _zigzag(number: int) -> bytes:
    left = ((number << 1) ^ (number >> 63)) & (2**64 - 1)
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])


def times(
    kind: str,
    values: list[int],
    *,
    script: str = "",
    name: str = "",
    line: int | None = None,
    errors: int = 0,
) -> dict[str, object]:
    """Return a row of the core's table of times."""
    ordered = sorted(values)

    def quantile(q: float) -> int | None:
        return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)] if ordered else None

    quantiles = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
    return {
        "kind": kind, "script": script, "name": name or kind, "line": line, "errors": errors,
        "executions": len(values) + errors, "rows": len(values), "sum_ns": sum(values),
        "sum_squares_ns2": float(sum(value * value for value in values)),
        "min_ns": ordered[0] if ordered else None, "max_ns": ordered[-1] if ordered else None,
        **{f"{label}_ns": quantile(q) for label, q in quantiles.items()},
        "histogram": histogram(values),
    }  # fmt: skip


def totals(**changes: object) -> dict[str, object]:
    """Return the core's totals of a load in which nothing happened, with some changes."""
    return {
        "outcome": "complete", "message": None, "started": 0, "succeeded": 0, "failed": 0,
        "arrivals": None, "skipped": 0, "unsent": 0, "late": 0, "errors": {}, "connect_errors": {},
        "retried": 0, "retries": {}, "first_error": None, "failures": [], "rows": 0,
        "statements": 0, "round_trips": 0, "elapsed_ns": 0, "client_user_ns": 0,
        "client_system_ns": 0, "busiest_thread": 0.0, "sent_bytes": 0, "received_bytes": 0,
        "connections": {"opened": 0, "lost": 0, "most": 0, "sum_ns": 0, "max_ns": 0},
        "digest": None, "warmup_failed": 0, "settling": 0, "server": None, "steal_ns": 0,
        "throttled_ns": None,
        **changes,
    }  # fmt: skip


def latencies(seed: int, count: int, median_ns: float, spread: float = 0.35) -> list[int]:
    """Draw latencies with a tail, as a server's are."""
    draw = random.Random(seed)
    return [
        round(median_ns * math.exp(draw.gauss(0, spread)) + draw.expovariate(1 / 8e3)) for _ in range(count)
    ]


def series(
    by_script: Mapping[str, list[int]],
    seconds: int,
    failed: Mapping[int, int] | None = None,
    skipped: int = 0,
) -> list[dict[str, object]]:
    """Spread each script's latencies over so many intervals of a second."""
    rows = []
    for name, values in by_script.items():
        share = math.ceil(len(values) / seconds)
        for second in range(seconds):
            own = values[second * share : (second + 1) * share]
            lost = (failed or {}).get(second, 0)
            rows.append({
                "interval": second, "start_ns": second * 10**9, "script": name, "retries": 0,
                "started": len(own) + lost, "succeeded": len(own), "failed": lost,
                "skipped": skipped if second == seconds - 1 else 0, "statements": len(own) * 3,
                "histogram": histogram(own) if own else None,
            })  # fmt: skip
    return rows


BUILTIN = (
    LoadScript("tpcb-like", 1, TPCB, builtin=True),
    LoadScript("select-only", 3, SELECT, builtin=True),
)
CLOSED_SPEC = LoadSpec(
    scripts=BUILTIN, clients=8, threads=2, protocol="prepared", variables={"scale": "20"}, seed=42,
    duration_ns=30_000_000_000,
)  # fmt: skip
OPEN_SPEC = LoadSpec(
    scripts=(LoadScript("orders.sql", 1, "SELECT 1;\n"),), clients=4, max_clients=64, threads=1,
    variables={"scale": "1"}, seed=7, arrivals=Arrivals("poisson", rate=300.0),
    latency_limit_ns=50_000_000, duration_ns=5_000_000_000,
)  # fmt: skip


def closed_answer() -> tuple[dict, list[dict], list[dict]]:
    """A good closed loop of two scripts over 30 s."""
    writes, reads = latencies(1, 3_000, 240e3), latencies(2, 9_000, 130e3)
    everything = writes + reads
    rows = [
        times(
            "statement", latencies(3, 3_000, 60e3), script="tpcb-like", name="UPDATE pgbench_accounts", line=4
        ),
        times("statement", latencies(4, 3_000, 40e3), script="tpcb-like", name="SELECT abalance", line=5),
        times("statement", reads, script="select-only", name="SELECT abalance", line=2),
        times("script", writes, script="tpcb-like", name="tpcb-like"),
        times("script", reads, script="select-only", name="select-only"),
        times("operation", everything),
        times("service", everything),
        times("connect", latencies(5, 8, 2e6)),
    ]
    summed = totals(
        started=12_000, succeeded=12_000, rows=15_000, statements=21_000, round_trips=21_000,
        elapsed_ns=30_000_000_000, client_user_ns=600_000_000, client_system_ns=300_000_000,
        busiest_thread=0.02, sent_bytes=1_200_000, received_bytes=2_400_000,
        connections={"opened": 8, "lost": 0, "most": 8, "sum_ns": 17_000_000, "max_ns": 3_100_000},
        server={"user_ns": 2_000_000_000, "system_ns": 500_000_000, "total_ns": 2_500_000_000},
    )  # fmt: skip
    return summed, rows, series({"tpcb-like": writes, "select-only": reads}, 30)


def open_answer() -> tuple[dict, list[dict], list[dict]]:
    """An open loop for 5 s that the server could not keep up with, with errors and lost connections.

    Only 400 operations found a free connection, so that lateness is known of those alone.
    """
    service = latencies(6, 1_400, 9e6)
    waited = [value + round(30e6 * place / len(service)) for place, value in enumerate(service)]
    rows = [
        times("statement", service, script="orders.sql", name="SELECT 1", line=1, errors=20),
        times("script", waited, script="orders.sql", name="orders.sql", errors=20),
        times("operation", waited, errors=20),
        times("service", service, errors=20),
        times("lateness", latencies(7, 400, 40e3)),
        times("connect", latencies(8, 14, 5e6)),
    ]
    summed = totals(
        started=1_420, succeeded=1_400, failed=20, arrivals=1_500, skipped=50, unsent=30, late=210,
        errors={"40001": 16, "08006": 4},
        connect_errors={"53300": 2}, retried=5, retries={"40001": 6},
        first_error="SELECT 1: could not serialize access due to concurrent update (SQLSTATE 40001)",
        rows=1_400, statements=1_420, round_trips=1_420, elapsed_ns=5_000_000_000,
        client_user_ns=70_000_000, client_system_ns=50_000_000, busiest_thread=0.03,
        sent_bytes=90_000, received_bytes=110_000, steal_ns=400_000_000,
        connections={"opened": 18, "lost": 4, "most": 14, "sum_ns": 90_000_000, "max_ns": 12_000_000},
    )  # fmt: skip
    return summed, rows, series({"orders.sql": waited}, 5, failed={2: 16, 3: 4}, skipped=50)


def refused_answer() -> tuple[dict, list[dict], list[dict]]:
    """A server that let nobody in."""
    message = 'password authentication failed for user "bench" (SQLSTATE 28P01)'
    return (
        totals(outcome="refused", message=message, connect_errors={"28P01": 8}, first_error=message),
        [],
        [],
    )


def closed_load() -> LoadMeasurement:
    return measurement(*closed_answer())


def open_load() -> LoadMeasurement:
    return measurement(*open_answer())


def refused_load() -> LoadMeasurement:
    return measurement(*refused_answer())


def plan(spec: LoadSpec) -> dict:
    return load_plan(spec, CONNECTION, pid=None)


def result_of(spec: LoadSpec, measured: LoadMeasurement, **changes: object) -> LoadResult:
    """Return what a report says of a made-up load."""
    manifest = Manifest(
        id="load-tpcb-like-20260102-030405", name="load-tpcb-like", question="", status="complete",
        started_at="2026-01-02T03:04:05+00:00", seed=spec.seed, unit="",
        server="existing: db.example:5432/bench", uncork_version="0.1.0", kind="load",
        options={"command": "uncork load sql -h db.example -c 8 -T 30 -M prepared bench"},
    )  # fmt: skip
    return load_result(replace(manifest, **changes), without_password(plan(spec)), measured, ENVIRONMENT)


def closed_result() -> LoadResult:
    return result_of(CLOSED_SPEC, closed_load())


def open_result() -> LoadResult:
    return result_of(OPEN_SPEC, open_load())


def refused_result() -> LoadResult:
    return result_of(CLOSED_SPEC, refused_load())
