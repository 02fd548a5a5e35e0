"""Check the expectations of a run for scripts: kept (0), broken (3), or not decided (4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uncork.errors import UsageError
from uncork.experiment.spec.problems import hint
from uncork.model.results.experiment import Comparison, RunResult
from uncork.model.trial import Cell
from uncork.model.verdict import Verdict
from uncork.report.words import verdict_word

EXPECTATIONS: dict[str, tuple[frozenset[Verdict], frozenset[Verdict]]] = {
    "faster": (
        frozenset({Verdict.FASTER}),
        frozenset({Verdict.SLOWER, Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.REFUSED}),
    ),
    "slower": (
        frozenset({Verdict.SLOWER}),
        frozenset({Verdict.FASTER, Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.REFUSED}),
    ),
    "not-slower": (
        frozenset({Verdict.FASTER, Verdict.NO_PRACTICAL_DIFFERENCE}),
        frozenset({Verdict.SLOWER, Verdict.REFUSED}),
    ),
    "no-difference": (
        frozenset({Verdict.NO_PRACTICAL_DIFFERENCE}),
        frozenset({Verdict.FASTER, Verdict.SLOWER, Verdict.REFUSED}),
    ),
}
"""For each expectation, the verdicts that keep it and those that break it; others leave it undecided."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The verdict expected of a variant in every cell and workload: a key of `EXPECTATIONS`."""

    variant: str
    verdict: str


def parse_expectation(text: str, variants: Sequence[str], baseline: str | None = None) -> Expectation:
    """Parse an expectation such as ``uuid=faster``.

    Raises:
        UsageError: if it is not VARIANT=EXPECTATION with known names.
    """
    variant, equals, verdict = text.partition("=")
    if not equals or verdict not in EXPECTATIONS:
        raise UsageError(f"--expect {text}: write VARIANT=EXPECTATION with one of {', '.join(EXPECTATIONS)}")
    if variant == baseline:
        raise UsageError(
            f'--expect {text}: "{variant}" is the baseline; name a variant that is compared with it'
        )
    if variant not in variants:
        raise UsageError(f'--expect {text}: there is no variant "{variant}"{hint(variant, set(variants))}')
    return Expectation(variant, verdict)


def check(result: RunResult, expectations: Sequence[Expectation]) -> tuple[int, list[str]]:
    """Return the exit status, and a sentence for each comparison that broke or did not decide one."""
    broken: list[str] = []
    undecided: list[str] = []
    for expectation in expectations:
        keeps, breaks = EXPECTATIONS[expectation.verdict]
        about = [item for item in result.comparisons if item.variant == expectation.variant]
        if not about:
            undecided.append(f"expected {expectation.verdict}: {expectation.variant} was not compared")
        for comparison in about:
            if comparison.verdict in keeps:
                continue
            found = broken if comparison.verdict in breaks else undecided
            found.append(f"expected {expectation.verdict}: {_sentence(comparison)}")
    if broken:
        return 3, broken
    return (4, undecided) if undecided else (0, [])


def _sentence(comparison: Comparison) -> str:
    return (
        f"{comparison.variant} on {comparison.workload}{Cell(comparison.cell).at} is "
        f"{verdict_word(comparison)} ({comparison.reason})"
    )
