"""What a merged load knows about its parts: their accounts, their limits, and latencies that disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from uncork.load.merging import MeasuredPart, merged_measurement, quantiles_by_interval
from uncork.load.run import INTERVAL_NS
from uncork.model.load import LoadMeasurement
from uncork.model.results.load import LoadResult, PartFacts, PartsFacts
from uncork.stats.load.parts import disagreements
from uncork.store.loads import LoadReader
from uncork.store.parts import part_folder, read_merged

_COMPARED: Final = {"p50": 0.5, "p99": 0.99}


def parts_facts(folder: Path, build: Callable[[Path], LoadResult]) -> PartsFacts | None:
    """Return the parts of a stored load; None if it was not merged. `build` reads a part's own result.

    Raises:
        StoreError: if a part is damaged.
    """
    merged = read_merged(folder)
    if merged is None:
        return None
    stored = {part["number"]: part for part in merged["parts"] if part["stored"]}
    results = {number: build(part_folder(folder, number)) for number in stored}
    measured = {number: _measured(part_folder(folder, number)) for number in stored}
    with closing(LoadReader(folder)) as reader:
        alike = _equal_clients(reader.plan())
    factors = _factors({number: (measured[number], one["shift"]) for number, one in stored.items()}, alike)
    parts = tuple(_part(part, results.get(part["number"]), factors) for part in merged["parts"])
    others = [
        MeasuredPart(part.number, measured[part.number], stored[part.number]["shift"])
        for part in parts
        if part.number in stored and part.limit != "yes"
    ]
    without = _figures(others) if others and len(others) < len(stored) else None
    return PartsFacts(merged["count"], parts, without)


def _measured(folder: Path) -> LoadMeasurement:
    with closing(LoadReader(folder)) as reader:
        return reader.measurement()


def _part(
    account: Mapping[str, Any], result: LoadResult | None, factors: Mapping[int, dict[str, float]]
) -> PartFacts:
    number, node = account["number"], account.get("node")
    lost = None if node is None else node["lost"]
    if result is None:
        ended, seconds = "missing" if lost is None else "lost", 0.0
    else:
        ended = str(result.run.outcome) if account["finished"] else "killed" if lost is None else "lost"
        seconds = (account["shift"] * INTERVAL_NS + result.run.elapsed_ns) / 1e9
    return PartFacts(
        number=number,
        run=account.get("run"),
        host=account.get("host") or ("" if node is None else node["host"]),
        ended=ended,
        seconds=seconds,
        planned=account["planned"],
        started=account["started"],
        not_started=account["not_started"],
        unknown=account["unknown"],
        start_late_ns=None if result is None else result.run.start_late_ns,
        began_after_ns=account.get("began_after_ns"),
        # Nothing is known about the generator of a part that was killed.
        limit=result.generator.limit if result is not None and account["finished"] else None,
        operations_per_second=0.0 if result is None else result.operations_per_second,
        p50_ns=None if result is None else result.operation.p50_ns,
        p99_ns=None if result is None else result.operation.p99_ns,
        disagrees=factors.get(number, {}),
        **_node_facts(node),
    )


def _node_facts(node: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the coordinator knew about a part's node."""
    if node is None:
        return {}
    return {
        "clock_offset_ns": node["offset_ns"],
        "clock_bound_ns": node["bound_ns"],
        "clock_drift_ns": node["drift_ns"],
        "lost": node["lost"],
        "lost_s": None if node["lost"] is None else node["lost_ns"] / 1e9,
    }


def _equal_clients(plan: Mapping[str, Any]) -> bool:
    """Return whether each part of a closed loop has as many clients, so that their throughputs are alike."""
    return plan.get("arrivals") is None and plan["clients"] % plan["threads"] == 0


def _factors(
    parts: Mapping[int, tuple[LoadMeasurement, int]], equal_clients: bool
) -> dict[int, dict[str, float]]:
    """Return the parts that disagree, and by which factors they differ from the others.

    Their quantiles are compared, and their throughputs if all have `equal_clients` in a closed loop.
    Only whole intervals are compared: the last one of a part is usually shorter. Nothing is compared if every
    part left arrivals unsent: then latencies grow with each part's queue, and queues differ by chance.
    """
    if all(part.totals.unsent for part, _ in parts.values()):
        return {}
    whole = [shift + part.totals.elapsed_ns // INTERVAL_NS for part, shift in parts.values()]
    intervals = max(whole, default=0)
    values = {
        number: quantiles_by_interval(measured, intervals, shift, list(_COMPARED.values()))
        for number, (measured, shift) in parts.items()
    }
    by_name: dict[str, dict[int, list[int | None]]] = {
        name: {number: several[place] for number, several in values.items()}
        for place, name in enumerate(_COMPARED)
    }
    if equal_clients:
        by_name["throughput"] = {
            number: _throughputs(measured, intervals, shift) for number, (measured, shift) in parts.items()
        }
    found: dict[int, dict[str, float]] = {}
    for disagreement in disagreements(by_name):
        found.setdefault(disagreement.part, {})[disagreement.quantile] = disagreement.factor
    return found


def _throughputs(measured: LoadMeasurement, intervals: int, shift: int) -> list[int | None]:
    """Return how many operations succeeded in each interval of the load; None if none did."""
    found = Counter[int]()
    for row in measured.series:
        found[row.interval + shift] += row.succeeded
    return [found[interval] or None for interval in range(intervals)]


def _figures(parts: list[MeasuredPart]) -> tuple[float, int | None, int | None]:
    found = merged_measurement(parts)
    seconds = found.totals.elapsed_ns / 1e9
    row = next((time for time in found.times if time.kind == "operation"), None)
    rate = found.totals.succeeded / seconds if seconds else 0.0
    return rate, None if row is None else row.p50_ns, None if row is None else row.p99_ns
