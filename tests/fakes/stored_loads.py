"""Made-up loads on disk, as a real one leaves them: for what reads several of them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fakes.load_results import CLOSED_SPEC, ENVIRONMENT, latencies, plan, series, times, totals
from uncork.load.run import measurement, without_password
from uncork.model.load import LoadSpec
from uncork.store.layout import Manifest, write_manifest
from uncork.store.loads import write_environment, write_measurement, write_plan

BEGUN = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)


def store_load(
    root: Path,
    number: int,
    slower: float = 1.0,
    *,
    spec: LoadSpec = CLOSED_SPEC,
    failed: int = 0,
    environment: Mapping[str, Mapping[str, str]] = ENVIRONMENT,
    commit: str | None = None,
    seconds: int = 12,
    hours: float | None = None,
    **changes: object,
) -> Path:
    """Store load `number`, an hour after the one before, whose latencies are `slower` times the usual."""
    count = round(100 * seconds / slower)
    values = latencies(number, count, 200e3 * slower)
    names = [script.name for script in spec.scripts]
    by_script = {name: values[place :: len(names)] for place, name in enumerate(names)}
    rows = [times("script", own, script=name, name=name) for name, own in by_script.items()]
    rows += [times("operation", values, errors=failed), times("service", values, errors=failed)]
    rows += [times("connect", latencies(5, spec.clients, 2e6))]
    errors = {"errors": {"40001": failed}, "first_error": "could not serialize access"} if failed else {}
    summed = totals(
        started=count + failed, succeeded=count, failed=failed, rows=count, statements=count,
        round_trips=count + failed, elapsed_ns=seconds * 10**9, client_user_ns=50_000 * count,
        client_system_ns=20_000 * count, busiest_thread=0.02, sent_bytes=100 * count,
        received_bytes=200 * count,
        connections={
            "opened": spec.clients, "lost": 0, "most": spec.clients, "sum_ns": 10**7, "max_ns": 10**6,
        },
        server={"user_ns": 90_000 * count, "system_ns": 30_000 * count, "total_ns": 120_000 * count},
        **errors,
    )  # fmt: skip
    begun = BEGUN + timedelta(hours=number if hours is None else hours)
    folder = root / f"load-tpcb-like-{begun:%Y%m%d-%H%M%S}"
    folder.mkdir(parents=True)
    manifest = Manifest(
        id=folder.name, name="load-tpcb-like",
        question="load: tpcb-like, select-only by 8 clients, prepared", status="complete",
        started_at=begun.isoformat(timespec="seconds"), seed=spec.seed, unit="",
        server="existing: bench@db.example:5432/bench", uncork_version="0.1.0", kind="load",
        options={"command": "uncork load sql -h db.example -c 8 -T 12 bench"}, commit=commit,
    )  # fmt: skip
    write_plan(folder, without_password(plan(replace(spec, seed=number + 1))))
    write_environment(folder, environment)
    write_measurement(folder, measurement(summed, rows, series(by_script, seconds)))
    write_manifest(folder, replace(manifest, **changes))
    return folder
