"""Sections on the run itself and how to repeat it: noise, warnings, definitions, environment, method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from uncork.model.results.experiment import FactorFacts, SliceCheckFacts, WorkloadFacts
from uncork.model.units import format_count, format_percent
from uncork.report.blocks import Block, Bullets, Code, Fold, Paragraph, Section, Table, Value, filled_section
from uncork.report.cells import column, facts_table, folded_if_long, header, table_of, without_empty_columns
from uncork.report.experiment.view import View
from uncork.report.words import (
    capitalised,
    cell_words,
    count_words,
    effect_with_interval,
    figures_text,
    has_effect,
    metric_title,
    sentence,
)

_MOST_RANKED: Final = 200


def conduct_sections(view: View) -> Iterable[Section]:
    """Yield the sections on the run itself; the last one says how to repeat it."""
    result = view.result
    yield from filled_section("noise", "Noise floor", *_noise(view))
    yield from filled_section("warnings", "Warnings and disturbances", *_warnings(view))
    yield Section("definitions", "What was compared", tuple(_definitions(view)))
    if result.environment:
        tables = tuple(_known_facts(title, facts) for title, facts in result.environment.items() if facts)
        yield Section("environment", "Environment", tables)
    yield Section("reproduce", "How to repeat this run", tuple(_reproduce(view)))


def _noise(view: View) -> tuple[Block, ...]:
    noise = view.result.noise
    blocks: list[Block] = [Paragraph(sentence(noise.sentence))] if noise.sentence else []
    if noise.false_alarms:
        times = count_words(noise.false_alarms, "time")
        blocks.append(
            Paragraph(
                f"{view.baseline} was reported as different from itself {times}; each is a false alarm."
            )
        )
    measured = [c for c in noise.comparisons if has_effect(c)]
    if measured:
        table = table_of(
            f"{view.baseline} against itself (two trials in every block)",
            measured,
            header("workload", lambda comparison: comparison.workload),
            header("cell", lambda comparison: view.cell(comparison.cell)),
            column("effect", figures_text),
            column("verdict", lambda comparison: comparison.verdict.value),
        )
        blocks.append(folded_if_long(table, 4))
    if checked := slice_check_words(view.result.slice_checks):
        blocks.append(Paragraph(checked))
    return (*blocks, *_by_ranks(view))


def _by_ranks(view: View) -> Iterable[Block]:
    """Yield the effects by ranks beside those of the verdicts, folded."""
    ranked = [(c, c.ranks) for c in view.result.comparisons if c.ranks is not None and has_effect(c)]
    ranked = ranked[:_MOST_RANKED]
    if not ranked:
        return
    words = Paragraph(
        "The median of all pairwise means of the rounds, with the interval of Wilcoxon's signed ranks. A few "
        "extreme rounds hardly move it. It checks the verdicts, which do not depend on it, and is not "
        "corrected for repeated looks."
    )
    table = table_of(
        "Effects by mean and by ranks",
        [comparison for comparison, _ in ranked],
        header("variant", lambda comparison: comparison.variant),
        column("workload", lambda comparison: comparison.workload),
        column("cell", lambda comparison: view.cell(comparison.cell)),
        column("effect", figures_text),
        column("by ranks", [effect_with_interval(ranks.ratio, ranks.low, ranks.high) for _, ranks in ranked]),
    )
    title = f"The same effects by ranks (Hodges-Lehmann, {count_words(len(ranked), 'comparison')})"
    yield Fold(title, (words, table))


def _warnings(view: View) -> tuple[Block, ...]:
    result = view.result
    items = [*result.warnings, *disturbed_words(result.slice_checks, view.result.factors)]
    shared: dict[str, list[str]] = {}
    for c in result.comparisons:
        for warning in c.warnings:
            shared.setdefault(warning, []).append(f"{c.variant} on {view.place((c.cell, c.workload))}")
    for warning, where in shared.items():
        more = f", and {len(where) - 3} more" if len(where) > 3 else ""
        items.append(f"{capitalised(warning)}: {'; '.join(where[:3])}{more}.")
    if result.run.failed_trials:
        items.append(
            f"{format_count(result.run.failed_trials)} of {count_words(result.run.trials, 'trial')} failed "
            "and were left out of the statistics."
        )
    touched = {name: count for name, count in result.disturbances.items() if count}
    items += [
        f"Affected by {name}, but kept in the statistics: {count_words(count, 'trial')}."
        for name, count in touched.items()
    ]
    return (Bullets(tuple(items)),) if items else ()


def _definitions(view: View) -> Iterable[Block]:
    table = table_of(
        "Variants",
        view.result.variants,
        header("variant", lambda variant: Value(variant.name, note="baseline" if variant.baseline else "")),
        column("what it is", lambda variant: variant.title),
        column("texts", lambda variant: _assignments(variant.values)),
        column("settings", lambda variant: _assignments(variant.settings)),
        column("services", lambda variant: Value("; ".join(variant.services), code=True)),
    )
    yield without_empty_columns(table)
    for workload in view.result.workloads:
        yield Fold(f"Workload {workload.name}: {workload.title}", tuple(_workload(workload)))


def _assignments(texts: Mapping[str, str]) -> Value:
    return Value("; ".join(f"{name} = {text}" for name, text in texts.items()), code=True)


def _workload(workload: WorkloadFacts) -> Iterable[Block]:
    for text in workload.sql:
        yield Code(text, "sql")
    if workload.requests:
        yield Code("\n".join(workload.requests), "text")
    facts = {
        "compared by": f"{metric_title(workload.metric)}, {workload.better} is better",
        "clients": str(workload.clients),
        "protocol": workload.protocol,
        "caches at the start of a trial": workload.cache,
        "state": workload.state,
        "answer": workload.answer,
        "a trial stops after": workload.stop,
    }
    yield _known_facts(f"How {workload.name} is run", facts)


def _reproduce(view: View) -> Iterable[Block]:
    result = view.result
    yield Code(result.run.reproduce, "sh")
    confidence, share, precision = (
        f"{number * 100:.3g} %" for number in (result.confidence, result.practical, result.precision)
    )
    items = [
        f"The seed {result.run.seed} reproduces the order of the trials; the times depend on the machine.",
        f"Effects are ratios within blocks, averaged over rounds; intervals keep their {confidence} "
        f"confidence at every look. Rounds stop at {precision} precision; differences under {share} do not "
        "matter.",
        result.correction,
        f"Source of the case: {result.source}." if result.source else "",
    ]
    yield Bullets(tuple(item for item in items if item))


def _known_facts(caption: str, facts: Mapping[str, str]) -> Table:
    return facts_table(caption, [(name, text) for name, text in facts.items() if text], "name", "value")


# ---- sentences on whether short slices show the same effects as long ones ----


def slice_check_words(checks: Sequence[SliceCheckFacts]) -> str:
    """Return how far the effects of short and long slices agree; empty without such slices."""
    if not checks:
        return ""
    known = [
        check for check in checks if check.low is not None and check.high is not None and not check.disturbed
    ]
    if not known:
        if any(check.disturbed for check in checks):
            return ""
        return (
            "Variants took turns in short slices. Whether this disturbs them was not checked: the check "
            "needs at least two rounds of long slices (every third round), and this run ended earlier."
        )
    widest = max(max(-math.log(check.low or 1.0), math.log(check.high or 1.0)) for check in known)
    fewest = min(check.rounds for check in known)
    return (
        "Variants took turns in short slices; every third round had slices five times as long. Both lengths "
        f"show the same effects to within {format_percent(math.exp(widest)).removeprefix('+')} "
        f"({count_words(len(known), 'comparison')}, each with at least {count_words(fewest, 'round')} of "
        "long slices)."
    )


def disturbed_words(checks: Sequence[SliceCheckFacts], factors: Sequence[FactorFacts]) -> Iterator[str]:
    """Yield a sentence for each cell and workload for which only long slices count."""
    places = dict.fromkeys((check.cell, check.workload) for check in checks if check.disturbed)
    for cell, workload in places:
        here = [check for check in checks if (check.cell, check.workload) == (cell, workload) and check.ratio]
        worst = max(here, key=lambda one: abs(math.log(one.ratio or 1.0)))
        where = f" at {cell_words(cell, factors)}" if cell else ""
        yield (
            f"Short slices disturb each other on {workload}{where}: there {worst.variant} differs by "
            f"{effect_with_interval(worst.ratio or 1.0, worst.low, worst.high)} from its result with "
            "long slices. Only rounds with slices five times as long count for it. Give the "
            "workload a duration, so that trials run one after the other."
        )
