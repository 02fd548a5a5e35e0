"""Tables and charts, and the files they are had as."""

import csv
import io
import math
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from fakes.results import large_result
from uncork.errors import UsageError
from uncork.model.verdict import Verdict
from uncork.report.blocks import (
    Column,
    Document,
    DotChart,
    DotMark,
    ForestChart,
    ForestMark,
    Layer,
    Line,
    LineChart,
    Section,
    StackChart,
    Table,
    Value,
)
from uncork.report.draw.charts import Axis, bands, draw, plot_within
from uncork.report.draw.marks import SHAPES, Palette, cut, number, symbol, text_width
from uncork.report.experiment.document import build_document
from uncork.report.write.exports import FORMS, export, exports, files_of

PALETTE = Palette(("char", "uuid", "<bytea>"), "char")
SVG = "{http://www.w3.org/2000/svg}"
LINES = LineChart(
    "Latency",
    "Time by rows.",
    "factor",
    "rows",
    "time",
    "ns",
    (
        Line("char", ((1_000, 1e6), (10_000, 4e6), (100_000, 1.6e7))),
        Line("uuid", ((1_000, 1e6), (100_000, 2e6))),
    ),
    ("char", "uuid"),
)
FOREST = ForestChart(
    "Effects",
    "Change.",
    (
        ForestMark("small & quick", "uuid", Verdict.FASTER, 0.5, 0.4, 0.6, 0.55),
        ForestMark("small & quick", "<bytea>", Verdict.NOT_ENOUGH_EVIDENCE, 1.0, None, None, None),
        ForestMark("a label " * 20, "uuid", Verdict.SLOWER, 2.0, 1.5, 2.5, None),
    ),
    ("char", "uuid", "<bytea>"),
    0.05,
    0.02,
    "lower",
)
DOTS = DotChart(
    "Times",
    "By phase.",
    "ns",
    (DotMark("parse", "char", 1e6, 5e5, 2e6), DotMark("execute", "uuid", 1e9)),
    ("char", "uuid"),
)
STACK = StackChart(
    "Busy",
    "Sessions.",
    "sessions",
    1_767_225_600,
    10,
    (
        Layer("cpu", (1.0, 3.0, 2.0)),
        Layer("io", (1.0, 0.0, 0.01)),
        Layer("others", (0.5, 0.5, 0.5), rest=True),
    ),
)
CHARTS = {
    "lines": LINES,
    "limits": replace(
        LINES, axis="time", from_zero=True, limits=((2e7, "limit"),), shaded=(2e4, 4e4), wide=True
    ),
    "quantiles": replace(
        LINES, axis="quantile", lines=(Line("char", ((0.5, 1e6), (0.999, 5e6), (1.0, 9e6))),)
    ),
    "one point": replace(LINES, lines=(Line("char", ((5, 1e6),)),)),
    "nothing": replace(LINES, lines=()),
    "forest": FOREST,
    "dots": DOTS,
    "stack": STACK,
}


def parts(chart, kind, tag):
    drawing = ElementTree.fromstring(draw(chart, PALETTE, "c"))
    return [
        one
        for group in drawing.iter(f"{SVG}g")
        if group.get("class") == f"mark-{kind}"
        for one in group.iter(f"{SVG}{tag}")
    ]


def places(chart):
    return [
        tuple(map(float, re.search(r"\((.*),(.*)\)", one.get("transform")).groups()))
        for one in parts(chart, "symbol", "path")
    ]


@pytest.mark.parametrize("name", CHARTS)
def test_a_drawing_is_whole_and_every_label_has_room(name):
    drawing = ElementTree.fromstring(draw(CHARTS[name], PALETTE, "c-1"))
    assert drawing.find(f"{SVG}title").get("id") == drawing.get("aria-labelledby") == "c-1"
    width, height = float(drawing.get("width")), float(drawing.get("height"))
    (group,) = drawing.findall(f"{SVG}g")
    left, top = map(float, re.search(r"\((.*),(.*)\)", group.get("transform")).groups())
    for label in group.iter(f"{SVG}text"):
        long = text_width(label.text)
        back = {"end": 1.0, "middle": 0.5}.get(label.get("text-anchor"), 0.0)
        start = left + float(label.get("x")) - back * long
        assert start >= 0 and start + long <= width + 0.5, label.text
        assert 10 <= top + float(label.get("y")) <= height
    assert "nan" not in draw(CHARTS[name], PALETTE, "c") and "inf" not in draw(CHARTS[name], PALETTE, "c")


def test_equal_factors_are_equal_distances_on_a_logarithmic_axis():
    (x1, y1), (x2, y2), (x3, y3) = places(LINES)[:3]
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.02)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.02) and y1 > y2


def test_a_scale_from_zero_is_linear():
    chart = replace(LINES, from_zero=True, lines=(Line("char", ((0, 1e6), (1, 2e6), (2, 4e6))),))
    (_, y1), (_, y2), (_, y4) = places(chart)
    assert y2 - y4 == pytest.approx(2 * (y1 - y2), abs=0.03)


def test_the_maximum_has_no_place_among_quantiles():
    (path,) = parts(CHARTS["quantiles"], "line", "path")
    assert path.get("d").count(",") == 2


def test_many_points_over_time_have_no_marks():
    many = tuple((float(n), 1e6 + n) for n in range(60))
    assert places(replace(LINES, axis="time", lines=(Line("char", many),))) == []
    assert len(places(replace(LINES, axis="time", lines=(Line("char", many[:30]),)))) == 30


def test_published_values_are_hollow_diamonds_and_dashed():
    chart = replace(LINES, lines=(replace(LINES.lines[0], style="published"),))
    (path,) = parts(chart, "line", "path")
    marks = parts(chart, "symbol", "path")
    assert path.get("stroke-dasharray") == "5,3"
    assert len(marks) == 3 and all(mark.get("fill") == "var(--card)" for mark in marks)


def test_a_forest_has_gains_left_of_no_change_and_losses_right_of_it():
    (none,) = [
        one
        for one in parts(FOREST, "rule", "line")
        if one.get("stroke") == "var(--soft)" and not one.get("stroke-dasharray")
    ]
    published, faster, open_, slower = (x for x, _ in places(FOREST))
    zero = float(none.get("x1"))
    assert faster < published < zero < slower and open_ == pytest.approx(zero, abs=0.01)
    assert zero - faster == pytest.approx(slower - zero, abs=0.02), (
        "half and double are as far from no change"
    )
    fills = [one.get("fill") for one in parts(FOREST, "symbol", "path")]
    assert fills == ["var(--card)", "var(--v1)", "var(--card)", "var(--v1)"]


def test_an_unbounded_interval_ends_at_the_edges_of_the_plot():
    found = [one for one in parts(FOREST, "rule", "line") if one.get("stroke") == "var(--v2)"]
    grid = [one for one in parts(FOREST, "rule", "line") if one.get("y1") == one.get("y2")]
    (axis,) = [one for one in grid if one.get("stroke") == "var(--grid)"]
    assert float(found[0].get("x1")) == 0 and float(found[0].get("x2")) == float(axis.get("x2")) - 0.5


def test_intervals_of_dots_are_drawn_only_where_there_are_some():
    drawn = [one for one in parts(DOTS, "rule", "line") if one.get("stroke-width") == "1.6"]
    assert len(drawn) == 1 and len(places(DOTS)) == 2


def test_layers_lie_on_each_other_and_thick_ones_have_their_number():
    heights = []
    for area in parts(STACK, "area", "path"):
        ys = [float(y) for y in re.findall(r"V([\d.]+)", area.get("d"))]
        heights.append([low - top for top, low in zip(ys[:3], ys[:2:-1], strict=True)])
    unit = heights[0][0]
    assert heights[0] == pytest.approx([unit, 3 * unit, 2 * unit], abs=0.1)
    assert heights[2] == pytest.approx([unit / 2] * 3, abs=0.1)
    shown = [one.text for one in parts(STACK, "text", "text") if one.get("font-weight")]
    assert shown == ["1", "2"]
    opacities = [one.get("fill-opacity") for one in parts(STACK, "area", "path")]
    assert opacities == ["1", "1", "0.4"]


def test_a_long_label_is_cut_and_a_short_one_is_not():
    assert cut("short", 100) == "short"
    assert cut("a long label", 50).endswith("…") and text_width(cut("a long label", 50)) <= 50


def test_bands_fill_their_length():
    starts, width = bands(3, 100, inner=0.25, outer=0.2)
    assert 100 - (starts[-1] + width) == pytest.approx(starts[0])
    assert starts[1] - starts[0] == pytest.approx(width / 0.75)


def test_the_plot_leaves_room_for_the_last_label():
    ticks = (0.0, 1.0)
    narrow = plot_within(Axis(0, 1, ticks, ("0", "a very long label")), ("1",), 300, height=200)
    wide = plot_within(Axis(0, 1, ticks, ("0", "1")), ("1",), 300, height=200)
    assert narrow.width <= wide.width - text_width("a very long label") / 2 + text_width("1") / 2 + 1


def test_the_plot_leaves_room_for_the_first_label():
    plot = plot_within(Axis(0, 1, (0.0, 1.0), ("08:36:21", "1")), ("1",), 300, height=200)
    assert plot.left >= text_width("08:36:21") / 2


def test_every_shape_is_as_large_as_the_others():
    for shape in SHAPES:
        numbers = [
            float(one)
            for one in re.findall(r"-?[\d.]+", re.search('d="([^"]*)"', symbol(shape, 0, 0, 100, ""))[1])
        ]
        assert max(map(abs, numbers)) == pytest.approx(5, rel=0.25), shape
    assert len(SHAPES) == 8


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1"), (1.5, "1.5"), (2 / 3, "0.67"), (-0.001, "0"), (120, "120")]
)
def test_coordinates_are_short(value, shown):
    assert number(value).replace("-0", "0") == shown


def test_a_page_is_written_without_a_library_that_draws():
    code = (
        "import sys, uncork.report.write.html\n"
        "print([name for name in ('altair', 'vl_convert', 'pandas', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_axis_of_one_value_has_it_in_the_middle():
    ((x, _),) = places(CHARTS["one point"])
    plot = plot_within(Axis(5, 5, (5,), ("5",)), ("1.2 ms",), 340, height=228)
    assert math.isclose(x, plot.width / 2, abs_tol=6)


def document_of(*blocks):
    section = Section("s", "Section", blocks)
    return Document(
        title="t",
        question="q",
        answer="a",
        reasons=(),
        steps=(),
        facts=(),
        variants=("x",),
        baseline="x",
        sections=(section,),
        version="0",
    )


def rows(data):
    return list(csv.reader(io.StringIO(data.decode())))


def test_every_chart_and_table_of_a_report_is_had_in_each_form_it_has():
    document = build_document(large_result())
    found = exports(document)
    assert len(found) > 20 and {one.forms for one in found} == {("csv",), tuple(FORMS)}
    drawn = next(one for one in found if "svg" in one.forms)
    svg = export(document, drawn.number, "svg").decode()
    assert "var(" not in svg and svg.startswith("<svg") and 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert export(document, drawn.number, "png").startswith(b"\x89PNG")
    ElementTree.fromstring(svg)
    lines = next(one for one in found if one.section == "Latency distributions")
    table = rows(export(document, lines.number, "csv"))
    assert table[0][:2] == ["variant", "style"] and len(table) > 5
    float(table[1][2]), float(table[1][3])


@pytest.mark.parametrize(("number", "form"), [(0, "csv"), (-1, "csv"), (2, "csv"), (1, "svg"), (1, "exe")])
def test_what_there_is_not_is_refused(number, form):
    document = document_of(Table("c", (Column("a"),), ((Value("1"),),)))
    with pytest.raises(UsageError, match=r"there is no number|not available as"):
        export(document, number, form)


def test_a_figure_for_people_is_followed_by_its_number():
    table = Table("c", (Column("name"), Column("time")), ((Value("a"), Value("1.50 ms", sort=1.5e6)),))
    expected = [["name", "time", "time (ns)"], ["a", "1.50 ms", "1500000.0"]]
    assert rows(export(document_of(table), 1, "csv")) == expected


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "\t=1"])
def test_text_that_a_spreadsheet_would_carry_out_is_kept_as_text(text):
    table = Table("c", (Column("name"),), ((Value(text),),))
    assert rows(export(document_of(table), 1, "csv"))[1][0].startswith("'")


@pytest.mark.parametrize("text", ["-0.8 %", "+14 %", "−3 %", "varchar", "a, b"])
def test_figures_stay_as_they_are(text):
    table = Table("c", (Column("name"),), ((Value(text),),))
    assert rows(export(document_of(table), 1, "csv"))[1][0] == text


def test_a_stack_is_a_column_a_layer():
    chart = StackChart("t", "d", "y", 100, 10, (Layer("a", (1.0, 2.0)), Layer("b", (3.0, 4.0))))
    assert rows(export(document_of(chart), 1, "csv")) == [
        ["seconds since 1970", "a (y)", "b (y)"],
        ["100", "1.0", "3.0"],
        ["110", "2.0", "4.0"],
    ]


EXPORTS_LINES = LineChart(
    "Latency <p99>",
    "d",
    "time",
    "seconds",
    "latency",
    "ns",
    (Line("x", ((0.0, 1e6), (1.0, 2e6))),),
    ("x", "never drawn"),
)


def test_a_drawing_that_is_saved_tells_its_title_what_is_drawn_and_whence():
    told = "".join(ElementTree.fromstring(export(document_of(EXPORTS_LINES), 1, "svg").decode()).itertext())
    for words in ("Latency <p99>", "latency", "x (baseline)", "uncork 0"):
        assert words in told
    assert "never drawn" not in told


def test_a_drawing_is_had_for_light_and_for_dark_slides():
    light, dark = (export(document_of(EXPORTS_LINES), 1, form).decode() for form in ("svg", "dark.svg"))
    assert 'fill="#ffffff"' in light and 'fill="#1b1f23"' in dark and "#1b1f23" not in light
    pictures = [export(document_of(EXPORTS_LINES), 1, form) for form in ("png", "dark.png")]
    assert all(one.startswith(b"\x89PNG") for one in pictures) and pictures[0] != pictures[1]


def test_figures_bear_their_unit():
    assert rows(export(document_of(EXPORTS_LINES), 1, "csv"))[0] == [
        "variant",
        "style",
        "seconds",
        "latency (ns)",
    ]
    dots = DotChart("t", "d", "share", (DotMark("a", "x", 0.5, 0.25, 0.75),), ("x",))
    assert rows(export(document_of(dots), 1, "csv")) == [
        ["label", "variant", "value (share of 1)", "low (share of 1)", "high (share of 1)"],
        ["a", "x", "0.5", "0.25", "0.75"],
    ]
    odd = Table("c", (Column("rank"),), ((Value("1st", sort=1),),))
    assert rows(export(document_of(odd), 1, "csv"))[0] == ["rank", "rank (number)"]


def test_each_drawing_and_table_of_a_page_knows_its_files():
    document = document_of(EXPORTS_LINES, Table("c", (Column("a"),), ((Value("1"),),)))
    files = files_of(document, lambda number, form: f"/{number}.{form}")
    table = files[id(document.sections[0].blocks[1])]
    assert table == (("CSV", "c as CSV", "/2.csv"),)
    assert [address for _, _, address in files[id(EXPORTS_LINES)]] == [f"/1.{form}" for form in FORMS]
