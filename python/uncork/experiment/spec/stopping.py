"""The stopping rule: when an experiment has enough data, and which differences matter."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from uncork.experiment.spec.fields import Confidence, Nanoseconds, Section, Share
from uncork.stats.compare import MINIMUM_ROUNDS


class StoppingRule(Section):
    """When to stop measuring, and which differences matter."""

    precision: Share = Field(
        default=0.03,
        description="A comparison ends when its interval is this narrow, or its verdict and size are clear.",
    )
    confidence: Confidence = 0.95
    practical: Share = Field(default=0.03, description="Differences below this do not matter in practice.")
    budget: Nanoseconds = Field(
        default=180 * 10**9,
        description="Maximum duration of the run: set-up, rounds and evidence.",
    )
    blocks: int = Field(
        default=4,
        ge=2,
        le=100,
        description="Blocks per comparison and round; an even number is balanced.",
    )
    minimum_rounds: int = Field(
        default=5,
        ge=3,
        le=100,
        description="A verdict needs this many rounds, and at least 5; on an existing server, blocks.",
    )
    maximum_rounds: int = Field(default=40, ge=3, le=1000)
    trial_timeout: Nanoseconds = Field(
        default=60 * 10**9, description="A trial that takes longer has failed."
    )

    @property
    def verdict_rounds(self) -> int:
        """How many rounds a verdict needs; if the server is not restarted, how many blocks."""
        return max(self.minimum_rounds, MINIMUM_ROUNDS)

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.maximum_rounds < self.minimum_rounds:
            raise ValueError(
                f"maximum_rounds ({self.maximum_rounds}) is below minimum_rounds ({self.minimum_rounds}); "
                "raise it or lower minimum_rounds"
            )
        return self
