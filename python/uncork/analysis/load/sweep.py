"""Build the result of a stored sweep."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from uncork.analysis.database.result import stored_database_result
from uncork.diagnosis.bottleneck import find_bottlenecks
from uncork.experiment.plan.sweep import SweepFindings, findings
from uncork.model.bottleneck import LoadUse, MachineUse, Seen
from uncork.model.records import build_from
from uncork.model.results.sweep import (
    BottleneckFacts,
    CliffFacts,
    KneeFacts,
    LawFacts,
    LevelFacts,
    ObjectiveFacts,
    SaturationFacts,
    SweepResult,
    SweepRunFacts,
    VerifiedFacts,
    VerifiedObjective,
)
from uncork.model.sweep import STEADY, SweepSpec, Verification
from uncork.model.tables.sweep import LoadStep
from uncork.stats.interval import confidence_sequence
from uncork.stats.load.scalability import fit_scalability
from uncork.store.layout import Manifest, part_of
from uncork.store.loads import SweepReader
from uncork.store.run_documents import Pressed, read_pressed

_UNWATCHED: Final = "The machines of the nodes are not watched, so no bottleneck is named."


def build_sweep_result(folder: Path) -> SweepResult:
    """Build the result of a stored sweep.

    Raises:
        StoreError: if its files are damaged, or it has no result yet.
    """
    reader = SweepReader(folder)
    try:
        plan, spec, steps = reader.plan(), reader.sweep(), reader.steps()
        pressed = read_pressed(folder)
        environment, verification = reader.environment(), reader.verification()
        found = sweep_result(reader.manifest, plan, spec, steps, environment, pressed, verification)
    finally:
        reader.close()
    part = part_of(folder, "database")
    return found if part is None else replace(found, findings=stored_database_result(part).findings)


def sweep_result(
    manifest: Manifest,
    plan: Mapping[str, Any],
    spec: SweepSpec,
    steps: Sequence[LoadStep],
    environment: dict[str, dict[str, str]],
    pressed: Sequence[Pressed] = (),
    verification: Verification | None = None,
) -> SweepResult:
    """Build the result of a sweep from the contents of its run. Pure."""
    found = findings(steps, spec)
    return build_from(
        SweepResult,
        spec,
        run=build_from(
            SweepRunFacts,
            manifest,
            elapsed_ns=sum(attempt.elapsed_ns for attempt in manifest.attempts),
            reproduce=str(manifest.options.get("command", "uncork load")),
        ),
        answer="",
        warnings=(),
        scripts=tuple(script["name"] for script in plan["scripts"]),
        levels=tuple(
            _level([step for step in steps if step.level == level], spec.confidence)
            for level in sorted({step.level for step in steps})
        ),
        knee=None if found.knee is None else build_from(KneeFacts, found.knee),
        most=found.most,
        saturation=None if found.saturation is None else build_from(SaturationFacts, found.saturation),
        law=_law(steps, spec),
        objectives=tuple(_objective(text, found) for text in found.objectives),
        cliff=_cliff(steps, found),
        bottlenecks=tuple(_bottlenecks(steps, found, pressed)),
        processors=int(environment.get("machine", {}).get("processors", "1")),
        environment=environment,
        operation="request" if "http" in plan else "transaction",
        missing=(
            *(() if "nodes" not in manifest.options else (_UNWATCHED,)),
            *dict.fromkeys(lacking for pressure in pressed for lacking in pressure.missing),
        ),
        verified=None if verification is None else _verified(verification, spec),
    )


def _level(steps: Sequence[LoadStep], confidence: float) -> LevelFacts:
    rounds = [step for step in steps if step.round]
    logs = [math.log(step.throughput) for step in rounds if step.succeeded]
    low, high = confidence_sequence(logs, confidence) if logs else (-math.inf, math.inf)
    asked = sum(step.asked for step in steps)
    elapsed = sum(step.elapsed_ns for step in steps)
    server = [
        step.server_user_ns + step.server_system_ns
        for step in steps
        if step.server_user_ns is not None and step.server_system_ns is not None
    ]
    messages = [step.message for step in steps if step.message]
    return LevelFacts(
        level=steps[0].level,
        steps=len(steps),
        rounds=len(rounds),
        throughput=statistics.fmean(step.throughput for step in steps),
        low=None if math.isinf(low) else math.exp(low),
        high=None if math.isinf(high) else math.exp(high),
        mean_ns=_median([step.mean_ns for step in steps]),
        p50_ns=_median([step.p50_ns for step in steps]),
        p90_ns=_median([step.p90_ns for step in steps]),
        p99_ns=_median([step.p99_ns for step in steps]),
        max_ns=max((step.max_ns for step in steps if step.max_ns is not None), default=None),
        wrong=sum(step.wrong for step in steps) / asked if asked else 0.0,
        busiest_thread=statistics.fmean(step.busiest_thread for step in steps),
        client_cpus=sum(step.client_ns for step in steps) / elapsed if elapsed else 0.0,
        server_cpus=sum(server) / elapsed if elapsed and len(server) == len(steps) else None,
        works=2 * sum(step.works for step in steps) >= len(steps),
        message=messages[0] if messages else None,
    )


def _verified(found: Verification, spec: SweepSpec) -> VerifiedFacts:
    # Connections that the server refuses to add are no arrivals: others may serve all of them.
    step = replace(found.step, refused=0)
    measured = [(objective, step.measured(objective.quantity)) for objective in spec.objectives]
    return build_from(
        VerifiedFacts,
        step,
        knee=found.knee,
        share=STEADY,
        rate=step.level,
        wrong=step.wrong / step.asked if step.asked else 0.0,
        refused=found.step.refused,
        objectives=tuple(
            VerifiedObjective(objective.text, value, value is not None and value < objective.limit)
            for objective, value in measured
        ),
    )


def _bottlenecks(
    steps: Sequence[LoadStep], found: SweepFindings, pressed: Sequence[Pressed]
) -> Iterator[BottleneckFacts]:
    told = set()
    for at in pressed:
        for bottleneck in find_bottlenecks(at.seen):
            if at.level is not None and bottleneck.resource not in told:
                yield build_from(BottleneckFacts, bottleneck, level=at.level)
                told.add(bottleneck.resource)
    broken = next((step for step in steps if step.level == found.cliff.gives_way and not step.works), None)
    if broken is not None:
        load = LoadUse(0.0, 0.0, errors=broken.errors, message=broken.message or "")
        for bottleneck in find_bottlenecks(Seen(load, MachineUse(1))):
            if bottleneck.resource not in told:
                yield build_from(BottleneckFacts, bottleneck, level=broken.level)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _law(steps: Sequence[LoadStep], spec: SweepSpec) -> LawFacts | None:
    """Fit the law to clients, or streams; a rate is not a number of concurrent workers."""
    works = [step for step in steps if step.works]
    if spec.axis == "rate" or not works:
        return None
    generator = np.random.default_rng(spec.seed)
    law = fit_scalability(
        [step.level for step in works],
        [step.throughput for step in works],
        generator,
        spec.confidence,
    )
    if law is None:
        return None
    return LawFacts(
        alone=law.alone.value,
        contention=law.contention.value,
        contention_low=law.contention.low,
        contention_high=law.contention.high,
        coherency=law.coherency.value,
        coherency_low=law.coherency.low,
        coherency_high=law.coherency.high,
        peak=_finite(law.peak.value),
        peak_low=_finite(law.peak.low),
        peak_high=_finite(law.peak.high),
        misfit=law.misfit,
        describes=law.describes,
    )


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value


def _objective(text: str, found: SweepFindings) -> ObjectiveFacts:
    """Combine the judgements of levels: an objective is met up to a level if met at all below."""
    judged = found.objectives[text]
    fails = min((level for level, holds in judged.items() if holds == "no"), default=None)
    edge = found.edges[text]
    if fails is None and edge.gives_way is not None and edge.gives_way not in judged:
        fails = edge.gives_way  # it broke while exploring, so that no round measured it
    holds = max(
        (level for level, told in judged.items() if told == "yes" and (fails is None or level < fails)),
        default=None,
    )
    unknown = tuple(level for level, told in judged.items() if told == "open")
    return ObjectiveFacts(text, holds, fails, unknown)


def _cliff(steps: Sequence[LoadStep], found: SweepFindings) -> CliffFacts | None:
    if found.cliff.gives_way is None:
        return None
    there = [step for step in steps if step.level == found.cliff.gives_way and not step.works]
    step = there[0]
    if step.unsent and step.unsent >= step.failed + step.refused:
        reason = f"{step.unsent} of {step.asked} arrivals found no free connection in time"
    else:
        reason = step.message or ", ".join(f"{many} × {code}" for code, many in step.errors.items())
        failed = step.failed + step.refused
        if reason and step.complete and failed:
            reason = f"{failed} of {step.asked} failed, the first: {reason}"
    return CliffFacts(found.cliff.holds, found.cliff.gives_way, reason or "the load ended early")
