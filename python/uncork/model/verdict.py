"""The verdicts of a comparison, and their reasons."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from uncork.model.records import Record

Direction = Literal["faster", "slower"]


class Verdict(StrEnum):
    """The verdict on a variant against the baseline.

    The first four are judged from effects. The last two mean that there was nothing to judge: the variant
    returned a wrong answer (refused), or it was not run (skipped).
    """

    FASTER = "faster"
    SLOWER = "slower"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    NOT_ENOUGH_EVIDENCE = "not enough evidence"
    REFUSED = "refused"
    SKIPPED = "skipped"


class Judgement(Record):
    """A verdict with its reason: one sentence, lower case, without a full stop.

    `warnings` are warnings that would make an expert hesitate; they never change the verdict. `direction` is
    set when the data show which of the two is faster. It can be known before there is a verdict, because a
    verdict also requires a minimum of rounds.
    """

    verdict: Verdict
    reason: str
    warnings: tuple[str, ...] = ()
    direction: Direction | None = None
