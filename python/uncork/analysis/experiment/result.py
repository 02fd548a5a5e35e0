"""Build the result of an experiment: read the stored run, judge it, add published numbers."""

from __future__ import annotations

import difflib
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from uncork.analysis.experiment.engines import (
    answer_differences,
    client_warnings,
    clients_in_doubt,
    engine_facts,
    http_protocol,
    own_services,
    request_counts,
    shares_of_success,
)
from uncork.analysis.experiment.published import Measured, published_in_costs
from uncork.analysis.experiment.stored import evidence_facts, judged_ledger, own_metric_facts
from uncork.experiment.guard.gate_evidence import cost_evidence
from uncork.experiment.plan.order import cells
from uncork.experiment.plan.skip_rules import SKIPPING
from uncork.experiment.run.ledger import Judged, Ledger
from uncork.experiment.run.request import batch_of
from uncork.experiment.spec.schema import METRICS, Spec
from uncork.load.sql import merge_histograms
from uncork.model.records import Kind, build_from
from uncork.model.results.experiment import (
    COSTS,
    ArmMetric,
    ArmSystem,
    BatchFacts,
    Comparison,
    Cost,
    CostEffect,
    CrossoverPoint,
    DataCheckFacts,
    FactorFacts,
    GrowthFacts,
    GrowthLine,
    HostFacts,
    HostScopes,
    LatencyCurve,
    NoiseFloor,
    PlanFacts,
    RankEffect,
    RunFacts,
    RunResult,
    ScopeEffect,
    SizeFacts,
    SliceCheckFacts,
    VariantFacts,
    WorkloadFacts,
)
from uncork.model.trial import Cell
from uncork.model.units import format_duration
from uncork.model.variant_evidence import Levels
from uncork.model.verdict import Verdict
from uncork.profile.plans.tree import plan_hash
from uncork.profile.system import system_use
from uncork.requests.source import Published, published_figures, run_source
from uncork.stats.compare import AnyEffect
from uncork.stats.crossover import Level, crossovers
from uncork.stats.effect import Effect
from uncork.stats.gates.decision import Exact
from uncork.stats.growth import fit_growth
from uncork.stats.power import rounds_to_decide
from uncork.stats.proportion import ShareEffect
from uncork.stats.ranks import contradiction
from uncork.stats.sample import UnitKind
from uncork.stats.steady import Steadiness, find_steady_part
from uncork.store.query import ArmValues, RunReader
from uncork.store.run_documents import read_hosts
from uncork.store.system import read_system

CURVE_POINTS = 160
"""Points of a latency curve: enough for a chart, few enough for a page with a hundred curves."""


def build_result(folder: Path) -> RunResult:
    """Read a stored run and judge it; the report adds the sentences.

    Raises:
        StoreError: if its files are damaged.
    """
    reader = RunReader(folder)
    try:
        return _Assembly(reader).result()
    finally:
        reader.close()


class _Assembly:
    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        self.spec: Spec = run_source(reader).spec
        self.cells = {cell.name: cell for cell in cells(self.spec)}
        self.published, self.source = published_figures(reader.manifest.case)
        self.ledger = judged_ledger(reader, self.spec)
        self.metrics = [self._metric(row) for row in reader.metrics()]
        self.requests = tuple(request_counts(reader, self.spec, self.cells))
        self.values = _combined_values(self.metrics) | shares_of_success(self.requests, self.spec)
        self.engines = engine_facts(self.spec, reader)

    def result(self) -> RunResult:
        spec = self.spec
        judged = self.ledger.judgements()
        comparisons = tuple(self._in_order([*self._refused(), *(self._comparison(item) for item in judged)]))
        batches = tuple(self._batches())
        costs = tuple(self._record(Cost, row) for row in self.reader.costs())
        metrics = {name: facts.metric for name, facts in spec.workloads.items()}
        return RunResult(
            run=self._run(),
            answer="",
            reasons=(),
            correction=_correction(len(judged), spec.stop.confidence),
            confidence=spec.stop.confidence,
            practical=spec.stop.practical,
            precision=spec.stop.precision,
            variants=tuple(_variant(name, spec) for name in spec.variants),
            factors=tuple(
                FactorFacts(name, tuple(spec.levels(name)), _is_numeric(name, spec)) for name in spec.factors
            ),
            workloads=tuple(_workload(name, spec) for name in spec.workloads),
            comparisons=comparisons,
            noise=self._noise(),
            metrics=tuple(self.metrics),
            costs=costs,
            sizes=tuple(self._record(SizeFacts, row) for row in self.reader.relations()),
            plans=tuple(self._plans()),
            latencies=tuple(self._latencies()),
            crossovers=tuple(self._crossovers(judged)),
            disturbances=self.reader.disturbances(),
            environment=self.reader.environment(),
            source=self.source,
            warnings=(*self._warnings(), *clients_in_doubt(comparisons)),
            batches=batches,
            systems=tuple(self._systems()),
            figures=published_in_costs(
                self.reader.manifest.case, Measured(costs, batches, self.values, metrics, self.requests)
            ),
            engines=self.engines,
            evidence=evidence_facts(self.reader.folder),
            requests=self.requests,
            answers=tuple(answer_differences(self.reader, self.cells)),
            growth=growth_facts(spec, self.reader),
            data_checks=tuple(self._data_checks()),
            own_metrics=tuple(own_metric_facts(self.reader, spec, self.cells)),
            slice_checks=tuple(self._slice_checks()),
            cost_effects=tuple(
                cost_effects(
                    self.reader.trials(),
                    self.cells,
                    baseline=spec.baseline,
                    confidence=spec.stop.confidence,
                    kind="block" if self.reader.manifest.unit == "block" else "round",
                )
            ),
            hosts=tuple(host_facts(self.reader.folder, self.ledger, spec.stop.confidence)),
        )

    # ---- what was compared ----

    def _comparison(self, item: Judged) -> Comparison:
        effect = item.effect
        key = (item.cell.name, item.workload)
        baseline = self.spec.baseline
        ranks = self.ledger.ranks(item.cell, item.workload, item.variant)
        return build_from(
            Comparison,
            item.judgement,
            cell=item.cell.levels,
            workload=item.workload,
            variant=item.variant,
            rounds=0 if effect is None else effect.rounds,
            value=self.values.get((*key, item.variant)),
            baseline_value=self.values.get((*key, baseline)),
            warnings=(*item.judgement.warnings, *contradicting(effect, ranks), *self._overheads(item, key)),
            scopes=host_scopes(self.ledger, item),
            ranks=ranks,
            rounds_needed=self._rounds_needed(item),
            **effect_numbers(effect),
            **self._published(*key, item.variant),
        )

    def _rounds_needed(self, item: Judged) -> int | None:
        is_open = item.judgement.verdict is Verdict.NOT_ENOUGH_EVIDENCE
        if not is_open or self.ledger.has_hosts or not isinstance(item.effect, Effect):
            return None
        practical = self.spec.practical(item.workload)
        return rounds_to_decide(item.effect, practical, len(self.ledger.compared()))

    def _overheads(self, item: Judged, key: tuple[str, str]) -> tuple[str, ...]:
        metric = self.spec.workloads[item.workload].metric
        own, base = (self.values.get((*key, name)) for name in (item.variant, self.spec.baseline))
        return client_warnings(self.engines, (item.variant, self.spec.baseline), (own, base), metric)

    def _published(self, cell: str, workload: str, variant: str) -> dict[str, Any]:
        figures: Published = self.published
        value = figures.get((cell, workload, variant))
        baseline = figures.get((cell, workload, self.spec.baseline))
        ratio = value / baseline if value is not None and baseline else None
        return {"published_value": value, "published_ratio": ratio}

    def _refused(self) -> Iterator[Comparison]:
        for (cell, workload, variant), reason in self.ledger.refused.items():
            yield Comparison(
                cell=cell.levels,
                workload=workload,
                variant=variant,
                verdict=Verdict.SKIPPED if reason.startswith(SKIPPING) else Verdict.REFUSED,
                reason=reason,
                rounds=0,
                value=None,
                baseline_value=self.values.get((cell.name, workload, self.spec.baseline)),
                **effect_numbers(None),
                **self._published(cell.name, workload, variant),
            )

    def _in_order(self, comparisons: Sequence[Comparison]) -> list[Comparison]:
        workloads, variants, order = list(self.spec.workloads), list(self.spec.variants), list(self.cells)
        return sorted(
            comparisons,
            key=lambda item: (
                workloads.index(item.workload),
                order.index(Cell(item.cell).name),
                variants.index(item.variant),
            ),
        )

    def _noise(self) -> NoiseFloor:
        floor, pairs = self.ledger.noise()
        baseline = self.spec.baseline
        success = beside_itself(self.ledger.success_noise(), baseline, self.values)
        if floor is None and success:
            widest = max(abs(comparison.difference or 0.0) for comparison in success)
            told = f"the baseline's share of success differs from itself by at most {widest * 100:.2g} points"
            return NoiseFloor(None, told, 0, success)
        if floor is None:
            return NoiseFloor(None, "no complete block was measured, so the noise is unknown", 0, ())
        effects = beside_itself(zip(pairs, floor.effects, strict=True), baseline, self.values)
        known = floor.floor if math.isfinite(floor.floor) else None
        return NoiseFloor(known, floor.sentence, floor.false_alarms, (*effects, *success))

    def _slice_checks(self) -> Iterator[SliceCheckFacts]:
        for slice_check in self.ledger.slice_checks():
            numbers = effect_numbers(slice_check.ratio)
            yield build_from(
                SliceCheckFacts,
                slice_check,
                cell=slice_check.cell.levels,
                ratio=numbers["ratio"],
                low=numbers["low"],
                high=numbers["high"],
                disturbed=self.ledger.is_disturbed((slice_check.cell, slice_check.workload)),
            )

    def _crossovers(self, judged: Sequence[Judged]) -> Iterator[CrossoverPoint]:
        spec = self.spec
        for factor in spec.factors:
            if not _is_numeric(factor, spec) or len(spec.levels(factor)) < 2:
                continue
            others = [name for name in spec.factors if name != factor]
            choices = itertools.product(*([(name, level) for level in spec.levels(name)] for name in others))
            for fixed, workload in itertools.product(choices, spec.workloads):
                wanted = [
                    item
                    for item in judged
                    if item.workload == workload
                    and set(fixed) <= set(item.cell.levels)
                    and isinstance(item.effect, Effect)
                ]
                yield from self._crossovers_along(factor, fixed, workload, wanted)

    def _crossovers_along(
        self, factor: str, fixed: tuple[tuple[str, str], ...], workload: str, wanted: Sequence[Judged]
    ) -> Iterator[CrossoverPoint]:
        levels = []
        for name in sorted(self.spec.levels(factor), key=float):
            here = [item for item in wanted if item.cell.level(factor) == name]
            if here:
                levels.append(
                    Level(
                        float(name),
                        {item.variant: item.effect for item in here if isinstance(item.effect, Effect)},
                        {item.variant: item.judgement for item in here},
                    )
                )
        better = METRICS[self.spec.workloads[workload].metric]
        for found in crossovers(levels, baseline=self.spec.baseline, better=better):
            yield CrossoverPoint(
                factor=factor,
                fixed=fixed,
                workload=workload,
                below=found.from_variant,
                above=found.to_variant,
                low=found.low_level,
                high=found.high_level,
                estimate=found.estimate,
                supported=found.supported,
            )

    # ---- what explains it ----

    def _metric(self, row: ArmValues) -> ArmMetric:
        if self.spec.workloads[row.workload].metric == "success":
            row = row._replace(value=row.share, rounds=row.shares)
        return build_from(
            ArmMetric,
            row,
            cell=self.cells[row.cell].levels,
            by_round=tuple((entry["round"], entry["value"]) for entry in row.rounds or ()),
        )

    def _record(self, kind: type[Kind], row: Mapping[str, Any], **more: Any) -> Kind:
        """Return a stored row of a cell as a record."""
        return kind(**{**row, "cell": self.cells[row["cell"]].levels, **more})

    def _systems(self) -> Iterator[ArmSystem]:
        tables = read_system(self.reader.folder)
        for row in self.reader.samplings():
            use = system_use(tables, row.pop("samplings"))
            if use is not None:
                yield self._record(ArmSystem, row, use=use)

    def _batches(self) -> Iterator[BatchFacts]:
        for name, workload in self.spec.workloads.items():
            for cell in self.cells.values() if workload.batch is not None else ():
                for variant in self.spec.compared(name):
                    carried = batch_of(self.spec, cell, name, variant)
                    taken = next(found.batch for found in carried.statements if found.batch is not None)
                    yield build_from(
                        BatchFacts,
                        carried,
                        cell=cell.levels,
                        workload=name,
                        variant=variant,
                        strategy=str(self.spec.variants[variant].batching),
                        rows=taken.rows * taken.times,
                        chunk=taken.rows,
                        implicit=carried.commits == 1 and not carried.transaction,
                    )

    def _data_checks(self) -> Iterator[DataCheckFacts]:
        order = list(self.spec.variants)
        for row in sorted(self.reader.data_checks(), key=lambda row: order.index(row.variant)):
            title = self.spec.checks[row.name].title or row.name
            yield build_from(DataCheckFacts, row, cell=self.cells[row.cell].levels, title=title)

    def _plans(self) -> Iterator[PlanFacts]:
        rows = self.reader.plans()
        shapes = {
            (row["cell"], row["workload"], row["statement"]): row["shape"]
            for row in rows
            if row["variant"] == self.spec.baseline
        }
        for row in rows:
            expected = shapes.get((row["cell"], row["workload"], row["statement"]), "")
            if self.spec.engine(row["variant"]) != self.spec.engine(self.spec.baseline):
                expected = row["shape"]  # plans of two engines cannot be compared
            difference = "\n".join(
                difflib.unified_diff(
                    expected.splitlines(),
                    row["shape"].splitlines(),
                    self.spec.baseline,
                    row["variant"],
                    lineterm="",
                    n=99,
                )
            )
            yield self._record(PlanFacts, row, difference=difference, plan_hash=plan_hash(row["text"]))

    def _latencies(self) -> Iterator[LatencyCurve]:
        for row in self.reader.histograms():
            points = merge_histograms(row.histograms)
            step = max(1, len(points) // CURVE_POINTS)
            kept = [
                point for place, point in enumerate(points) if place % step == 0 or place == len(points) - 1
            ]
            yield build_from(LatencyCurve, row, cell=self.cells[row.cell].levels, points=tuple(kept))

    # ---- the run itself ----

    def _run(self) -> RunFacts:
        manifest, totals = self.reader.manifest, self.reader.totals()
        last = manifest.attempts[-1] if manifest.attempts else None
        nodes = sum(len(host.runs) for host in read_hosts(self.reader.folder) if host.waves)
        return build_from(
            RunFacts,
            manifest,
            elapsed_ns=sum(attempt.elapsed_ns for attempt in manifest.attempts),
            rounds=self.reader.last_round(),
            trials=totals["trials"],
            failed_trials=totals["failed"],
            stopped_because=last.reason if last else "still running, or killed",
            setup_ns=self.reader.setup_ns(),
            reproduce=f"uncork rerun {self.reader.manifest.id}" + (f" --hosts {nodes}" if nodes else ""),
        )

    def _baseline_rounds(self) -> Iterator[tuple[Rounds, bool]]:
        for arm in self.metrics:
            metric = self.spec.workloads[arm.workload].metric
            if arm.variant == self.spec.baseline and metric != "success":
                yield arm.by_round, METRICS[metric] == "higher"

    def _warnings(self) -> Iterator[str]:
        if self.reader.manifest.unit == "block":
            yield (
                "the server was not restarted between blocks: differences that come with one life of a "
                "server process (its memory layout) are not seen, and may hide in these effects"
            )
        others = self.reader.environment().get("machine", {}).get("other uncork runs at start")
        if others:
            yield f"{others} other uncork run(s) were measuring on this machine when this run started"
        for failure in self.reader.failures()[:5]:
            yield (
                f"{failure.trials} trial(s) of {failure.workload} with {failure.variant} at "
                f"{failure.cell} failed ({failure.outcome}): {failure.message or 'no message'}"
            )
        trend = None if self.ledger.has_hosts else rounds_warning(self._baseline_rounds())
        if trend is not None:
            yield trend
        elapsed = self.reader.manifest.attempts
        if self.reader.manifest.status != "complete" and elapsed and self.reader.totals()["trials"]:
            yield f"the run did not reach its own stopping rule: {elapsed[-1].reason}"


def _combined_values(metrics: Sequence[ArmMetric]) -> dict[tuple[str, str, str], float]:
    """Return each variant's geometric mean; the baseline's over both its arms."""
    logs: dict[tuple[str, str, str], list[float]] = {}
    for metric in metrics:
        if metric.value:
            key = (Cell(metric.cell).name, metric.workload, metric.variant)
            logs.setdefault(key, []).append(math.log(metric.value))
    return {key: math.exp(sum(values) / len(values)) for key, values in logs.items()}


def _correction(count: int, confidence: float) -> str:
    return (
        f'{count} comparison{"s" * (count != 1)} share one error rate: of the verdicts "faster" and '
        f'"slower", at most {100 - confidence * 100:g} % are expected to be false (e-BH over all '
        "comparisons); intervals are valid at any number of looks"
    )


def _variant(name: str, spec: Spec) -> VariantFacts:
    facts = spec.variants[name]
    settings = {key: str(value) for key, value in facts.settings.items()}
    values = dict(facts.values)
    return VariantFacts(
        name, facts.title or name, facts.baseline, values, settings, spec.engine(name), own_services(facts)
    )


def _is_numeric(name: str, spec: Spec) -> bool:
    levels = spec.factors[name]
    return isinstance(levels, list) and all(
        isinstance(level, int | float) and not isinstance(level, bool) for level in levels
    )


def _workload(name: str, spec: Spec) -> WorkloadFacts:
    facts = spec.workloads[name]
    stop = f"{facts.operations} operations" if facts.duration is None else format_duration(facts.duration)
    return build_from(
        WorkloadFacts,
        facts,
        name=name,
        title=facts.title or name,
        sql=facts.statements,
        better=METRICS[facts.metric],
        protocol=facts.protocol if facts.http is None else http_protocol(facts.http),
        stop=stop,
        requests=() if facts.http is None else tuple(f"{r.verb} {r.target}" for r in facts.http.requests),
        practical=spec.practical(name) if facts.metric == "success" or facts.practical else None,
        cache=spec.setup.cache,
    )


# ---- find a trend in the rounds of an experiment: a machine that warms up, data that grow ----


Rounds = Sequence[tuple[int, float | None]]
"""A metric by round, in order."""


def rounds_warning(arms: Iterable[tuple[Rounds, bool]]) -> str | None:
    """Return a warning if the baseline was not steady over the rounds; None if it was, or if it is unknown.

    `arms` are the baseline's arms in all cells and workloads, each with whether larger values are
    better. They are judged together, as the mean change of a round from each arm's own mean, so
    that one run has one test. Arms that miss a round do not count.
    """
    series = [
        [-math.log(value) if inverse else math.log(value) for _, value in arm if value]
        for arm, inverse in arms
        if all(value for _, value in arm)
    ]
    length = max((len(values) for values in series), default=0)
    whole = [[value - fmean(values) for value in values] for values in series if len(values) == length]
    means = [fmean(values) for values in zip(*whole, strict=True)]
    found = find_steady_part(means)
    return None if found.verdict in ("steady", "unknown") else _words(found, means)


def _words(found: Steadiness, means: Sequence[float]) -> str:
    rounds = len(means)
    if found.start is None:
        opening = f"the baseline kept changing over the {rounds} rounds"
    else:
        change = math.expm1(fmean(means[: found.start]) - fmean(means[found.start :])) * 100.0
        many = "round" if found.start == 1 else f"{found.start} rounds"
        word = "worse" if change > 0 else "better"
        size = f"{abs(change):.2g} % {word} than later"
        opening = f"in the first {many} of {rounds}, the baseline's metric was {size}"
    return (
        f"{opening}: the machine or the data were not steady. Effects compare within blocks, where "
        "this cancels if it affects all variants alike; the values themselves include it. Raise "
        "warmup_operations, or let the machine do the same work before the experiment"
    )


# ---- how times grow along a factor, from the trials of a stored run ----


Series = dict[int, dict[float, float]]
"""For each round, the mean time in nanoseconds by size."""


def growth_facts(spec: Spec, reader: RunReader) -> GrowthFacts | None:
    """Fit the mean times of operations along the factor that the experiment names, if it names one."""
    asked = spec.growth
    if asked is None:
        return None
    places = {cell.name: cell for cell in cells(spec)}
    series: dict[tuple[str, Levels, str], Series] = defaultdict(lambda: defaultdict(dict))
    for row in reader.times():
        cell = places[row["cell"]]
        fixed = tuple(pair for pair in cell.levels if pair[0] != asked.factor)
        size = float(dict(cell.levels)[asked.factor])
        series[row["workload"], fixed, row["variant"]][row["round"]][size] = row["mean_ns"]
    workloads, variants = list(spec.workloads), list(spec.variants)
    ordered = sorted(
        series.items(), key=lambda item: (workloads.index(item[0][0]), variants.index(item[0][2]))
    )
    lines = (_line(*place, found, float(asked.to), spec.stop.confidence) for place, found in ordered)
    return GrowthFacts(
        asked.factor, float(asked.to), spec.stop.confidence, tuple(line for line in lines if line is not None)
    )


def _line(
    workload: str, fixed: Levels, variant: str, series: Series, to: float, confidence: float
) -> GrowthLine | None:
    growth = fit_growth(list(series.values()), to, confidence)
    if growth is None:
        return None
    predicted = growth.predicted
    return build_from(
        GrowthLine,
        growth,
        fixed=fixed,
        workload=workload,
        variant=variant,
        times_ns=growth.times,
        expected_ns=None if predicted is None else predicted.value,
        low_ns=None if predicted is None else predicted.low,
        high_ns=None if predicted is None else predicted.high,
    )


# ---- what hosts show: the scopes of each effect, and hosts that are odd ----


def host_scopes(ledger: Ledger, item: Judged) -> HostScopes | None:
    """Return the effect of a comparison on these hosts, on others, and at other times; None for one host."""
    these = ledger.these_hosts(item.cell, item.workload, item.variant) if ledger.has_hosts else None
    if these is None:
        return None
    place = (item.cell, item.workload, item.variant)
    others, times = ledger.like_hosts(*place), ledger.other_times(*place)
    return HostScopes(
        _scope(these),
        None if others is None else _scope(others),
        None if times is None else _scope(times),
    )


def host_facts(folder: Path, ledger: Ledger, confidence: float) -> Iterator[HostFacts]:
    """Yield the hosts of a merged run; none for other runs.

    A host is odd if its baseline differs from itself: the e-value of one of its cells and workloads
    reaches the number of all such tests divided by the error rate (Bonferroni).

    Raises:
        StoreError: if the list of hosts is damaged.
    """
    hosts = read_hosts(folder)
    noise = {host.number: [effect for _, effect in ledger.host_noise(host.number)] for host in hosts}
    needed = sum(map(len, noise.values())) / (1.0 - confidence)
    for host in hosts:
        effects = noise[host.number]
        worst = max(effects, key=lambda effect: (effect.e_value, abs(math.log(effect.ratio))), default=None)
        yield build_from(
            HostFacts,
            host,
            rounds=len(host.rounds),
            itself=None if worst is None else _scope(worst),
            odd=worst is not None and worst.e_value >= needed,
            waves=len(set(host.waves)),
        )


def _scope(effect: Effect) -> ScopeEffect:
    bounded = effect.is_bounded
    return ScopeEffect(
        effect.rounds, effect.ratio, effect.low if bounded else None, effect.high if bounded else None
    )


# ---- how the costs of variants differ from the baseline's ----


def cost_effects(
    trials: Sequence[Mapping[str, Any]],
    cells: Mapping[str, Cell],
    *,
    baseline: str,
    confidence: float,
    kind: UnitKind,
) -> Iterator[CostEffect]:
    """Yield the effect of each variant on each cost, where both sides have it.

    Args:
        trials: the stored trials of a run.
        cells: the run's cells by name.
        baseline: the variant to compare with.
        confidence: of each interval on its own.
        kind: what counts as one independent observation, as for the effects on the metric.
    """
    places = sorted(trials, key=lambda row: (row["cell"], row["workload"]))
    for (cell, workload), group in itertools.groupby(places, key=lambda row: (row["cell"], row["workload"])):
        rows = list(group)
        for variant in dict.fromkeys(row["variant"] for row in rows if row["variant"] != baseline):
            for item in COSTS:
                found = cost_evidence(
                    item, rows, baseline=baseline, candidate=variant, confidence=confidence, kind=kind
                )
                place = (cells[cell].levels, workload, variant, item.name)
                if isinstance(found, Exact) and found.baseline:
                    ratio = found.candidate / found.baseline
                    yield CostEffect(*place, found.rounds, ratio=ratio, low=ratio, high=ratio, exact=True)
                elif isinstance(found, Effect):
                    bounded = math.isfinite(found.high)
                    yield CostEffect(
                        *(*place, found.rounds),
                        ratio=found.ratio,
                        low=found.low if bounded else None,
                        high=found.high if bounded else None,
                    )
                elif isinstance(found, ShareEffect):
                    bounded = math.isfinite(found.half_width)
                    yield CostEffect(
                        *(*place, found.rounds),
                        difference=found.difference,
                        difference_low=found.low if bounded else None,
                        difference_high=found.high if bounded else None,
                    )


# ---- effects as fields of a comparison ----


def effect_numbers(effect: AnyEffect | None) -> dict[str, Any]:
    """Return an effect as fields of a `Comparison`; None if there is none, and for infinite bounds."""
    found: dict[str, Any] = dict.fromkeys(("ratio", "low", "high", "std_dev", "e_value"))
    if effect is None:
        return found
    if isinstance(effect, ShareEffect):
        bounded = math.isfinite(effect.half_width)
        return found | {
            "std_dev": _finite(effect.std_dev),
            "e_value": _finite(effect.e_value),
            "difference": effect.difference,
            "difference_low": effect.low if bounded else None,
            "difference_high": effect.high if bounded else None,
        }
    numbers = {name: _finite(float(getattr(effect, name))) for name in found}
    return numbers | ({} if math.isfinite(effect.high) else {"low": None}) | {"agreeing": effect.agreeing}


def beside_itself(
    effects: Iterable[tuple[tuple[Cell, str], AnyEffect]],
    baseline: str,
    values: Mapping[tuple[str, str, str], float],
) -> tuple[Comparison, ...]:
    """Return the baseline's effects against itself, by cell and workload, as comparisons."""
    return tuple(
        Comparison(
            cell=cell.levels,
            workload=workload,
            variant=baseline,
            verdict=Verdict.NO_PRACTICAL_DIFFERENCE,
            reason="the baseline against itself",
            rounds=effect.rounds,
            value=values.get((cell.name, workload, baseline)),
            baseline_value=values.get((cell.name, workload, baseline)),
            warnings=effect.warnings,
            **effect_numbers(effect),
        )
        for (cell, workload), effect in effects
    )


def contradicting(effect: AnyEffect | None, ranks: RankEffect | None) -> tuple[str, ...]:
    """Return a warning if an effect contradicts its ranks; else nothing."""
    if ranks is None or not isinstance(effect, Effect):
        return ()
    if not contradiction(effect.ratio, effect.low, effect.high, ranks):
        return ()
    return (
        f"a few {effect.kind}s decide the effect: by ranks (Hodges-Lehmann) it is a factor of "
        f"{ranks.ratio:.3g}, {ranks.low:.3g} to {ranks.high:.3g}; look at the values by {effect.kind}",
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
