"""Which levels of the factors some comparisons have in common, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from uncork.model.results.experiment import Comparison, FactorFacts, WorkloadFacts
from uncork.report.words import level_text, series_words


@dataclass(frozen=True, slots=True)
class Dimension:
    """A factor, or the choice of workload: something that may decide the verdict."""

    name: str
    levels: tuple[str, ...]
    numeric: bool
    read: Callable[[Comparison], str | None]


def dimensions(factors: Sequence[FactorFacts], workloads: Sequence[WorkloadFacts]) -> tuple[Dimension, ...]:
    """Return the factors as dimensions, numeric ones last, then the choice of workload."""

    def reader(factor: str) -> Callable[[Comparison], str | None]:
        return lambda comparison: dict(comparison.cell).get(factor)

    ordered = sorted(factors, key=lambda factor: factor.numeric)
    found = [Dimension(f.name, f.levels, f.numeric, reader(f.name)) for f in ordered]
    names = tuple(workload.name for workload in workloads)
    found.append(Dimension("workload", names, False, lambda comparison: comparison.workload))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Region:
    """The smallest box of levels around some comparisons.

    `cuts` holds each dimension that the box narrows, with the levels it keeps.
    """

    cuts: tuple[tuple[Dimension, tuple[str, ...]], ...]

    @classmethod
    def around(
        cls, dimensions: Iterable[Dimension], among: Iterable[Comparison], chosen: Sequence[Comparison]
    ) -> Region:
        """Return the smallest box that holds all `chosen` comparisons, which are `among` the others."""
        everything = list(among)
        cuts = []
        for dimension in dimensions:
            present = {dimension.read(c) for c in everything}
            wanted = {dimension.read(c) for c in chosen}
            if wanted < present:
                cuts.append((dimension, tuple(level for level in dimension.levels if level in wanted)))
        return cls(tuple(cuts))

    def holds(self, comparison: Comparison) -> bool:
        """Return whether a comparison lies inside the box."""
        return all(dimension.read(comparison) in levels for dimension, levels in self.cuts)

    def fixed(self) -> frozenset[str]:
        """Return the dimensions that are narrowed to one level."""
        return frozenset(dimension.name for dimension, levels in self.cuts if len(levels) == 1)

    def where(self) -> str:
        """Return the levels as a clause: `` where index is none and rows is 10 or more``; or nothing."""
        parts = [
            levels_words(d.name, d.levels, kept, d.numeric) for d, kept in self.cuts if d.name != "workload"
        ]
        return f" where {series_words(parts)}" if parts else ""

    def elsewhere(self, among: Sequence[Comparison]) -> str:
        """Return what lies outside: ``where index is btree,`` if one dimension is cut, else ``elsewhere``."""
        if len(self.cuts) == 1:
            dimension, kept = self.cuts[0]
            present = {dimension.read(comparison) for comparison in among}
            left = tuple(level for level in dimension.levels if level in present and level not in kept)
            if dimension.name == "workload":
                return f"on {series_words(left)}"
            return f"where {levels_words(dimension.name, dimension.levels, left, dimension.numeric)},"
        return "elsewhere"

    def on(self) -> str:
        """Return the workloads: `` on select and delete``; empty if all are inside."""
        kept = [levels for dimension, levels in self.cuts if dimension.name == "workload"]
        return f" on {series_words(kept[0])}" if kept else ""


def levels_words(name: str, levels: Sequence[str], kept: Sequence[str], numeric: bool) -> str:
    """Return levels of a factor in words: ``index is none``, ``rows is 10 000 or more``."""
    texts = [level_text(level, numeric) for level in kept]
    if numeric and len(kept) > 1:
        start = levels.index(kept[0])
        if tuple(levels[start : start + len(kept)]) == tuple(kept):
            if start + len(kept) == len(levels):
                return f"{name} is {texts[0]} or more"
            return f"{name} is {texts[-1]} or less" if start == 0 else f"{name} is {texts[0]} to {texts[-1]}"
    return f"{name} is {series_words(texts, 'or')}"
