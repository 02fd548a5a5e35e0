"""Why a variant's answers are not accepted, and what to write into the file instead. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from uncork.experiment.run.http_request import reads_only
from uncork.experiment.spec.schema import Spec
from uncork.model.http_trial import HttpAnswer
from uncork.model.services.answers import AnswerRules, Change, Difference, allowing

OTHER_DATA: Final = "it leaves different data behind than the baseline (the check query's rows differ)"

_WRITES: Final = re.compile(r"\b(insert|update|delete|merge|call|copy|nextval|do)\b", re.IGNORECASE)


def asked_again(spec: Spec, workload: str) -> bool:
    """Return whether the baseline may be asked again: not if its first answers changed the data for good."""
    facts = spec.workloads[workload]
    if facts.state == "reset":
        return True
    if facts.http is not None:
        return reads_only(spec, workload)
    return not any(_WRITES.search(text) for text in spec.statements(workload, spec.baseline))


def changing_requests(
    workload: str, rules: AnswerRules, differences: Sequence[Difference], wider: AnswerRules | None
) -> str:
    """Return that the baseline differs from itself: where first, and the lines that leave it out."""
    seen = f"not comparable: the baseline answers the same request differently: {differences[0].twice()}"
    count = len({difference.pattern or difference.place or difference.line for difference in differences}) - 1
    more = f" (and {count} more {'place' if count == 1 else 'places'})" if count else ""
    return f"{seen}{more}; {_remedy(workload, rules, wider)}"


def wrong_requests(
    workload: str,
    rules: AnswerRules,
    answers: tuple[Sequence[HttpAnswer], Sequence[HttpAnswer]],
    differences: Sequence[Difference],
) -> str:
    """Return the first place where a variant's answers differ from the baseline's.

    If values that are made anew each time and the order of lists are all that differs, the lines follow
    that leave them out: the rows of two databases may differ in them without a fault of the variant.
    """
    harmless = [difference.generated or difference.change == Change.ORDER for difference in differences]
    first = next(
        (difference for difference, fine in zip(differences, harmless, strict=True) if not fine),
        differences[0],
    )
    told = f"wrong answer: {first.beside('the baseline')}"
    wider = allowing(*answers, rules) if all(harmless) else None
    return told if wider is None else f"{told}; if that may differ, {_set(workload, rules, wider)}"


def changing_rows(workload: str, detail: str | None) -> str:
    """Return that a statement of the baseline returns other rows each time."""
    shown = "" if detail is None else f" ({detail})"
    return (
        f"not comparable: the baseline returns other rows when it is asked again{shown}; remove what changes "
        "between executions, such as now(), random() or LIMIT without a unique ORDER BY, or set "
        f'answer = "may differ" in workloads.{workload}'
    )


def _remedy(workload: str, rules: AnswerRules, wider: AnswerRules | None) -> str:
    if wider is not None:
        return _set(workload, rules, wider)
    return f'only answer = "may differ" in workloads.{workload} can allow that'


def _set(workload: str, rules: AnswerRules, wider: AnswerRules) -> str:
    return f"in workloads.{workload}.http, set {rules.lines(wider)}"
