"""A made-up but plausible load by HTTP: what the core would answer, and what a report says of it."""

from dataclasses import replace
from pathlib import Path

from fakes.answered import load_result
from fakes.load_results import ENVIRONMENT, latencies, series, times, totals
from uncork.load.http import http_plan, without_secrets
from uncork.load.run import measurement
from uncork.model.http import Checks, HttpServer, HttpSpec, Request
from uncork.model.load import LoadMeasurement
from uncork.model.results.load import LoadResult
from uncork.store.layout import Manifest, write_manifest
from uncork.store.loads import write_environment, write_measurement, write_plan

HTTP_SPEC = HttpSpec(
    server=HttpServer("shop.example", 443, tls=True),
    requests=(
        Request("/items/{id}", "GET", "/items/{id}", 3),
        Request("/basket", "POST", "/basket", 1, (("X-A", "b"),), b'{"id": 7}',
                Checks(json=(("/ok", True),))),
    ),
    version="negotiated", clients=6, streams=10, threads=2, seed=42, operations=12_000,
)  # fmt: skip


MANIFEST = Manifest(
    id="load-shop.example-20260101-120000", name="load-shop.example", question="load",
    status="failed", started_at="2026-01-01T12:00:00+00:00", seed=42, unit="",
    server=HTTP_SPEC.server.place, uncork_version="0.1.0", kind="load",
    options={"command": "uncork load http -n 12000 -c 6 -m 10 -t 2 'https://shop.example/items/{id}'"},
)  # fmt: skip


def http_result() -> LoadResult:
    """What is said of `http_load`."""
    return load_result(MANIFEST, without_secrets(http_plan(HTTP_SPEC)), http_load(), ENVIRONMENT)


def store_http_load(root: Path, number: int = 0) -> Path:
    """Store `http_load`."""
    measured = http_load()
    folder = root / f"load-shop.example-20260101-12000{number}"
    folder.mkdir(parents=True)
    write_plan(folder, without_secrets(http_plan(HTTP_SPEC)))
    write_environment(folder, ENVIRONMENT)
    write_measurement(folder, measured)
    write_manifest(folder, replace(MANIFEST, id=folder.name))
    return folder


def http_load() -> LoadMeasurement:
    """A load of 12 000 requests of which 10 080 were sent: some failed in each way there is."""
    items, baskets = latencies(11, 7_500, 900e3), latencies(12, 2_490, 2.1e6)
    everything = items + baskets
    rows = [
        times("script", items, script="/items/{id}", name="/items/{id}", errors=60),
        times("script", baskets, script="/basket", name="/basket", errors=30),
        times("operation", everything, errors=90),
        times("service", everything, errors=90),
        times("connect", latencies(13, 16, 3e6)),
        times("tls", latencies(14, 16, 2e6)),
        times("first byte", everything),
    ]
    summed = totals(
        outcome="connection lost",
        message="no connection for 10 s: cannot connect to shop.example:443: Connection refused",
        started=10_080, succeeded=9_990, failed=90,
        errors={"status 503": 40, "check json": 5, "reset": 20, "refused": 10, "timed out": 12},
        connect_errors={"refused": 9}, retried=36, retries={"goaway": 36},
        first_error="the answer has the status 503", elapsed_ns=15_000_000_000,
        client_user_ns=200_000_000, client_system_ns=400_000_000, busiest_thread=0.03,
        sent_bytes=400_000, received_bytes=4_000_000,
        connections={"opened": 16, "lost": 2, "most": 6, "sum_ns": 50_000_000, "max_ns": 9_000_000},
        http={
            "planned": 12_000, "statuses": {"200": 9_995, "503": 40}, "unprocessed": 10,
            "header_bytes": 400_000, "header_plain_bytes": 1_900_000, "body_bytes": 3_000_000,
            "stalls": {"answers": 120, "kept": 8, "kept_short": 0, "hastened": 8, "hastened_short": 8},
            "closed": 9, "closed_least": 1_000, "closed_most": 1_000, "goaways": 9, "requests": [],
        },
    )  # fmt: skip
    by_script = {"/items/{id}": items, "/basket": baskets}
    counted = [(second, 200, 667 if second < 14 else 657) for second in range(15)]
    counted += [(13, 503, 10), (14, 503, 30)]
    statuses = [
        {"interval": at, "start_ns": at * 10**9, "length_ns": 10**9, "status": status, "answers": number}
        for at, status, number in counted
    ]
    return measurement(summed, rows, series(by_script, 15, failed={14: 45}), statuses)
