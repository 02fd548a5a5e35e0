"""The graph of foreign keys: where nodes stand, what the drawing and the export say."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.database_results import database_result
from uncork.model.results.database import ForeignKeyFacts
from uncork.report.database.graph import foreign_key_dot, foreign_key_graph, foreign_key_svg
from uncork.report.draw.graph_layout import Box, lay_out

SVG = "{http://www.w3.org/2000/svg}"


def overlap(one, other):
    """Say whether two boxes (middle x and y, width, height) share a place."""
    return (
        abs(one[0] - other[0]) < (one[2] + other[2]) / 2 and abs(one[1] - other[1]) < (one[3] + other[3]) / 2
    )


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30),
    st.randoms(use_true_random=False),
)
def test_no_two_boxes_and_no_two_frames_overlap_and_boxes_stand_in_their_frame(sizes, edges, draw):
    islands, key = [], 0
    for size in sizes:
        islands.append(list(range(key, key + size)))
        key += size
    boxes = {one: Box(draw.uniform(20, 160), draw.uniform(40, 100)) for one in range(key)}
    layout = lay_out(islands, [edge for edge in edges if max(edge) < key], boxes, 800)
    stand = {
        one: (place.x, place.y, boxes[one].width, boxes[one].height) for one, place in layout.places.items()
    }
    assert set(stand) == set(range(key))
    everyone = sorted(stand)
    assert not any(overlap(stand[a], stand[b]) for a in everyone for b in everyone if a < b)
    frames = [(x + w / 2, y + h / 2, w, h) for x, y, w, h in layout.frames]
    assert not any(overlap(a, b) for n, a in enumerate(frames) for b in frames[n + 1 :])
    for members, (left, top, width, height) in zip(islands, layout.frames, strict=True):
        for one in members:
            x, y, wide, high = stand[one]
            assert left <= x - wide / 2 and x + wide / 2 <= left + width
            assert top <= y - high / 2 and y + high / 2 <= top + height
    assert all(left + width <= layout.width + 1e-6 for left, _, width, _ in layout.frames)


def test_the_same_graph_is_always_drawn_the_same():
    assert foreign_key_svg(database_result()) == foreign_key_svg(database_result())


def test_the_drawing_holds_tables_by_size_and_marks_keys_without_index():
    drawing = ElementTree.fromstring(foreign_key_svg(database_result()))
    titles = {one.findtext(f"{SVG}title"): one for one in drawing.iter(f"{SVG}g")}
    assert set(titles) == {"invoice, 11.8 GB", "account, 112 MB", "remark, 1.25 MB"}
    radius = {name: float(one.find(f"{SVG}circle").get("r")) for name, one in titles.items()}
    assert radius["account, 112 MB"] < radius["invoice, 11.8 GB"] == 34
    edges = {
        one.findtext(f"{SVG}title"): one
        for one in drawing.iter(f"{SVG}path")
        if one.find(f"{SVG}title") is not None
    }
    assert edges["invoice (account) references account: no index"].get("stroke-dasharray")
    assert not edges["remark (invoice) references invoice"].get("stroke-dasharray")
    assert "C" in edges["remark (answer) references remark"].get("d"), "one to itself is a loop"
    assert "island 1: 3 tables, 11.9 GB" in "".join(drawing.itertext())
    style = drawing.findtext(f"{SVG}style")
    used = set(re.findall(r"var\(--(\w+)\)", foreign_key_svg(database_result())))
    assert used <= set(re.findall(r"--(\w+):", style))


def test_names_are_data_in_the_drawing_and_in_the_export():
    result = database_result()
    (first, *others) = result.tables
    wild = replace(first, name='<b>"a"&\n')
    named = replace(result, tables=(wild, *others))
    assert '<b>"a"' not in foreign_key_svg(named)
    ElementTree.fromstring(foreign_key_svg(named))
    assert r'[label="<b>\"a\"&\n\n11.8 GB"]' in foreign_key_dot(named)


def test_without_foreign_keys_there_is_no_graph_and_the_export_is_empty():
    bare = database_result(foreign_keys=(), islands=())
    assert foreign_key_graph(bare) is None
    assert "There are none" in foreign_key_svg(bare)
    assert "->" not in foreign_key_dot(bare)


def test_of_many_tables_the_largest_islands_are_drawn():
    assert foreign_key_graph(database_result(), most=1).note.endswith("with its indexes.")
    key = ForeignKeyFacts("k", "event", 2, "event", 2, "parent", True)
    result = database_result()
    event = next(one for one in result.tables if one.name == "event")
    second = replace(result.islands[0], number=2, tables=("event",), bytes=1)
    more = replace(
        result,
        tables=(*(one for one in result.tables if one is not event), replace(event, island=2)),
        islands=(*result.islands, second),
        foreign_keys=(*result.foreign_keys, key),
    )
    assert len(foreign_key_graph(more).nodes) == 4
    few = foreign_key_graph(more, most=3)
    assert len(few.nodes) == 3 and "1 more table in islands not drawn" in few.note
    assert all(edge.source != 2 for edge in few.edges)


@pytest.mark.parametrize("number", [60, 150])
def test_a_large_island_is_laid_out_without_overlaps(number):
    boxes = {one: Box(100, 50) for one in range(number)}
    layout = lay_out([list(range(number))], [(one, one // 3) for one in range(1, number)], boxes, 800)
    stand = [(place.x, place.y, 100, 50) for place in layout.places.values()]
    assert not any(overlap(a, b) for n, a in enumerate(stand) for b in stand[n + 1 :])
