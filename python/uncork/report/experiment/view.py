"""A result with the lookups that the section builders share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from uncork.model.results.experiment import Comparison, FactorFacts, Levels, RunResult, WorkloadFacts
from uncork.model.units import format_count, format_duration
from uncork.model.verdict import Verdict
from uncork.report.blocks import Value
from uncork.report.words import (
    TONES,
    cell_words,
    exact_share_text,
    figures_text,
    has_effect,
    known_so_far,
    published_text,
    verdict_text,
    verdict_word,
)

Place = tuple[Levels, str]
"""A cell and a workload, in which variants are compared."""


@dataclass(frozen=True)
class View:
    """One result, with lookups for the section builders."""

    result: RunResult

    @cached_property
    def variants(self) -> tuple[str, ...]:
        """Return the names of all variants, in the order of the experiment."""
        return tuple(variant.name for variant in self.result.variants)

    @cached_property
    def baseline(self) -> str:
        """Return the name of the baseline."""
        return next((variant.name for variant in self.result.variants if variant.baseline), "the baseline")

    @cached_property
    def others(self) -> tuple[str, ...]:
        """Return the names of the variants that are compared with the baseline."""
        return tuple(name for name in self.variants if name != self.baseline)

    @cached_property
    def comparisons(self) -> dict[tuple[Levels, str, str], Comparison]:
        """Return the comparisons by cell, workload and variant."""
        return {(c.cell, c.workload, c.variant): c for c in self.result.comparisons}

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Return the places with comparisons, ordered by workload, then by the levels of the factors."""
        found = list(dict.fromkeys((c.cell, c.workload) for c in self.result.comparisons))
        works = [workload.name for workload in self.result.workloads]
        return tuple(sorted(found, key=lambda place: (_rank(works, place[1]), self.cell_order(place[0]))))

    @cached_property
    def cells(self) -> tuple[Levels, ...]:
        """Return the cells with comparisons, ordered by the levels of the factors."""
        return tuple(sorted({cell for cell, _ in self.places}, key=self.cell_order))

    @cached_property
    def by_importance(self) -> tuple[Place, ...]:
        """Return the places, the greatest clear effect first."""
        return tuple(sorted(self.places, key=lambda place: -self.weight(place)))

    def weight(self, place: Place) -> float:
        """Return the greatest clear effect at a place; an unclear effect counts a hundredth of its size."""
        sizes = [0.0]
        for name in self.others:
            found = self.comparisons.get((*place, name))
            if found is not None:
                clear = found.verdict in (Verdict.FASTER, Verdict.SLOWER) or found.direction is not None
                sizes.append(abs(improvement(found, self.better(place[1]))) * (1.0 if clear else 0.01))
        return max(sizes)

    def cell_order(self, cell: Levels) -> tuple[int, ...]:
        """Return a sort key: the position of each level among its factor's levels, slowest factor last."""
        levels = dict(cell)
        return tuple(_rank(list(factor.levels), levels.get(factor.name, "")) for factor in self.table_factors)

    def order(self, cell: Levels, variant: str) -> tuple[tuple[int, ...], int]:
        """Return a sort key of measurements: by cell, then in the order of the variants."""
        return self.cell_order(cell), _rank(list(self.variants), variant)

    @property
    def factors(self) -> tuple[FactorFacts, ...]:
        """Return the factors of the experiment."""
        return self.result.factors

    @cached_property
    def table_factors(self) -> tuple[FactorFacts, ...]:
        """Return the factors in column order: numeric ones last, because they change fastest."""
        return tuple(sorted(self.factors, key=lambda factor: factor.numeric))

    @cached_property
    def workloads(self) -> tuple[str, ...]:
        """Return the names of the compared workloads, the one with the greatest effect first."""
        names = list(dict.fromkeys(workload for _, workload in self.places))
        heaviest = {name: max(self.weight(p) for p in self.places if p[1] == name) for name in names}
        return tuple(sorted(names, key=lambda name: -heaviest[name]))

    def workload(self, name: str) -> WorkloadFacts | None:
        """Return the facts of a workload, or None."""
        return next((workload for workload in self.result.workloads if workload.name == name), None)

    def metric(self, workload: str) -> str:
        """Return the metric by which a workload is compared."""
        facts = self.workload(workload)
        return facts.metric if facts else "latency_mean"

    def better(self, workload: str) -> str:
        """Return which direction of a workload's metric is better: ``lower`` or ``higher``."""
        facts = self.workload(workload)
        return facts.better if facts else "lower"

    def cell(self, cell: Levels) -> str:
        """Return the name of a cell."""
        return cell_words(cell, self.factors)

    def place(self, place: Place) -> str:
        """Return the name of a place: ``select, rows 100 000, index none``."""
        return f"{place[1]}, {self.cell(place[0])}" if place[0] else place[1]

    def value(self, number: float | None, workload: str) -> str:
        """Format a value of a workload's metric in its unit."""
        if number is None:
            return ""
        if self.metric(workload) == "success":
            return exact_share_text(number)
        return (
            f"{format_count(round(number))}/s"
            if self.metric(workload) == "throughput"
            else format_duration(number)
        )

    def effect(self, comparison: Comparison | None) -> Value:
        """Return a comparison as a table cell: effect and interval, with the verdict below."""
        if comparison is None:
            return Value("", tone="muted")
        tone = TONES[comparison.verdict]
        words = verdict_text(comparison)
        published = published_text(comparison)
        more = f"published {published}" if published else ""
        if not has_effect(comparison):
            return Value(words, note=comparison.reason, more=more, tone=tone)
        return Value(figures_text(comparison), note=words, more=more, tone=tone)

    def counts(self, comparisons: Iterable[Comparison]) -> tuple[tuple[Verdict, str, int], ...]:
        """Count the verdicts by their words, leaving out verdicts that do not occur."""
        ordered = sorted(comparisons, key=lambda comparison: known_so_far(comparison) is None)
        found = [(comparison.verdict, verdict_word(comparison)) for comparison in ordered]
        present = [
            fromkey for verdict in Verdict for fromkey in dict.fromkeys(found) if fromkey[0] is verdict
        ]
        return tuple((*one, found.count(one)) for one in present)


def _rank(order: list[str], item: str) -> int:
    return order.index(item) if item in order else len(order)


def improvement(comparison: Comparison, better: str) -> float:
    """Return how much better the variant is, as a logarithm: above 0 is better; 0 without an effect.

    Of shares of success it is their difference: near the whole, that is what the logarithm of their ratio is.
    """
    if comparison.difference is not None:
        return comparison.difference
    if comparison.ratio is None or comparison.ratio <= 0:
        return 0.0
    return -math.log(comparison.ratio) if better == "lower" else math.log(comparison.ratio)
