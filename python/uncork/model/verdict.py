"""What may be said of a comparison, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Judgement", "Verdict"]


class Verdict(StrEnum):
    """What is said of a variant against the baseline.

    The first four are judged from effects; the last two mean that there was nothing to judge: the variant
    gave a wrong answer (refused), or it was not run (skipped).
    """

    FASTER = "faster"
    SLOWER = "slower"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    NOT_ENOUGH_EVIDENCE = "not enough evidence"
    REFUSED = "refused"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason: one sentence for people, lower case, without a full stop.

    `doubts` says what would make an expert hesitate; it never changes the verdict by itself.
    """

    verdict: Verdict
    reason: str
    doubts: tuple[str, ...] = ()
