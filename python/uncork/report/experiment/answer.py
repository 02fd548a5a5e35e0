"""The answer of an experiment: the first sentences of its report, and the reasons for them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from uncork.model.results.experiment import (
    Comparison,
    Cost,
    FactorFacts,
    NoiseFloor,
    RunResult,
    WorkloadFacts,
)
from uncork.model.units import count_words, format_duration, series_words
from uncork.model.verdict import Direction, Verdict
from uncork.report.experiment.batches import atomicity_words
from uncork.report.experiment.conduct import host_words
from uncork.report.experiment.explanation import evidence_words
from uncork.report.experiment.requests import answer_words, data_check_words
from uncork.report.experiment.view import View, improvement
from uncork.report.headline import capital, fitting, join_sentences
from uncork.report.words import (
    MEASURED,
    capitalised,
    cell_words,
    effect_text,
    figures_text,
    has_effect,
    known_so_far,
    level_text,
    points_text,
    ratio_span,
    sentence,
    tally_words,
    times_number,
    verdict_word,
)

_MOST_VARIANTS = 6
"""Variants summarised in the reasons; the verdict table lists all of them."""
_MOST_TEXTS = 3
"""Distinct reasons quoted for refusals, and for skips."""


def answer_experiment(result: RunResult) -> RunResult:
    """Return the result with its answer and reasons; refusals first: a wrong answer is never fast."""
    scene = _Scene(result)
    refused = scene.having(Verdict.REFUSED)
    measured = tuple(comparison for comparison in result.comparisons if comparison.verdict in MEASURED)
    sentences = [_refusal(scene, refused)] if refused else []
    if not measured:
        sentences.append(
            "Nothing was measured, so there is no answer." if not refused else "Nothing else was measured."
        )
    elif len(measured) == 1:
        sentences.append(_one(scene, measured[0]))
    else:
        sentences += [_many(scene, measured), *_standing(measured)]
    reasons = (
        *answer_words(result),
        *host_words(result),
        *_reasons(scene, measured, result.noise),
        # Stacks name the calls that the split of processor time only hints at.
        *(evidence_words(result) or kernel_words(result.costs, result.factors)),
        *data_check_words(result.data_checks, scene.baseline),
        atomicity_words(result.batches),
    )
    return replace(result, answer=" ".join(sentences), reasons=tuple(text for text in reasons if text))


class _Scene(View):
    """A result with the lookups that the sentences of its answer need."""

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        return dimensions(self.factors, self.result.workloads)

    def having(self, verdict: Verdict, variant: str | None = None) -> tuple[Comparison, ...]:
        found = (comparison for comparison in self.result.comparisons if comparison.verdict is verdict)
        return tuple(comparison for comparison in found if variant in (None, comparison.variant))

    def so_far(self, direction: Direction) -> tuple[Comparison, ...]:
        """Return the comparisons without a verdict that are known to have this direction."""
        return tuple(c for c in self.result.comparisons if known_so_far(c) == direction)

    def of(self, variant: str) -> tuple[Comparison, ...]:
        return tuple(comparison for comparison in self.result.comparisons if comparison.variant == variant)

    def wins(self, variant: str) -> list[Comparison]:
        """Return the comparisons a variant wins by an amount that matters; if there are none, all it wins."""
        faster = self.having(Verdict.FASTER, variant)
        return [c for c in faster if self.matters(c)] or list(faster)

    def gain(self, comparison: Comparison) -> float:
        return improvement(comparison, self.better(comparison.workload))

    def where(self, comparison: Comparison, known: frozenset[str] = frozenset()) -> str:
        """Return the workload and cell of a comparison in words, without the dimensions in `known`."""
        several = len(self.result.workloads) > 1 and "workload" not in known
        cell = tuple(pair for pair in comparison.cell if pair[0] not in known)
        parts = (f"on {comparison.workload}" if several else "", f"at {self.cell(cell)}" if cell else "")
        return " ".join(filter(None, parts))

    def detail(self, comparison: Comparison, known: frozenset[str] = frozenset()) -> str:
        """Return metric, place without `known` dimensions, and interval of an effect, in parentheses."""
        return f"({'; '.join(filter(None, self._detail(comparison, known)))})"

    def _detail(self, comparison: Comparison, known: frozenset[str]) -> tuple[str, str]:
        metric = self.metric(comparison.workload)
        what = " ".join(filter(None, (_metric_noun(metric), self.where(comparison, known))))
        return what, interval_words(comparison, metric, self.result.confidence)

    def words(self, comparison: Comparison, chosen: Sequence[Comparison]) -> tuple[str, str]:
        """Return the claim of a comparison, as the largest effect among those `chosen`: see `claim_words`."""
        return claim_words(comparison, self.metric(comparison.workload), "up to " if len(chosen) > 1 else "")

    def claim(
        self,
        chosen: Sequence[Comparison],
        best: Comparison,
        *,
        many: str = "",
        region: str = "",
        known: frozenset[str] = frozenset(),
    ) -> str:
        """Return what `best` shows of its variant, as the largest effect among those `chosen`, in sentences.

        ``uuid is up to 46 % faster than char on select (mean time; 95 % interval: 44 % to 48 %).``: how
        `many` comparisons show it and in which `region` follow the baseline's name, and the place leaves out
        the dimensions in `known`. A second sentence takes over what makes the first one too long.
        """
        what, interval = self._detail(best, known)
        effect = "largest effect" if len(chosen) > 1 else "effect"
        phrase, joint = self.words(best, chosen)
        claim = f"{best.variant} {phrase} {joint} {self.baseline}"
        does = f"{best.variant} does {'better' if self.gain(best) > 0 else 'worse'} than {self.baseline}"
        mixed = len({comparison.difference is None for comparison in chosen}) > 1

        def candidate(after: str, figures: str, *rest: str) -> tuple[str, str]:
            text = f"{does}{after}: it {phrase}" if mixed else f"{claim}{after}"
            return f"{text}{f' ({figures})' if figures else ''}", join_sentences(rest)

        holds = f"this holds{many}" if many else ""
        figures = "; ".join(filter(None, (what, interval)))
        noted, all_noted = f"the {effect} is {what}" if what else "", f"the {effect}: {figures}"
        return fitting(
            (
                candidate(many + region, figures),
                candidate(many + region, interval, capital(noted)),
                candidate(region, interval, capital(holds), capital(noted)),
                candidate(region, "", capital(all_noted), capital(holds)),
                candidate("", interval, capital(f"this holds{many}{region}"), capital(noted)),
            )
        )

    def matters(self, comparison: Comparison) -> bool:
        """Return whether the estimated effect is large enough to matter in practice."""
        workload, practical = self.workload(comparison.workload), self.result.practical
        if workload is not None and workload.practical is not None:
            practical = workload.practical
        if comparison.difference is not None:
            return abs(comparison.difference) > practical
        return comparison.ratio is None or abs(math.log(comparison.ratio)) > math.log1p(practical)


def _one(scene: _Scene, comparison: Comparison) -> str:
    variant, baseline, place = comparison.variant, scene.baseline, scene.where(comparison)
    there = f" {place}" if place else ""
    known = frozenset({"workload", *(name for name, _ in comparison.cell)})
    phrase = scene.words(comparison, ())[0]
    detail = scene.detail(comparison, known)
    if comparison.verdict is Verdict.NO_PRACTICAL_DIFFERENCE:
        return (
            f"There is no practical difference between {variant} and {baseline}{there}. {variant} {phrase} "
            f"{detail}, and differences under {_share(scene.result.practical)} do not matter."
        )
    if known_so_far(comparison) is not None:
        claim = scene.claim([comparison], comparison, region=f"{there} so far", known=known)
        return f"{claim} {_size_open(comparison)}"
    if comparison.verdict is Verdict.NOT_ENOUGH_EVIDENCE:
        than = (
            "is faster or slower than"
            if comparison.difference is None
            else "lets more or fewer requests succeed than"
        )
        return (
            f"There is not enough evidence to say whether {variant} {than} {baseline}{there}. So far it "
            f"{phrase}{_agreeing(comparison)} {detail}."
        )
    small = "" if scene.matters(comparison) else f" {_immaterial(scene)}"
    return f"{scene.claim([comparison], comparison, region=there, known=known)}{small}"


def _agreeing(comparison: Comparison) -> str:
    """Return in how many rounds the variant was on the estimate's side; empty with a single round."""
    if comparison.agreeing is None or comparison.rounds < 2:
        return ""
    return f" in {comparison.agreeing} of {count_words(comparison.rounds, 'round')}"


def _immaterial(scene: _Scene) -> str:
    return f"This is less than the {_share(scene.result.practical)} that matters."


def _size_open(comparison: Comparison) -> str:
    return f"The size is not settled after {count_words(comparison.rounds, 'round')}."


def _faster_than(comparisons: Sequence[Comparison]) -> str:
    shares = {comparison.difference is not None for comparison in comparisons}
    if shares <= {False}:
        return "is faster than"
    return "lets more requests succeed than" if shares == {True} else "does better than"


def _many(scene: _Scene, measured: Sequence[Comparison]) -> str:
    faster, slower = scene.having(Verdict.FASTER), scene.having(Verdict.SLOWER)
    if faster:
        return _winner(scene, _ranked(scene)[0])
    if slower:
        return _losers(scene, slower)
    if scene.so_far("faster") or scene.so_far("slower"):
        return _leaning(scene)
    baseline, others = scene.baseline, series_words(scene.others, "or")
    same = [c for c in measured if c.verdict is Verdict.NO_PRACTICAL_DIFFERENCE]
    total = count_words(len(measured), "comparison")
    if len(same) == len(measured):
        return (
            f"There is no practical difference between {baseline} and {others} in any of {total}. "
            f"No difference reaches {_share(scene.result.practical)}."
        )
    if not same:
        return (
            f"There is not enough evidence yet in any of {total}. It is open whether {others} is faster or "
            f"slower than {baseline}.{_clearest(scene, measured)}"
        )
    return (
        f"No difference between {baseline} and {others} has been shown. There is no practical difference in "
        f"{len(same)} of {total}, and not enough evidence in {len(measured) - len(same)}."
    )


def _clearest(scene: _Scene, measured: Sequence[Comparison]) -> str:
    """Return what the rounds of an open comparison agree on, for the one whose effect stands out most."""
    agreeing = [c for c in measured if c.rounds > 1 and c.agreeing == c.rounds and c.e_value is not None]
    if not agreeing:
        return ""
    best = max(agreeing, key=lambda c: c.e_value or 0.0)
    phrase = claim_words(best, scene.metric(best.workload))[0]
    return f" So far {best.variant} {phrase}{_agreeing(best)} {scene.detail(best)}."


def _standing(measured: Sequence[Comparison]) -> Iterable[str]:
    """Yield how many comparisons are decided, have a known direction, or are open, unless all are alike."""
    known = sum(known_so_far(c) is not None for c in measured)
    unknown = sum(c.verdict is Verdict.NOT_ENOUGH_EVIDENCE for c in measured) - known
    decided = len(measured) - known - unknown
    total = count_words(len(measured), "comparison")
    if not (known or (unknown and any(c.verdict in (Verdict.FASTER, Verdict.SLOWER) for c in measured))):
        return
    parts = [f"{decided or 'none'} of {total} {'is' if decided <= 1 else 'are'} decided"]
    if known:
        parts.append(f"the direction is known in {known}{' more' if decided else ''}")
    if unknown:
        parts.append(f"{unknown} {'is' if unknown == 1 else 'are'} open")
    yield sentence(capitalised(series_words(parts)))


def _leaning(scene: _Scene) -> str:
    """Return the greatest effect of known direction, for a run without a verdict of faster or slower."""
    direction: Direction = "faster" if scene.so_far("faster") else "slower"
    found = scene.so_far(direction)
    best = max(found, key=lambda c: abs(scene.gain(c)))
    own = [c for c in found if c.variant == best.variant]
    total = [c for c in scene.of(best.variant) if c.verdict in MEASURED]
    where = f" in {len(own)} of {count_words(len(total), 'comparison')}" if len(total) > 1 else ""
    return f"{scene.claim(own, best, many=where, region=' so far')} {_size_open(best)}"


def _winner(scene: _Scene, variant: str) -> str:
    own = [c for c in scene.of(variant) if c.verdict in MEASURED]
    wins = scene.wins(variant)
    region = Region.around(scene.dimensions, own, wins)
    inside = [c for c in own if region.holds(c)]
    best = max(wins, key=scene.gain)
    losses = [c for c in own if c.verdict is Verdict.SLOWER]
    rest = [c for c in own if c not in wins and c not in losses]
    pure = len(inside) == len(wins)
    many = ""
    if not pure:
        many = f" in {len(wins)} of {count_words(len(inside), 'comparison')}"
    elif len(inside) == len(own) > 1:
        many = f" in all {count_words(len(own), 'comparison')}"
    alone = len(wins) == 1 < len(own) and pure
    known = frozenset(dimension.name for dimension in scene.dimensions) if alone else region.fixed()
    sentences = [scene.claim(wins, best, many=many, region=f"{region.on()}{region.where()}", known=known)]
    if not any(scene.matters(c) for c in wins):
        sentences.append(_immaterial(scene))
    if losses:
        worst, total = min(losses, key=scene.gain), count_words(len(own), "comparison")
        phrase = scene.words(worst, losses)[0]
        sentences.append(f"But it {phrase} in {len(losses)} of {total} {scene.detail(worst)}.")
    sentences += _rest(scene, rest, region.elsewhere(own) if pure and not losses else "")
    return " ".join(sentences)


def _rest(scene: _Scene, rest: Sequence[Comparison], elsewhere: str) -> Iterable[str]:
    if not rest:
        return
    other = "in the other one" if len(rest) == 1 else f"in the other {count_words(len(rest), 'comparison')}"
    subject = capitalised(elsewhere or other)
    names: dict[tuple[Verdict, Direction | None], str] = {
        (Verdict.FASTER, None): f"a gain under {_share(scene.result.practical)}",
        (Verdict.NO_PRACTICAL_DIFFERENCE, None): Verdict.NO_PRACTICAL_DIFFERENCE.value,
        (Verdict.NOT_ENOUGH_EVIDENCE, "faster"): "a gain of unsettled size",
        (Verdict.NOT_ENOUGH_EVIDENCE, "slower"): "a loss of unsettled size",
        (Verdict.NOT_ENOUGH_EVIDENCE, None): Verdict.NOT_ENOUGH_EVIDENCE.value,
    }
    found = [(c.verdict, known_so_far(c)) for c in rest]
    counts = [(name, found.count(key)) for key, name in names.items()]
    present = [(name, count) for name, count in counts if count]
    if len(present) == 1:
        yield f"{subject} there is {present[0][0]}."
    else:
        (first, number), *others = present
        parts = [f"{first} in {count_words(number, 'comparison')}", *(f"{name} in {n}" for name, n in others)]
        yield f"{subject} there is {series_words(parts)}."


def _losers(scene: _Scene, slower: Sequence[Comparison]) -> str:
    names = [name for name in scene.others if any(c.variant == name for c in slower)]
    worst = min(slower, key=scene.gain)
    own = [c for c in scene.of(worst.variant) if c.verdict in MEASURED]
    lost = [c for c in own if c.verdict is Verdict.SLOWER]
    region = Region.around(scene.dimensions, own, lost)
    many = "" if len(own) == 1 else f" in {len(lost)} of {count_words(len(own), 'comparison')}"
    phrase = scene.words(worst, lost)[0]
    sentences = [
        f"Nothing {_faster_than(own)} {scene.baseline}. {worst.variant} {phrase}{many}"
        f"{region.on()}{region.where()} {scene.detail(worst, region.fixed())}."
    ]
    if len(names) > 1:
        verb = "is" if len(names) == 2 else "are"
        others = series_words(name for name in names if name != worst.variant)
        sentences.append(f"{others} {verb} slower too.")
    sentences += _rest(scene, [c for c in own if c not in lost], elsewhere="")
    return " ".join(sentences)


def _ranked(scene: _Scene) -> list[str]:
    """Return the variants, best first: winners before losers, then by the sum of clear gains and losses."""

    def merit(name: str) -> tuple[int, float]:
        own = [c for c in scene.of(name) if c.verdict in MEASURED]
        wins = [c for c in own if c.verdict is Verdict.FASTER]
        losses = [c for c in own if c.verdict is Verdict.SLOWER]
        clear = [scene.gain(c) for c in (*wins, *losses)]
        return (1 if wins else 0 if not losses else -1, sum(clear))

    return sorted(scene.others, key=merit, reverse=True)


def _reasons(scene: _Scene, measured: Sequence[Comparison], noise: NoiseFloor) -> Iterable[str]:
    ranked = _ranked(scene)
    if len(measured) > 1:
        summaries = [text for name in ranked[:_MOST_VARIANTS] if (text := _summary(scene, name))]
        yield from summaries
    if measured and ranked:
        yield from _decides(scene, ranked[0])
        yield from _not_told_apart(scene, ranked[0])
    if noise.sentence:
        yield sentence(noise.sentence)
    clear = [c for c in (*scene.having(Verdict.FASTER), *scene.having(Verdict.SLOWER)) if c.ratio is not None]
    floor = noise.floor
    if floor is not None:
        under = sum(abs(math.log(c.ratio)) < math.log1p(floor) for c in clear if c.ratio)
        if under:
            yield (
                f"Caution: {count_words(under, 'difference')} reported as faster or slower "
                f"{'is' if under == 1 else 'are'} smaller than this noise floor."
            )
    leaning = [*scene.so_far("faster"), *scene.so_far("slower")]
    if leaning:
        yield (
            f"The direction is known but not the size in {count_words(len(leaning), 'comparison')}; "
            "more rounds will settle it."
        )
    unsure = [c for c in scene.having(Verdict.NOT_ENOUGH_EVIDENCE) if known_so_far(c) is None]
    if unsure:
        yield (
            f"Not enough evidence in {count_words(len(unsure), 'comparison')}: the interval there is "
            "too wide for a verdict, or rests on too few rounds. More rounds will narrow it."
        )
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
    under = f"{faster} ({small} of them by less than {_share(scene.result.practical)})" if small else faster
    tally = tally_words(own).replace(faster, under, 1)
    text = f"{name} in {count_words(len(own), 'comparison')}: {tally}."
    if len(own) == 1:
        least = f" by less than {_share(scene.result.practical)}" if small else ""
        text = f"{name}: {verdict_word(own[0])}{least}."
    best, worst = max(effects, key=scene.gain), min(effects, key=scene.gain)
    if best is worst:
        shown = f"{_effect_text(scene, best)}."
        return f"{text.removesuffix('.')}, {shown}" if len(own) == 1 else f"{text} Best: {shown}"
    return f"{text} Best: {_effect_text(scene, best)}; worst: {_effect_text(scene, worst)}."


def _effect_text(scene: _Scene, comparison: Comparison) -> str:
    return f"{figures_text(comparison)} {scene.where(comparison)}".strip()


def _decides(scene: _Scene, name: str) -> Iterable[str]:
    """Yield the factor that splits the best variant's verdicts most sharply, if there is one."""
    own = [c for c in scene.of(name) if c.verdict in MEASURED]
    wins = scene.wins(name)
    wanted = wins or list(scene.having(Verdict.SLOWER, name))
    word = Verdict.FASTER.value if wins else Verdict.SLOWER.value
    if wins and scene.matters(wins[0]):
        word += f" by {_share(scene.result.practical)} or more"
    found = []
    for dimension in scene.dimensions:
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
    first, *others = (
        f"{hits} of {count}{{}} at {level_text(level, dimension.numeric)}" for hits, count, level in shares
    )
    parts = [first.format(" comparisons"), *(text.format("") for text in others)]
    yield f"The deciding factor is {dimension.name}: {name} is {word} in {series_words(parts)}."


def _not_told_apart(scene: _Scene, name: str) -> Iterable[str]:
    """Yield the variants that the best one is not clearly better than, where its effect is greatest."""
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
        place = scene.where(best)
        there = f" {place}" if place else ""
        yield (
            f"Each variant is compared with {scene.baseline} only; the intervals of {name} and "
            f"{series_words(rivals)} overlap{there}, so this run does not show which of them is faster."
        )


def _overlap(comparison: Comparison, other: Comparison) -> bool:
    (low, high), (other_low, other_high) = _ends(comparison), _ends(other)
    if low is None or high is None or other_low is None or other_high is None:
        return True
    return low <= other_high and other_low <= high


def _ends(comparison: Comparison) -> tuple[float | None, float | None]:
    if comparison.difference is not None:
        return comparison.difference_low, comparison.difference_high
    return comparison.low, comparison.high


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
    whose = "its answer differs" if len(names) == 1 else "their answers differ"
    for name in names:
        own, wrong = scene.of(name), [c for c in refused if c.variant == name]
        if len(wrong) == 1:
            parts.append(f"{name} is refused {scene.where(wrong[0])}".rstrip())
        else:
            share = f"in {len(wrong)} of {count_words(len(own), 'comparison')}"
            parts.append(f"{name} is refused{Region.around(scene.dimensions, own, wrong).on()} {share}")
    why = f"{whose} from {scene.baseline}'s"
    verb = "is" if len(names) == 1 else "are"
    return fitting(
        (
            (f"{'; '.join(parts)}: {why}", ""),
            (f"{series_words(names)} {verb} refused: {why}", "; ".join(parts)),
        )
    )


def _share(practical: float) -> str:
    return f"{practical * 100:.3g} %"


# ---- the kernel's share of the server's processor time; a high share is worth a finding ----


_HIGH = 0.2
"""A query that computes spends a few per cent in the kernel; a fifth means many or costly system calls."""
_LEAST_NS = 1_000_000.0
"""Shorter operations mostly send and receive, which is the kernel's work."""


def kernel_words(costs: Sequence[Cost], factors: Sequence[FactorFacts]) -> tuple[str, ...]:
    """Return a sentence on the variant with the highest kernel share, if it is high, and on the lowest."""
    known = [
        (share, cost)
        for cost in costs
        if (share := cost.kernel_share) is not None
        and (cost.server_user_ns or 0) + (cost.server_system_ns or 0) >= _LEAST_NS
    ]
    if not known:
        return ()
    share, cost = max(known, key=lambda one: one[0])
    if share < _HIGH:
        return ()
    here = [one for one in known if (one[1].cell, one[1].workload) == (cost.cell, cost.workload)]
    least, other = min(here, key=lambda one: one[0])
    lowest = f"; {other.variant} spends {least * 100:.0f} %" if other is not cost else ""
    each = format_duration(cost.server_system_ns or 0)
    place = f"{cost.variant} on {cost.workload}" + (
        f" at {cell_words(cost.cell, factors)}" if cost.cell else ""
    )
    return (
        f"{place} spends {share * 100:.0f} % of its server CPU in the kernel ({each} per operation){lowest}. "
        '`evidence = ["syscalls"]` in the experiment file lists its system calls.',
    )


# ---- which levels of the factors some comparisons have in common, in words ----


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
    """The smallest box of levels around comparisons: the dimensions it narrows, with the levels it keeps."""

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
            _levels_words(d.name, d.levels, kept, d.numeric) for d, kept in self.cuts if d.name != "workload"
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
            return f"where {_levels_words(dimension.name, dimension.levels, left, dimension.numeric)},"
        return "elsewhere"

    def on(self) -> str:
        """Return the workloads: `` on select and delete``; empty if all are inside."""
        kept = [levels for dimension, levels in self.cuts if dimension.name == "workload"]
        return f" on {series_words(kept[0])}" if kept else ""


def _levels_words(name: str, levels: Sequence[str], kept: Sequence[str], numeric: bool) -> str:
    """Return levels of a factor in words: ``index is none``, ``rows is 10 000 or more``."""
    texts = [level_text(level, numeric) for level in kept]
    if numeric and len(kept) > 1:
        start = levels.index(kept[0])
        if tuple(levels[start : start + len(kept)]) == tuple(kept):
            if start + len(kept) == len(levels):
                return f"{name} is {texts[0]} or more"
            return f"{name} is {texts[-1]} or less" if start == 0 else f"{name} is {texts[0]} to {texts[-1]}"
    return f"{name} is {series_words(texts, 'or')}"


# ---- what a comparison shows, in the words of a sentence ----

_NOUNS: Final = {"latency_mean": "mean time", "throughput": "throughput", "success": ""}


def claim_words(comparison: Comparison, metric: str, most: str = "") -> tuple[str, str]:
    """Return an effect, after `most`, and how the baseline follows: ``is 46 % faster``, ``than``."""
    if comparison.difference is not None:
        return _share_claim(comparison.difference, most)
    ratio = comparison.ratio
    text = "" if ratio is None else effect_text(ratio)
    if ratio is None or not ratio > 0:
        return "has no computable effect", "against"
    if text.startswith(("×", "÷")):
        return _times_claim(ratio, most, rate=metric == "throughput"), "as"
    amount = text.lstrip("+−")
    if amount.startswith("±"):
        return "is as fast to within 0.1 %", "as"
    return f"is {most}{amount} {_direction(ratio, metric)}", "than"


def _times_claim(ratio: float, most: str, *, rate: bool) -> str:
    if ratio > 1:
        amount = f"{most}{times_number(ratio)} times as"
        return f"is {amount} fast" if rate else f"takes {amount} long"
    if rate:
        return f"is only 1/{times_number(1 / ratio)} as fast"
    return f"is {most}{times_number(1 / ratio)} times as fast"


def _share_claim(difference: float, most: str) -> tuple[str, str]:
    amount = points_text(difference).lstrip("+−")
    if amount.startswith("±"):
        return "lets as many requests succeed", "as"
    which = "more" if difference > 0 else "fewer"
    return f"lets {most}{amount} percentage points {which} requests succeed", "than"


def interval_words(comparison: Comparison, metric: str, confidence: float) -> str:
    """Return an interval in words: ``95 % interval: 44 % to 48 %``; see `ratio_span`."""
    level = f"{confidence * 100:g} % interval"
    shares = comparison.difference is not None
    low, high = (
        (comparison.difference_low, comparison.difference_high)
        if shares
        else (comparison.low, comparison.high)
    )
    if low is None or high is None:
        return f"no finite {level} yet"
    if shares:
        return f"{level}: {_share_ends(low, high)}"
    fractions = metric == "throughput"
    return f"{level}: {ratio_span(low, high, lambda ratio: _direction(ratio, metric), fractions=fractions)}"


def _share_ends(low: float, high: float) -> str:
    ends = [points_text(value) for value in (low, high)]
    if low > 0 or high < 0:
        ends = [end.lstrip("+−±") for end in (ends if low > 0 else ends[::-1])]
    return f"{ends[0]} to {ends[1]} points"


def _metric_noun(metric: str) -> str:
    known = _NOUNS.get(metric)
    return f"{metric.removeprefix('latency_').replace('_', ' ')} latency" if known is None else known


def _direction(ratio: float, metric: str) -> str:
    return "faster" if (ratio < 1) != (metric == "throughput") else "slower"
