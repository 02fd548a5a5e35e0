"""The neutral document: what a report says, before anything decides how it looks.

Builders in `document` make these values from a result; the terminal, Markdown and HTML writers render them.
A writer may leave out a kind of block that it cannot show (a terminal draws no charts), never change one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uncork.model.results.experiment import CrossoverPoint
from uncork.model.verdict import Verdict

__all__ = [
    "Beside",
    "Block",
    "Bullets",
    "Chart",
    "Code",
    "Column",
    "Document",
    "DotChart",
    "DotMark",
    "Facts",
    "Flame",
    "Fold",
    "ForestChart",
    "ForestMark",
    "Gallery",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "Layer",
    "Legend",
    "Line",
    "LineChart",
    "Paragraph",
    "Section",
    "Spark",
    "StackChart",
    "Step",
    "Table",
    "Tone",
    "Value",
]

Tone = Literal["plain", "faster", "slower", "same", "unsure", "refused", "skipped", "muted"]
"""What a cell's colour may tell beside its words; a writer without colour ignores it."""


@dataclass(frozen=True, slots=True)
class Value:
    """One cell of a table. `note` and `more` are smaller lines; `code` asks for a fixed-width face.

    `sort` is the number that rows are sorted by where the text is a figure for people; else they are sorted
    by the text. `bar`, 0 to 1, may be drawn beside the text. `link` is the id of the fold that the text leads
    to.
    """

    text: str
    note: str = ""
    more: str = ""
    tone: Tone = "plain"
    code: bool = False
    sort: float | None = None
    bar: float | None = None
    link: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `header`: its cells name their row; `whole`: no line ends within them."""

    title: str
    header: bool = False
    number: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of typed cells under a caption; each row has one value a column.

    A writer that can lets a reader sort the rows of a `sortable` table by any column, and search long ones.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    sortable: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences, one an item."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Short labelled texts."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text to keep as it is, in its lines."""

    text: str
    language: Literal["text", "sql", "diff", "sh"] = "text"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Legend:
    """Which colour, shape and dash stands for which variant, in the order of the experiment."""

    variants: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ForestMark:
    """One effect with its interval; a bound that is None runs off the chart."""

    label: str
    variant: str
    verdict: Verdict
    ratio: float
    low: float | None
    high: float | None
    published: float | None


@dataclass(frozen=True, slots=True)
class ForestChart:
    """Effects with intervals, one line a cell, against the noise floor and the practical threshold."""

    title: str
    description: str
    marks: tuple[ForestMark, ...]
    variants: tuple[str, ...]
    practical: float
    floor: float | None
    better: Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Line:
    """One variant's points, x rising. `style` tells apart what is drawn of the same variant."""

    variant: str
    points: tuple[tuple[float, float], ...]
    style: Literal["measured", "again", "published"] = "measured"


@dataclass(frozen=True, slots=True)
class LineChart:
    """Values of a metric along an axis.

    `axis` is what x is: a factor's level, a quantile in [0, 1], a round, a time in seconds, or the time of
    day in seconds from `start_s` on, itself in seconds since 1970 in UTC. `unit` is what y is: nanoseconds,
    a share in [0, 1], or a plain number. `table` says the same in figures, where that is sensible. `wide`
    takes the width of the page; `from_zero` lets y begin there, and reach `most` at least, so that several
    charts have one scale.
    """

    title: str
    description: str
    axis: Literal["factor", "quantile", "round", "time", "clock"]
    x_title: str
    y_title: str
    unit: Literal["ns", "share", "number"]
    lines: tuple[Line, ...]
    variants: tuple[str, ...]
    note: str = ""
    crossovers: tuple[CrossoverPoint, ...] = ()
    table: Table | None = None
    wide: bool = False
    from_zero: bool = False
    most: float = 0.0
    start_s: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """One part of a whole over time, a value a step; `link` is the id of the fold that its name leads to.

    `rest` says that it holds all that has no layer of its own.
    """

    name: str
    values: tuple[float, ...]
    link: str = ""
    rest: bool = False


@dataclass(frozen=True, slots=True)
class StackChart:
    """Parts of a whole over time, one on top of the other, the first at the bottom.

    A value holds for `step_s` seconds; the first one from `start_s` on, in seconds since 1970 in UTC.
    """

    title: str
    description: str
    y_title: str
    start_s: int
    step_s: int
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class DotMark:
    """One variant's value in a row, with its interval if it has one."""

    label: str
    variant: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class DotChart:
    """Values of variants side by side, a row a thing that was measured. `unit` is what they are."""

    title: str
    description: str
    unit: Literal["share", "ns", "number"]
    marks: tuple[DotMark, ...]
    variants: tuple[str, ...]


Chart = ForestChart | LineChart | StackChart | DotChart


@dataclass(frozen=True, slots=True)
class Gallery:
    """Small charts of one kind, to be seen side by side."""

    charts: tuple[LineChart | DotChart, ...]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node: `size` is drawn as its area, `note` tells it in words; `island` is a place in the graph's."""

    key: int
    name: str
    note: str
    size: float
    island: int


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An arrow from one node to another, by their keys; a `marked` one stands out."""

    source: int
    target: int
    label: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in islands, and arrows between them; `islands` are their titles."""

    title: str
    description: str
    note: str
    islands: tuple[str, ...]
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True)
class Flame:
    """A flame graph as SVG that was drawn already: `name` is what was counted, `note` how to read it."""

    name: str
    title: str
    note: str
    svg: str


@dataclass(frozen=True, slots=True)
class Spark:
    """Values at equal steps of time, drawn small; `ends` name the first step and the last."""

    title: str
    values: tuple[float, ...]
    ends: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Beside:
    """Small blocks that stand side by side where there is room."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind a summary line, closed at first unless `open`.

    `id` names it in links: one value of a table leads to it, and it leads back there.
    """

    summary: str
    blocks: tuple[Block, ...]
    open: bool = False
    id: str = ""


Block = (
    Paragraph
    | Bullets
    | Facts
    | Code
    | Table
    | Legend
    | Chart
    | Gallery
    | Graph
    | Flame
    | Spark
    | Beside
    | Fold
)


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of the report; `id` names it in links."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do next, with the command that does it if one does."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report: the answer first, then what supports it.

    `tally` counts verdicts, each by its words, `facts` are short labelled texts about the run, `variants` are
    in the order of the experiment and `baseline` is one of them; for a load they are what its charts draw.
    `heading` stands over the reasons.
    """

    title: str
    question: str
    answer: str
    reasons: tuple[str, ...]
    steps: tuple[Step, ...]
    tally: tuple[tuple[Verdict, str, int], ...]
    facts: tuple[tuple[str, str], ...]
    variants: tuple[str, ...]
    baseline: str
    sections: tuple[Section, ...]
    version: str
    heading: str = "Why"
