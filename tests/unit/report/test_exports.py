import csv
import io
from xml.etree import ElementTree

import pytest

from fakes.results import large_result
from uncork.errors import UsageError
from uncork.report.blocks import (
    Column,
    Document,
    DotChart,
    DotMark,
    Layer,
    Line,
    LineChart,
    Section,
    StackChart,
    Table,
    Value,
)
from uncork.report.experiment.document import build_document
from uncork.report.write.exports import FORMS, export, exports, files_of


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


LINES = LineChart(
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
    told = "".join(ElementTree.fromstring(export(document_of(LINES), 1, "svg").decode()).itertext())
    for words in ("Latency <p99>", "latency", "x (baseline)", "uncork 0"):
        assert words in told
    assert "never drawn" not in told


def test_a_drawing_is_had_for_light_and_for_dark_slides():
    light, dark = (export(document_of(LINES), 1, form).decode() for form in ("svg", "dark.svg"))
    assert 'fill="#ffffff"' in light and 'fill="#1b1f23"' in dark and "#1b1f23" not in light
    pictures = [export(document_of(LINES), 1, form) for form in ("png", "dark.png")]
    assert all(one.startswith(b"\x89PNG") for one in pictures) and pictures[0] != pictures[1]


def test_figures_bear_their_unit():
    assert rows(export(document_of(LINES), 1, "csv"))[0] == ["variant", "style", "seconds", "latency (ns)"]
    dots = DotChart("t", "d", "share", (DotMark("a", "x", 0.5, 0.25, 0.75),), ("x",))
    assert rows(export(document_of(dots), 1, "csv")) == [
        ["label", "variant", "value (share of 1)", "low (share of 1)", "high (share of 1)"],
        ["a", "x", "0.5", "0.25", "0.75"],
    ]
    odd = Table("c", (Column("rank"),), ((Value("1st", sort=1),),))
    assert rows(export(document_of(odd), 1, "csv"))[0] == ["rank", "rank (number)"]


def test_each_drawing_and_table_of_a_page_knows_its_files():
    document = document_of(LINES, Table("c", (Column("a"),), ((Value("1"),),)))
    files = files_of(document, lambda number, form: f"/{number}.{form}")
    table = files[id(document.sections[0].blocks[1])]
    assert table == (("CSV", "c as CSV", "/2.csv"),)
    assert [address for _, _, address in files[id(LINES)]] == [f"/1.{form}" for form in FORMS]
