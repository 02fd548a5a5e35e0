"""The answer: the first sentence a reader sees, and the sentences that support it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from uncork.model.results.experiment import (
    Comparison,
    FactorFacts,
    NoiseFloor,
    RunResult,
    VariantFacts,
    WorkloadFacts,
)
from uncork.model.verdict import Direction, Verdict
from uncork.report.experiment.batches import atomicity_words
from uncork.report.experiment.data_checks import data_check_words
from uncork.report.experiment.evidence import evidence_words
from uncork.report.experiment.kernel import kernel_words
from uncork.report.experiment.requests import answer_words
from uncork.report.experiment.view import improvement
from uncork.report.words import (
    MEASURED,
    capitalised,
    cell_words,
    change_words,
    count_words,
    difference_words,
    figures_text,
    has_effect,
    interval_words,
    known_so_far,
    level_text,
    sentence,
    series_words,
    tally_words,
    verdict_word,
)

__all__ = ["answer_experiment"]

_MOST_VARIANTS = 6
"""Variants summarised one by one in the reasons; the verdict table has them all."""
_MOST_TEXTS = 3
"""Distinct reasons quoted for refusals and for skips."""


def answer_experiment(result: RunResult) -> RunResult:
    """Return the result with its answer and the reasons for it.

    Refused variants come first, for a wrong answer is never fast. The comparisons need not form a full
    matrix, and there may be none.
    """
    scene = _Scene(result.comparisons, result.variants, result.factors, result.workloads, result.practical)
    refused = scene.having(Verdict.REFUSED)
    measured = tuple(comparison for comparison in scene.comparisons if comparison.verdict in MEASURED)
    sentences = [_refusal(scene, refused)] if refused else []
    if not measured:
        sentences.append(
            "Nothing was measured, so there is no answer." if not refused else "Nothing else was measured."
        )
    elif len(measured) == 1:
        sentences.append(_one(scene, measured[0]))
    else:
        sentences.append(_many(scene, measured))
        sentences += _standing(measured)
    reasons = (
        *answer_words(result),
        # Stacks name the calls that the split of processor time only hints at.
        *(evidence_words(result) or kernel_words(result.costs)),
        *_reasons(scene, measured, result.noise),
        *data_check_words(result.data_checks, scene.baseline),
        atomicity_words(result.batches),
    )
    return replace(result, answer=" ".join(sentences), reasons=tuple(text for text in reasons if text))


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is being answered about, with the questions that the sentences ask of it."""

    comparisons: tuple[Comparison, ...]
    variants: tuple[VariantFacts, ...]
    factors: tuple[FactorFacts, ...]
    workloads: tuple[WorkloadFacts, ...]
    practical: float

    @property
    def baseline(self) -> str:
        return next((variant.name for variant in self.variants if variant.baseline), "the baseline")

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(variant.name for variant in self.variants if not variant.baseline)

    def having(self, verdict: Verdict, variant: str | None = None) -> tuple[Comparison, ...]:
        return tuple(
            comparison
            for comparison in self.comparisons
            if comparison.verdict is verdict and variant in (None, comparison.variant)
        )

    def so_far(self, direction: Direction) -> tuple[Comparison, ...]:
        """Return the comparisons without a verdict whose direction is known, and is this one."""
        return tuple(comparison for comparison in self.comparisons if known_so_far(comparison) == direction)

    def of(self, variant: str) -> tuple[Comparison, ...]:
        return tuple(comparison for comparison in self.comparisons if comparison.variant == variant)

    def wins(self, variant: str) -> list[Comparison]:
        """List where a variant is faster by an amount that matters; if nowhere, where it is faster at all."""
        faster = self.having(Verdict.FASTER, variant)
        return [c for c in faster if self.matters(c)] or list(faster)

    def workload(self, name: str) -> WorkloadFacts | None:
        return next((workload for workload in self.workloads if workload.name == name), None)

    def metric(self, comparison: Comparison) -> str:
        workload = self.workload(comparison.workload)
        return workload.metric if workload else "latency_mean"

    def gain(self, comparison: Comparison) -> float:
        workload = self.workload(comparison.workload)
        return improvement(comparison, workload.better if workload else "lower")

    def place(self, comparison: Comparison, known: frozenset[str] = frozenset()) -> str:
        """Say where a comparison stands, but for the dimensions that the reader knows already."""
        parts = []
        if len(self.workloads) > 1 and "workload" not in known:
            parts.append(f"on {comparison.workload}")
        cell = tuple(pair for pair in comparison.cell if pair[0] not in known)
        if cell:
            parts.append(f"at {cell_words(cell, self.factors)}")
        return " ".join(parts)

    def effect(self, comparison: Comparison) -> str:
        """Say an effect with its interval: ``46 % less time (interval 44 to 48 %)``."""
        if comparison.difference is not None:
            return difference_words(comparison)
        if comparison.ratio is None:
            return "no effect could be computed"
        metric = self.metric(comparison)
        return f"{change_words(comparison.ratio, metric)} ({interval_words(comparison, metric)})"

    def effect_at(self, comparison: Comparison, known: frozenset[str] = frozenset()) -> str:
        """Say an effect with its interval and its place, as `place` does."""
        place = self.place(comparison, known)
        text = self.effect(comparison)
        return f"{text[:-1]}, {place})" if place and text.endswith(")") else f"{text} {place}".strip()

    def matters(self, comparison: Comparison) -> bool:
        """Say whether the estimate lies outside the band of practical differences."""
        workload = self.workload(comparison.workload)
        practical = self.practical if workload is None or workload.practical is None else workload.practical
        if comparison.difference is not None:
            return abs(comparison.difference) > practical
        return comparison.ratio is None or abs(math.log(comparison.ratio)) > math.log1p(practical)


# ---- one comparison ----


def _one(scene: _Scene, comparison: Comparison) -> str:
    variant, baseline, place = comparison.variant, scene.baseline, scene.place(comparison)
    there = f" {place}" if place else ""
    effect = scene.effect(comparison)
    if comparison.verdict is Verdict.NO_PRACTICAL_DIFFERENCE:
        return (
            f"There is no practical difference between {variant} and {baseline}{there}: {effect}; "
            f"differences under {_share(scene.practical)} do not count."
        )
    known = known_so_far(comparison)
    if known is not None:
        than = _than([comparison], f"is {known} than")
        return f"{variant} {than} {baseline}{there} so far: {effect}; {_size_open(comparison)}."
    if comparison.verdict is Verdict.NOT_ENOUGH_EVIDENCE:
        return (
            f"There is not enough evidence to say whether {variant} is faster or slower than {baseline}"
            f"{there}: so far {effect}."
        ).replace("is faster or slower than", _than([comparison], "is faster or slower than"))
    small = "" if scene.matters(comparison) else f", less than the {_share(scene.practical)} that matters"
    than = _than([comparison], f"is {comparison.verdict.value} than")
    return f"{variant} {than} {baseline}{there}: {effect}{small}."


def _size_open(comparison: Comparison) -> str:
    return f"the size is not settled after {count_words(comparison.rounds, 'round')}"


_BETTER = {
    "is faster than": ("lets more requests succeed than", "does better than"),
    "is slower than": ("lets fewer requests succeed than", "does worse than"),
    "is slower": ("lets fewer requests succeed", "does worse"),
    "is faster or slower than": ("lets more or fewer requests succeed than", "does better or worse than"),
}


def _than(comparisons: Sequence[Comparison], words: str) -> str:
    """Say `words` as it fits what was compared: times, shares of success, or both."""
    shares = {comparison.difference is not None for comparison in comparisons}
    return words if shares <= {False} else _BETTER[words][shares != {True}]


# ---- many comparisons ----


def _many(scene: _Scene, measured: Sequence[Comparison]) -> str:
    faster, slower = scene.having(Verdict.FASTER), scene.having(Verdict.SLOWER)
    if faster:
        return _winner(scene, _ranked(scene)[0])
    if slower:
        return _losers(scene, slower)
    if scene.so_far("faster") or scene.so_far("slower"):
        return _leaning(scene, measured)
    baseline, others = scene.baseline, series_words(scene.others, "or")
    same = [c for c in measured if c.verdict is Verdict.NO_PRACTICAL_DIFFERENCE]
    total = count_words(len(measured), "comparison")
    if len(same) == len(measured):
        return (
            f"There is no practical difference between {baseline} and {others} in any of {total}: "
            f"no difference reaches {_share(scene.practical)}."
        )
    if not same:
        return (
            f"There is not enough evidence yet in any of {total} to say whether {others} is faster or slower "
            f"than {baseline}."
        )
    return (
        f"Neither faster nor slower than {baseline} has been shown for {others}: there is no practical "
        f"difference in {len(same)} of {total}, and not enough evidence in {len(measured) - len(same)}."
    )


def _standing(measured: Sequence[Comparison]) -> Iterable[str]:
    """Count what is decided, what has a known direction, and what is open, unless all is one of them."""
    known = sum(known_so_far(c) is not None for c in measured)
    unknown = sum(c.verdict is Verdict.NOT_ENOUGH_EVIDENCE for c in measured) - known
    decided = len(measured) - known - unknown
    total = count_words(len(measured), "comparison")
    if not (known or (unknown and any(c.verdict in (Verdict.FASTER, Verdict.SLOWER) for c in measured))):
        return
    parts = [f"{decided or 'none'} of {total} {'is' if decided == 1 else 'are'} decided"]
    if known:
        parts.append(f"the direction is known in {known}{' more' if decided else ''}")
    if unknown:
        parts.append(f"{unknown} {'is' if unknown == 1 else 'are'} open")
    yield sentence(capitalised(series_words(parts)))


def _leaning(scene: _Scene, measured: Sequence[Comparison]) -> str:
    """Say what is known where no comparison has a verdict of faster or slower, but some have a direction."""
    direction: Direction = "faster" if scene.so_far("faster") else "slower"
    found = scene.so_far(direction)
    best = max(found, key=lambda c: abs(scene.gain(c)))
    own = [c for c in found if c.variant == best.variant]
    total = [c for c in scene.of(best.variant) if c.verdict in MEASURED]
    where = f" in {len(own)} of {count_words(len(total), 'comparison')}" if len(total) > 1 else ""
    than, most = _than(own, f"is {direction} than"), "up to " if len(own) > 1 else ""
    return (
        f"{best.variant} {than} {scene.baseline} so far{where}: {most}{scene.effect_at(best)}; "
        f"{_size_open(best)}."
    )


def _winner(scene: _Scene, variant: str) -> str:
    own = [c for c in scene.of(variant) if c.verdict in MEASURED]
    wins = scene.wins(variant)
    region = _Region.around(scene, own, wins)
    inside = [c for c in own if region.holds(c)]
    best = max(wins, key=scene.gain)
    losses = [c for c in own if c.verdict is Verdict.SLOWER]
    rest = [c for c in own if c not in wins and c not in losses]
    pure = len(inside) == len(wins)
    than = _than(wins, "is faster than")
    text = f"{region.where()}{variant} {than} {scene.baseline}{region.on()}"
    if not pure:
        text += f" in {len(wins)} of {count_words(len(inside), 'comparison')}"
    elif len(inside) == len(own) > 1:
        text += f" in all {count_words(len(own), 'comparison')}"
    if len(wins) == 1 < len(own) and pure:
        text += f": {scene.effect(best)}"
    else:
        text += f": {'up to ' if len(wins) > 1 else ''}{scene.effect_at(best, region.fixed())}"
    if not any(scene.matters(c) for c in wins):
        text += f", less than the {_share(scene.practical)} that matters"
    if losses:
        worst = scene.effect_at(min(losses, key=scene.gain))
        text += f"; but it {_than(losses, 'is slower')} in {len(losses)} of {len(own)}: up to {worst}"
    return f"{text}{_rest(scene, rest, region.elsewhere(own) if pure and not losses else '')}."


def _rest(scene: _Scene, rest: Sequence[Comparison], elsewhere: str) -> str:
    """Say what there is in the comparisons that the sentence has not spoken of."""
    if not rest:
        return ""
    subject = elsewhere or (f"in the other {len(rest)}" if len(rest) > 1 else "in the other one")
    names: dict[tuple[Verdict, Direction | None], str] = {
        (Verdict.FASTER, None): f"a gain under {_share(scene.practical)}",
        (Verdict.NO_PRACTICAL_DIFFERENCE, None): Verdict.NO_PRACTICAL_DIFFERENCE.value,
        (Verdict.NOT_ENOUGH_EVIDENCE, "faster"): "a gain of unsettled size",
        (Verdict.NOT_ENOUGH_EVIDENCE, "slower"): "a loss of unsettled size",
        (Verdict.NOT_ENOUGH_EVIDENCE, None): Verdict.NOT_ENOUGH_EVIDENCE.value,
    }
    found = [(c.verdict, known_so_far(c)) for c in rest]
    counts = [(name, found.count(key)) for key, name in names.items()]
    present = [(name, count) for name, count in counts if count]
    if len(present) == 1:
        return f"; {subject} there is {present[0][0]}"
    return f"; {subject} there is {series_words(f'{name} in {count}' for name, count in present)}"


def _losers(scene: _Scene, slower: Sequence[Comparison]) -> str:
    names = [name for name in scene.others if any(c.variant == name for c in slower)]
    worst = min(slower, key=scene.gain)
    own = [c for c in scene.of(worst.variant) if c.verdict in MEASURED]
    lost = [c for c in own if c.verdict is Verdict.SLOWER]
    region = _Region.around(scene, own, lost)
    many = "" if len(own) == 1 else f" in {len(lost)} of {count_words(len(own), 'comparison')}"
    text = (
        f"Nothing {_than(own, 'is faster than')} {scene.baseline}: {region.where(lower=True)}{worst.variant} "
        f"{_than(lost, 'is slower')}"
        f"{region.on()}{many}, up to {scene.effect_at(worst)}"
    )
    if len(names) > 1:
        text += f"; {series_words(name for name in names if name != worst.variant)} also slower"
    return f"{text}{_rest(scene, [c for c in own if c not in lost], elsewhere='')}."


def _ranked(scene: _Scene) -> list[str]:
    """Order the variants, best first: those that win anywhere, by the sum of their clear gains and losses."""

    def merit(name: str) -> tuple[int, float]:
        own = [c for c in scene.of(name) if c.verdict in MEASURED]
        wins = [c for c in own if c.verdict is Verdict.FASTER]
        losses = [c for c in own if c.verdict is Verdict.SLOWER]
        clear = [scene.gain(c) for c in (*wins, *losses)]
        return (1 if wins else 0 if not losses else -1, sum(clear))

    return sorted(scene.others, key=merit, reverse=True)


# ---- which level decides ----


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A factor, or the choice of workload: something along which verdicts may split."""

    name: str
    levels: tuple[str, ...]
    numeric: bool
    read: Callable[[Comparison], str | None]


def _dimensions(scene: _Scene) -> list[_Dimension]:
    def reader(factor: str) -> Callable[[Comparison], str | None]:
        return lambda comparison: dict(comparison.cell).get(factor)

    factors = sorted(scene.factors, key=lambda factor: factor.numeric)
    found = [_Dimension(f.name, f.levels, f.numeric, reader(f.name)) for f in factors]
    names = tuple(workload.name for workload in scene.workloads)
    found.append(_Dimension("workload", names, False, lambda comparison: comparison.workload))
    return found


@dataclass(frozen=True, slots=True)
class _Region:
    """The smallest box of levels around some comparisons: the dimensions that it cuts, the levels kept."""

    cuts: tuple[tuple[_Dimension, tuple[str, ...]], ...]

    @classmethod
    def around(cls, scene: _Scene, among: Iterable[Comparison], chosen: Sequence[Comparison]) -> _Region:
        everything = list(among)
        cuts = []
        for dimension in _dimensions(scene):
            present = {dimension.read(c) for c in everything}
            wanted = {dimension.read(c) for c in chosen}
            if wanted < present:
                cuts.append((dimension, tuple(level for level in dimension.levels if level in wanted)))
        return cls(tuple(cuts))

    def holds(self, comparison: Comparison) -> bool:
        return all(dimension.read(comparison) in levels for dimension, levels in self.cuts)

    def fixed(self) -> frozenset[str]:
        """Name the dimensions of which one level is left."""
        return frozenset(dimension.name for dimension, levels in self.cuts if len(levels) == 1)

    def where(self, *, lower: bool = False) -> str:
        """Open a sentence: ``Where index is none and rows is 10 or more, ``; empty if it cuts no factor."""
        parts = [
            levels_words(d.name, d.levels, kept, d.numeric) for d, kept in self.cuts if d.name != "workload"
        ]
        return f"{'where' if lower else 'Where'} {series_words(parts)}, " if parts else ""

    def elsewhere(self, among: Sequence[Comparison]) -> str:
        """Name what lies outside: ``where index is btree,`` if one cut says it all, else ``elsewhere``."""
        if len(self.cuts) == 1:
            dimension, kept = self.cuts[0]
            present = {dimension.read(comparison) for comparison in among}
            left = tuple(level for level in dimension.levels if level in present and level not in kept)
            if dimension.name == "workload":
                return f"on {series_words(left)}"
            return f"where {levels_words(dimension.name, dimension.levels, left, dimension.numeric)},"
        return "elsewhere"

    def on(self) -> str:
        """Name the workloads: `` on select and delete``; empty if it holds them all."""
        kept = [levels for dimension, levels in self.cuts if dimension.name == "workload"]
        return f" on {series_words(kept[0])}" if kept else ""


def levels_words(name: str, levels: Sequence[str], kept: Sequence[str], numeric: bool) -> str:
    """Say which levels of a factor: ``index is none``, ``rows is 10 000 or more``."""
    texts = [level_text(level, numeric) for level in kept]
    if numeric and len(kept) > 1:
        start = levels.index(kept[0])
        if tuple(levels[start : start + len(kept)]) == tuple(kept):
            if start + len(kept) == len(levels):
                return f"{name} is {texts[0]} or more"
            return f"{name} is {texts[-1]} or less" if start == 0 else f"{name} is {texts[0]} to {texts[-1]}"
    return f"{name} is {series_words(texts, 'or')}"


# ---- reasons ----


def _reasons(scene: _Scene, measured: Sequence[Comparison], noise: NoiseFloor) -> Iterable[str]:
    ranked = _ranked(scene)
    if len(measured) > 1:
        summaries = [text for name in ranked[:_MOST_VARIANTS] if (text := _summary(scene, name))]
        yield from summaries
    if measured and ranked:
        yield from _decides(scene, ranked[0])
        yield from _not_told_apart(scene, ranked[0])
    yield from _doubtful(scene, noise)
    yield from _quoted(scene.having(Verdict.REFUSED), "refused")
    yield from _quoted(scene.having(Verdict.SKIPPED), "skipped")


def _summary(scene: _Scene, name: str) -> str | None:
    own = scene.of(name)
    effects = [c for c in own if c.verdict in MEASURED and has_effect(c)]
    if not effects:
        return None
    quicker = [c for c in scene.having(Verdict.FASTER, name) if c.difference is None]
    small = sum(not scene.matters(c) for c in quicker)
    faster = f"{Verdict.FASTER.value} in {len(quicker)}"
    under = f"{faster} ({small} of them by less than {_share(scene.practical)})" if small else faster
    tally = tally_words(own).replace(faster, under, 1)
    text = f"{name} in {count_words(len(own), 'comparison')}: {tally}."
    if len(own) == 1:
        least = f" by less than {_share(scene.practical)}" if small else ""
        text = f"{name}: {verdict_word(own[0])}{least}."
    best, worst = max(effects, key=scene.gain), min(effects, key=scene.gain)
    if best is worst:
        return f"{text} {_figures(scene, best)}."
    return f"{text} Best {_figures(scene, best)}; worst {_figures(scene, worst)}."


def _figures(scene: _Scene, comparison: Comparison) -> str:
    return f"{figures_text(comparison)} {scene.place(comparison)}".strip()


def _decides(scene: _Scene, name: str) -> Iterable[str]:
    """Name the factor along which the best variant's verdicts split most sharply, if one does."""
    own = [c for c in scene.of(name) if c.verdict in MEASURED]
    wins = scene.wins(name)
    wanted = wins or list(scene.having(Verdict.SLOWER, name))
    word = Verdict.FASTER.value if wins else Verdict.SLOWER.value
    if wins and scene.matters(wins[0]):
        word += f" by {_share(scene.practical)} or more"
    found = []
    for dimension in _dimensions(scene):
        shares = []
        for level in dimension.levels:
            there = [c for c in own if dimension.read(c) == level]
            if there:
                shares.append((sum(c in wanted for c in there), len(there), level))
        if len(shares) > 1:
            portions = [hits / count for hits, count, _ in shares]
            found.append((max(portions) - min(portions), -len(shares), dimension, shares))
    if not found:
        return
    contrast, _, dimension, shares = max(found, key=lambda item: item[:2])
    if contrast < 0.5 or (max(count for _, count, _ in shares) == 1):
        return
    parts = [f"{hits} of {count} at {level_text(level, dimension.numeric)}" for hits, count, level in shares]
    yield f"What decides is {dimension.name}: {name} is {word} in {series_words(parts)}."


def _not_told_apart(scene: _Scene, name: str) -> Iterable[str]:
    """Say which other variants the best one is not clearly better than, where it is best."""
    wins = scene.having(Verdict.FASTER, name)
    if not wins:
        return
    best = max(wins, key=scene.gain)
    rivals = [
        c.variant
        for c in scene.having(Verdict.FASTER)
        if (c.cell, c.workload) == (best.cell, best.workload) and c.variant != name and _overlap(c, best)
    ]
    if rivals:
        place = scene.place(best)
        there = f" {place}" if place else ""
        yield (
            f"Each variant is compared with {scene.baseline} only; the intervals of {name} and "
            f"{series_words(rivals)} overlap{there}, so this run does not say which of them is faster."
        )


def _overlap(one: Comparison, other: Comparison) -> bool:
    (low, high), (other_low, other_high) = _ends(one), _ends(other)
    if low is None or high is None or other_low is None or other_high is None:
        return True
    return low <= other_high and other_low <= high


def _ends(comparison: Comparison) -> tuple[float | None, float | None]:
    if comparison.difference is not None:
        return comparison.difference_low, comparison.difference_high
    return comparison.low, comparison.high


def _doubtful(scene: _Scene, noise: NoiseFloor) -> Iterable[str]:
    if noise.sentence:
        yield sentence(noise.sentence)
    clear = [c for c in (*scene.having(Verdict.FASTER), *scene.having(Verdict.SLOWER)) if c.ratio is not None]
    floor = noise.floor
    if floor is not None:
        under = sum(abs(math.log(c.ratio)) < math.log1p(floor) for c in clear if c.ratio)
        if under:
            yield (
                f"Beware: {count_words(under, 'difference')} called faster or slower "
                f"{'is' if under == 1 else 'are'} smaller than that noise floor."
            )
    leaning = [*scene.so_far("faster"), *scene.so_far("slower")]
    if leaning:
        yield (
            f"The direction is known but not the size in {count_words(len(leaning), 'comparison')}: "
            "more rounds settle it."
        )
    unsure = [c for c in scene.having(Verdict.NOT_ENOUGH_EVIDENCE) if known_so_far(c) is None]
    if unsure:
        yield (
            f"Not enough evidence in {count_words(len(unsure), 'comparison')}: the interval there still "
            f"holds both a practical difference and none. More rounds narrow it."
        )


def _quoted(comparisons: Sequence[Comparison], word: str) -> Iterable[str]:
    if not comparisons:
        return
    reasons = list(dict.fromkeys(f"{c.variant}: {c.reason.rstrip('.')}" for c in comparisons if c.reason))
    more = f"; and {len(reasons) - _MOST_TEXTS} more" if len(reasons) > _MOST_TEXTS else ""
    detail = f" ({'; '.join(reasons[:_MOST_TEXTS])}{more})" if reasons else ""
    yield f"{count_words(len(comparisons), 'comparison')} {word}{detail}."


def _refusal(scene: _Scene, refused: Sequence[Comparison]) -> str:
    names = [name for name in scene.others if any(c.variant == name for c in refused)]
    parts = []
    for name in names:
        own, wrong = scene.of(name), [c for c in refused if c.variant == name]
        if len(wrong) == 1:
            parts.append(f"{name} is refused {scene.place(wrong[0])}".rstrip())
        else:
            share = f"in {len(wrong)} of {count_words(len(own), 'comparison')}"
            parts.append(f"{name} is refused{_Region.around(scene, own, wrong).on()} {share}")
    return f"{'; '.join(parts)}: the answer differs from {scene.baseline}'s."


def _share(practical: float) -> str:
    return f"{practical * 100:.3g} %"
