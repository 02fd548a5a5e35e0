"""How times of operations grow along a factor, as reports tell it."""

from __future__ import annotations

from uncork.model.records import Record
from uncork.model.variant_evidence import Levels


class GrowthLine(Record):
    """How the time of an operation grows for one variant under one workload.

    `fixed` holds the levels of the other factors. `sizes` rise; `times_ns` are geometric means over rounds of
    the mean time of an operation. `exponent` is the power of the size that time grows by, with its interval.
    `shapes` are those that the times allow: logarithmic, power, linear. `expected_ns` is what they say of a
    round at the size asked for, `low_ns` and `high_ns` its interval; None where no shape is allowed.
    """

    fixed: Levels
    workload: str
    variant: str
    sizes: tuple[float, ...]
    times_ns: tuple[float, ...]
    rounds: int
    exponent: float
    exponent_low: float
    exponent_high: float
    shapes: tuple[str, ...]
    expected_ns: float | None
    low_ns: float | None
    high_ns: float | None


class GrowthFacts(Record):
    """What a run says of sizes that it did not measure: an extrapolation along `factor` to the size `to`.

    `lines` are empty where too few sizes or rounds were measured.
    """

    factor: str
    to: float
    confidence: float
    lines: tuple[GrowthLine, ...]
