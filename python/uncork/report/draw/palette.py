"""The colours and shapes of variants in every chart and legend of a document."""

from __future__ import annotations

from dataclasses import dataclass

from uncork.report.draw.chart_parts import colour
from uncork.report.draw.marks import SHAPES


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours and shapes of variants: a neutral colour for the baseline, then the others in order."""

    variants: tuple[str, ...]
    baseline: str

    def number(self, variant: str) -> int:
        """Return the number of a variant's colour, 0 for the baseline."""
        others = [name for name in self.variants if name != self.baseline]
        return 0 if variant == self.baseline or variant not in others else 1 + others.index(variant) % 7

    def shape(self, variant: str) -> str:
        """Return the name of a variant's shape."""
        return SHAPES[self.number(variant)]

    def colour(self, variant: str) -> str:
        """Return the colour of a variant."""
        return colour(self.number(variant))
