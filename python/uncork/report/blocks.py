"""The neutral document: the content of a report, independent of its format.

The `document` modules build these values from a result; the terminal, Markdown and HTML writers render them.
A writer may leave out a kind of block that it cannot show (a terminal draws no charts) but never changes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from uncork.model.verdict import Verdict
from uncork.report.headline import split_answer

if TYPE_CHECKING:
    from uncork.model.results.experiment import CrossoverPoint

Tone = Literal["plain", "faster", "slower", "same", "unsure", "refused", "skipped", "muted"]
"""What the colour of a cell adds to its words; a writer without colour ignores it."""


@dataclass(frozen=True, slots=True)
class Value:
    """One cell of a table.

    `note` and `more` are smaller lines below the text. `code` requests a fixed-width font. Rows are sorted by
    `sort`, or by the text if it is None. `bar`, from 0 to 1, may be drawn next to the text. `link` is the id
    of the fold that the text links to. A fold links back to one value: of all others, `back` is false.
    """

    text: str
    note: str = ""
    more: str = ""
    tone: Tone = "plain"
    code: bool = False
    sort: float | None = None
    bar: float | None = None
    link: str = ""
    back: bool = True


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    `header`: its cells name their row. `number`: aligned right. `whole`: its cells are never wrapped.
    """

    title: str
    header: bool = False
    number: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of typed cells under a caption; readers can sort and search a `sortable` table."""

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
    """A list with one sentence per item."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels with their values."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Preformatted text."""

    text: str
    language: Literal["text", "sql", "diff", "sh"] = "text"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Legend:
    """The colour, shape and dash of each variant, in the order of the experiment."""

    variants: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ForestMark:
    """One effect with its interval; a bound of None extends beyond the chart."""

    label: str
    variant: str
    verdict: Verdict
    ratio: float
    low: float | None
    high: float | None
    published: float | None


@dataclass(frozen=True, slots=True)
class ForestChart:
    """Effects with intervals, with the noise floor and the practical threshold; `axis` names them."""

    title: str
    description: str
    marks: tuple[ForestMark, ...]
    variants: tuple[str, ...]
    practical: float
    floor: float | None
    better: Literal["lower", "higher"]
    axis: str = "change from the baseline"


@dataclass(frozen=True, slots=True)
class Line:
    """The points of one variant, sorted by x. `style` separates several lines of the same variant."""

    variant: str
    points: tuple[tuple[float, float], ...]
    style: Literal["measured", "again", "published"] = "measured"


@dataclass(frozen=True, slots=True)
class LineChart:
    """Values of a metric along an axis.

    `axis` is the meaning of x: a factor's level, a quantile in [0, 1], a round, a time in seconds, or the
    time of day in seconds since `start_s`, which is in seconds since 1970 in UTC. `unit` is the unit of y:
    nanoseconds, a share in [0, 1], or a plain number. `table` holds the same values, if useful. A `wide`
    chart takes the width of the page. With `from_zero`, y begins at 0 and reaches at least `most`, so that
    several charts share one scale. `limits` are values of y with their names, drawn as dashed lines. `shaded`
    is a range of x to highlight, which the `note` explains.
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
    limits: tuple[tuple[float, str], ...] = ()
    shaded: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One part of a whole over time, with one value per step.

    `link` is the id of the fold that its name links to. `rest` marks the layer for everything without a layer
    of its own.
    """

    name: str
    values: tuple[float, ...]
    link: str = ""
    rest: bool = False


@dataclass(frozen=True, slots=True)
class StackChart:
    """Parts of a whole over time, stacked, the first at the bottom.

    Each value covers `step_s` seconds; the first begins at `start_s`, in seconds since 1970 in UTC.
    """

    title: str
    description: str
    y_title: str
    start_s: int
    step_s: int
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class DotMark:
    """The value of one variant in a row, with its interval if it has one."""

    label: str
    variant: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class DotChart:
    """Values of several variants, one row per measured quantity, in `unit`."""

    title: str
    description: str
    unit: Literal["share", "ns", "number"]
    marks: tuple[DotMark, ...]
    variants: tuple[str, ...]


Chart = ForestChart | LineChart | StackChart | DotChart


@dataclass(frozen=True, slots=True)
class Gallery:
    """Small charts of one kind, shown side by side."""

    charts: tuple[LineChart | DotChart, ...]


@dataclass(frozen=True, slots=True)
class Flame:
    """A flame graph, already drawn as SVG: `name` is what was counted, `note` how to read it."""

    name: str
    title: str
    note: str
    svg: str


@dataclass(frozen=True, slots=True)
class Spark:
    """Values at equal time steps, drawn small; `ends` label the first and the last step."""

    title: str
    values: tuple[float, ...]
    ends: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Beside:
    """Small blocks, side by side if there is room."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind a summary line, closed unless `open`.

    `id` is its link target: a value of a table links to it, and it links back. A browser may draw the blocks
    of a fold that is drawn `later` when somebody opens it; such a fold has an `id` and holds no charts.
    """

    summary: str
    blocks: tuple[Block, ...]
    open: bool = False
    id: str = ""
    later: bool = False


Block = Paragraph | Bullets | Facts | Code | Table | Legend | Chart | Gallery | Flame | Spark | Beside | Fold


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of the report; `id` is its link target."""

    id: str
    title: str
    blocks: tuple[Block, ...]


def filled_section(id: str, title: str, *blocks: Block | None) -> Iterator[Section]:
    """Yield a section of the blocks that are not None; no section without any."""
    found = tuple(block for block in blocks if block is not None)
    if found:
        yield Section(id, title, found)


@dataclass(frozen=True, slots=True)
class Step:
    """A suggested next step, with the command to run if there is one.

    A step is `careful` if it locks a table or destroys something; its text says so first.
    """

    text: str
    command: str = ""
    careful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report: the answer first, then its support.

    `tally` counts verdicts by their words. `facts` are labels and values about the run. `variants` are in the
    order of the experiment, and `baseline` is one of them; for a load they are the series of its charts.
    `heading` is the title over the reasons.
    """

    title: str
    question: str
    answer: str
    reasons: tuple[str, ...]
    steps: tuple[Step, ...]
    tally: tuple[tuple[Verdict, str, int], ...] = ()
    facts: tuple[tuple[str, str], ...]
    variants: tuple[str, ...] = ()
    baseline: str = ""
    sections: tuple[Section, ...]
    version: str
    heading: str = "What to know"

    @property
    def headline(self) -> str:
        """The first sentence of the answer."""
        return split_answer(self.answer)[0]

    @property
    def lead(self) -> str:
        """The sentences of the answer after the first one."""
        return split_answer(self.answer)[1]
