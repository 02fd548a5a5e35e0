"""The parts of a drawing as SVG: lines, texts, shapes, groups and their colours; and how wide a text is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

INK, SOFT, GRID, BAND, PAGE = "var(--ink)", "var(--soft)", "var(--grid)", "var(--band)", "var(--card)"
"""Colours of a drawing: variables of the page's style sheet, so that one drawing serves light and dark."""
FONT_SIZE: Final = 12
"""Size of every text, in pixels."""

_WIDTHS: Final = {
    character: width
    for width, characters in (
        (200, "\u202f"),
        (275, "'"),
        (278, "ijl"),
        (295, "IJ"),
        (318, " ,.·\u00a0"),
        (337, "/:;\\|"),
        (352, "f"),
        (361, "-"),
        (390, "()[]t"),
        (411, "r!"),
        (460, '"'),
        (500, "*_`–"),
        (525, "sz?"),
        (557, "cL"),
        (592, "Fkvxy"),
        (615, "PTYoöaäeé"),
        (636, "EhnuüSbdgpq$0123456789{}µ"),
        (698, "KAVXZBRC"),
        (752, "UNH"),
        (787, "DG&OQ"),
        (838, "w#+<=>^~±−×≤≥"),
    )
    for character in characters
}
"""Widths of characters in DejaVu Sans, in thousandths of the font size. It is a wide font: a reader's font
needs no more room."""
_OTHER_WIDTH: Final = 1_000


def text_width(shown: str) -> float:
    """Return an upper bound of the width of a text, in pixels."""
    return sum(_WIDTHS.get(character, _OTHER_WIDTH) for character in shown) * FONT_SIZE / 1_000


def cut(shown: str, most: float) -> str:
    """Return a text that is at most `most` pixels wide: its end is replaced by an ellipsis if necessary."""
    if text_width(shown) <= most:
        return shown
    while shown and text_width(f"{shown}…") > most:
        shown = shown[:-1]
    return f"{shown.rstrip()}…"


def number(value: float) -> str:
    """Return a coordinate in a few characters; a hundredth of a pixel is not visible."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def group(kind: Literal["area", "line", "rect", "rule", "symbol", "text"], parts: Iterable[str]) -> str:
    """Return parts of one kind as a group whose class is ``mark-KIND``; nothing if there are none."""
    inner = "".join(parts)
    return f'<g class="mark-{kind}">{inner}</g>' if inner else ""


def line(x: float, y: float, x2: float, y2: float, colour: str, width: float = 1, dash: str = "") -> str:
    """Return a straight line. `dash` holds the lengths of its dashes and gaps."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    ends = " ".join(
        f'{name}="{number(value)}"' for name, value in (("x1", x), ("y1", y), ("x2", x2), ("y2", y2))
    )
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"{dashes}/>'


def polyline(points: Sequence[tuple[float, float]], facts: str) -> str:
    """Return a path through points, with attributes `facts`."""
    path = "L".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<path d="M{path}" {facts}/>'


def rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    """Return a filled rectangle."""
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
        f'fill="{colour}"/>'
    )


def text(
    shown: str,
    x: float,
    y: float,
    colour: str,
    anchor: Literal["start", "middle", "end"] = "middle",
    facts: str = "",
) -> str:
    """Return a text whose baseline is at `y`, with further attributes `facts`."""
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    more = f" {facts}" if facts else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}"{side} font-size="{FONT_SIZE}px" fill="{colour}"{more}>'
        f"{escape(shown)}</text>"
    )


def symbol(shape: str, x: float, y: float, size: float, facts: str) -> str:
    """Return a shape with its middle at a point. `size` is the area of the square around it, in pixels."""
    radius = math.sqrt(size) / 2
    return f'<path d="{_PATHS[shape](radius)}" transform="translate({number(x)},{number(y)})" {facts}/>'


_HEIGHT: Final = math.sqrt(3) / 2
"""Half the height of a triangle whose sides are 2."""


def _polygon(*points: tuple[float, float]) -> Callable[[float], str]:
    """Return a function that draws points on a circle of radius 1 at another radius."""

    def drawn(radius: float) -> str:
        return "M" + "L".join(f"{number(x * radius)},{number(y * radius)}" for x, y in points) + "Z"

    return drawn


def _circle(radius: float) -> str:
    r = number(radius)
    return f"M{r},0A{r},{r},0,1,1,-{r},0A{r},{r},0,1,1,{r},0"


_ARM: Final = 0.4
_WEDGE: Final = _HEIGHT - 1 / math.sqrt(3)

_PATHS: Final[dict[str, Callable[[float], str]]] = {
    "circle": _circle,
    "square": _polygon((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "triangle-up": _polygon((0, -_HEIGHT), (-1, _HEIGHT), (1, _HEIGHT)),
    "cross": _polygon(
        *((-1, -_ARM), (-1, _ARM), (-_ARM, _ARM), (-_ARM, 1), (_ARM, 1), (_ARM, _ARM)),
        *((1, _ARM), (1, -_ARM), (_ARM, -_ARM), (_ARM, -1), (-_ARM, -1), (-_ARM, -_ARM)),
    ),
    "triangle-down": _polygon((0, _HEIGHT), (-1, -_HEIGHT), (1, -_HEIGHT)),
    "triangle-right": _polygon((_HEIGHT, 0), (-_HEIGHT, -1), (-_HEIGHT, 1)),
    "wedge": _polygon((0, -_HEIGHT - _WEDGE), (-0.25, _HEIGHT - _WEDGE), (0.25, _HEIGHT - _WEDGE)),
    "triangle-left": _polygon((-_HEIGHT, 0), (_HEIGHT, -1), (_HEIGHT, 1)),
    "diamond": _polygon((-1, 0), (0, -1), (1, 0), (0, 1)),
}

SHAPES: Final = tuple(_PATHS)[:8]
"""Shapes of variants by their names; each variant has its own shape as well as its own colour. The diamond
marks published values."""


def colour(number: int) -> str:
    """Return one of the page's eight colours."""
    return f"var(--v{number})"


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
