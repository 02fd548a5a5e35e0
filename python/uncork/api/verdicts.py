"""Verdicts of a run on one variant, and checks of expectations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uncork.errors import ExpectationError, UndecidedError
from uncork.model.results.experiment import Comparison, RunResult
from uncork.model.trial import Cell
from uncork.model.units import count_words
from uncork.model.verdict import Verdict
from uncork.report.words import figures_text, verdict_word
from uncork.workbench.experiment.gate import Expectation, check, parse_expectation

_LINES = 40
"""Maximum lines shown of a difference between plans; the report has all of them."""


class VariantVerdicts:
    """The comparisons of a variant with the baseline, in each cell and workload.

    `faster`, `slower`, `not_slower` and `no_difference` are true if the verdict holds in all of
    them. If the evidence does not decide, they are false and `undecided` is true.
    """

    def __init__(self, result: RunResult, variant: str) -> None:
        self._result = result
        self.variant = variant
        self.comparisons = tuple(
            comparison for comparison in result.comparisons if comparison.variant == variant
        )

    @property
    def faster(self) -> bool:
        """Whether the variant is faster everywhere."""
        return self._is("faster")

    @property
    def slower(self) -> bool:
        """Whether the variant is slower everywhere."""
        return self._is("slower")

    @property
    def not_slower(self) -> bool:
        """Whether the variant is faster, or makes no practical difference, everywhere."""
        return self._is("not-slower")

    @property
    def no_difference(self) -> bool:
        """Whether the variant makes no practical difference anywhere."""
        return self._is("no-difference")

    @property
    def undecided(self) -> bool:
        """Whether some comparison lacks evidence or was not measured."""
        open_ones = {Verdict.NOT_ENOUGH_EVIDENCE, Verdict.SKIPPED}
        return not self.comparisons or any(comparison.verdict in open_ones for comparison in self.comparisons)

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """The set of verdicts over all cells and workloads."""
        return frozenset(comparison.verdict for comparison in self.comparisons)

    def explain(self) -> str:
        """Return each verdict with its interval, its reason, and differences between plans."""
        return "\n".join(explained(self._result, self.comparisons))

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    def __repr__(self) -> str:
        return f"<{'; '.join(map(_line, self.comparisons)) or f'{self.variant}: compared nowhere'}>"

    def _is(self, expected: str) -> bool:
        status, _ = check(self._result, [Expectation(self.variant, expected)])
        return status == 0


def met(result: RunResult, expectations: Sequence[str]) -> None:
    """Check expectations such as ``uuid=not-slower``.

    Raises:
        ExpectationError: if one is contradicted; the message shows the evidence.
        UndecidedError: if none is contradicted, but the evidence does not decide one.
        UsageError: if one is invalid.
    """
    names = [variant.name for variant in result.variants]
    baseline = next((variant.name for variant in result.variants if variant.baseline), None)
    parsed = [parse_expectation(text, names, baseline) for text in expectations]
    found = {
        text: check(result, [expectation]) for text, expectation in zip(expectations, parsed, strict=True)
    }
    worst = next((status for status in (3, 4) if any(status == number for number, _ in found.values())), 0)
    if not worst:
        return
    lines: list[str] = []
    for text, expectation in zip(expectations, parsed, strict=True):
        status, _ = found[text]
        if status:
            about = [
                comparison for comparison in result.comparisons if comparison.variant == expectation.variant
            ]
            lines += [
                f"expected {text}: {'it is not' if status == 3 else 'the evidence does not decide'}",
                *(f"  {line}" for line in explained(result, about)),
            ]
    lines.append(f"full report: uncork report {result.run.id}")
    raise (ExpectationError if worst == 3 else UndecidedError)("\n".join(lines))


def explained(result: RunResult, comparisons: Sequence[Comparison]) -> list[str]:
    """Return one line per comparison, followed by differences between plans."""
    lines: list[str] = []
    for comparison in comparisons:
        lines.append(f"{_line(comparison)}: {comparison.reason}")
        lines += [f"  warning: {warning}" for warning in comparison.warnings]
        for plan in result.plans:
            if (plan.cell, plan.workload, plan.variant) == (
                comparison.cell,
                comparison.workload,
                comparison.variant,
            ):
                lines += _plan_lines(plan.statement, plan.difference)
    return lines or ["compared nowhere"]


def _line(comparison: Comparison) -> str:
    figures = figures_text(comparison)
    told = f"{verdict_word(comparison)}, {figures}" if figures else verdict_word(comparison)
    return (
        f"{comparison.variant} on {comparison.workload}{Cell(comparison.cell).at}: {told}, "
        f"{count_words(comparison.rounds, 'round')}"
    )


def _plan_lines(statement: str, difference: str) -> list[str]:
    if not difference:
        return []
    shown = difference.splitlines()
    more = [f"    ... {len(shown) - _LINES} lines more"] if len(shown) > _LINES else []
    return [
        f"  how the plan of {statement} differs from the baseline's:",
        *(f"    {line}" for line in shown[:_LINES]),
        *more,
    ]
