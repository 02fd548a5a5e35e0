"""Whether a variant is what it was expected to be, and what is said when it is not."""

from dataclasses import replace

import pytest

from fakes.results import large_result
from uncork.api.verdicts import VariantVerdicts, met
from uncork.errors import ExpectationError, UndecidedError, UsageError
from uncork.model.results.experiment import PlanFacts
from uncork.model.verdict import Verdict

RESULT = large_result()
BASELINE = next(one.name for one in RESULT.variants if one.baseline)
NAME = next(one.name for one in RESULT.variants if not one.baseline)
FIRST = next(one for one in RESULT.comparisons if one.variant == NAME)


def result(*verdicts, difference=""):
    """Return a result with one comparison a verdict, all of one variant."""
    comparisons = tuple(
        replace(FIRST, workload=f"work-{number}", verdict=verdict, warnings=())
        for number, verdict in enumerate(verdicts)
    )
    plan = PlanFacts(FIRST.cell, "work-0", NAME, "work-0.1", "text", "shape", difference, None, None)
    return replace(RESULT, comparisons=comparisons, plans=(plan,))


FASTER, SLOWER = Verdict.FASTER, Verdict.SLOWER
SAME, OPEN, REFUSED = Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.NOT_ENOUGH_EVIDENCE, Verdict.REFUSED


@pytest.mark.parametrize(("verdicts", "holds"), [
    ([FASTER, FASTER], {"faster", "not_slower"}),
    ([FASTER, SAME], {"not_slower"}),
    ([SAME, SAME], {"not_slower", "no_difference"}),
    ([SLOWER], {"slower"}),
    ([FASTER, SLOWER], set()),
    ([FASTER, OPEN], {"undecided"}),
    ([OPEN], {"undecided"}),
    ([Verdict.SKIPPED], {"undecided"}),
    ([REFUSED], set()),
    ([], {"undecided"}),
])  # fmt: skip
def test_a_variant_is_what_it_is_in_all_places(verdicts, holds):
    found = VariantVerdicts(result(*verdicts), NAME)
    words = ("faster", "slower", "not_slower", "no_difference", "undecided")
    assert {word for word in words if getattr(found, word)} == holds
    assert found.verdicts == frozenset(verdicts)
    assert len(found) == len(list(found)) == len(verdicts)


def test_what_holds_raises_nothing():
    met(result(FASTER, SAME), [f"{NAME}=not-slower"])


def test_a_contradiction_is_told_with_interval_reason_and_plans():
    with pytest.raises(ExpectationError) as caught:
        met(result(SLOWER, difference="--- a\n+++ b\n-Index Scan\n+Seq Scan"), [f"{NAME}=not-slower"])
    assert not isinstance(caught.value, UndecidedError)
    assert isinstance(caught.value, AssertionError)
    text = str(caught.value)
    assert text.startswith(f"expected {NAME}=not-slower: it is not\n  {NAME} on work-0")
    assert FIRST.reason in text
    assert "    +Seq Scan" in text
    assert text.endswith(f"uncork report {RESULT.run.id}")


def test_too_little_evidence_is_another_error_unless_something_is_contradicted():
    with pytest.raises(UndecidedError, match="the evidence does not decide"):
        met(result(FASTER, OPEN), [f"{NAME}=faster"])
    with pytest.raises(ExpectationError) as caught:
        met(result(OPEN, SLOWER), [f"{NAME}=faster"])
    assert type(caught.value) is ExpectationError


def test_a_long_difference_of_plans_is_cut():
    difference = "\n".join(f"+ line {number}" for number in range(100))
    told = VariantVerdicts(result(SLOWER, difference=difference), NAME).explain()
    assert "line 39" in told
    assert "line 40" not in told
    assert "... 60 lines more" in told


@pytest.mark.parametrize("wrong", ["nope=faster", f"{NAME}=quick", NAME, f"{BASELINE}=faster"])
def test_a_wrong_expectation_is_a_usage_error(wrong):
    with pytest.raises(UsageError):
        met(result(FASTER), [wrong])


def test_a_shell_shows_what_was_found():
    told = repr(VariantVerdicts(result(FASTER), NAME))
    assert told.startswith(f"<{NAME} on work-0")
    assert "faster" in told
    assert repr(VariantVerdicts(result(), NAME)) == f"<{NAME}: compared nowhere>"
