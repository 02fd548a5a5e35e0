"""Tables whose columns are declared with their cells, words for shares, and the graph of foreign keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.database_results import database_result
from uncork.model.units import share_text
from uncork.report.blocks import Table, Value
from uncork.report.cells import (
    column,
    facts_table,
    folded_if_long,
    header,
    not_shown,
    number,
    table_if_any,
    table_of,
    without_empty_columns,
)
from uncork.report.database.graph import foreign_key_dot
from uncork.report.words import step_text


def titles(table: Table) -> list[str]:
    return [shown.title for shown in table.columns]


def test_each_column_makes_its_cell_from_the_item_of_the_row():
    table = table_of(
        "Words", ["a", "bb"], header("word", str.upper), number("length", lambda word: str(len(word)))
    )
    assert table.rows == ((Value("A"), Value("1")), (Value("BB"), Value("2")))
    assert [(shown.header, shown.number) for shown in table.columns] == [(True, False), (False, True)]


def test_a_column_whose_condition_does_not_hold_is_left_out_and_makes_no_cell():
    table = table_of("", [0], number("of it", lambda count: str(1 // count), when=False), column("", ["x"]))
    assert titles(table) == [""]
    assert table.rows == ((Value("x"),),)


def test_cells_that_are_given_must_be_as_many_as_the_items():
    with pytest.raises(ValueError, match="shorter"):
        table_of("", [1, 2], column("all", ["a", "b"]), column("too few", ["a"]))


def test_without_items_there_is_no_table():
    assert table_if_any("", [], column("", str)) is None
    assert table_of("", [], column("", str)).rows == ()


def test_columns_that_are_empty_are_left_out_except_headers_and_named_ones():
    table = table_of("", [1], header("a", [""]), number("b", [""]), number("c", [""]), number("d", ["1"]))
    assert titles(without_empty_columns(table, "c")) == ["a", "c", "d"]


def test_a_long_table_is_folded():
    table = facts_table("Facts", [("a", "1"), ("b", "2")])
    assert folded_if_long(table, 2) is table
    assert folded_if_long(table, 1).summary == "Facts (2 rows)"


@pytest.mark.parametrize(
    ("left", "words"), [(-1, ""), (0, ""), (1, "; 1 other not shown"), (2, "; 2 others not shown")]
)
def test_a_caption_says_how_much_is_left_out(left, words):
    assert not_shown(left, "other") == words


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.0004, "under 0.1 %"),
        (0.004, "0.4 %"),
        (0.0949, "9.5 %"),
        (0.62, "62 %"),
        (0.986, "99 %"),
        (0.9925, "99.2 %"),
        (0.9996, "over 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_only_the_whole_is_100_percent_and_only_nothing_is_0(share, text):
    assert share_text(share) == text


def test_steps_of_time_are_told_in_their_own_unit():
    assert [step_text(seconds) for seconds in (1, 30, 300, 21_600, 604_800)] == [
        *("1 s", "30 s", "5 min", "6 h", "7 d")
    ]


def test_names_are_data():
    result = database_result()
    (first, *others) = result.tables
    wild = replace(first, name='<b>"a"&\n')
    named = replace(result, tables=(wild, *others))
    assert r'[label="<b>\"a\"&\n\n11.8 GB"]' in foreign_key_dot(named)


def test_without_foreign_keys_it_has_no_arrow():
    bare = database_result(foreign_keys=(), islands=())
    assert "->" not in foreign_key_dot(bare)
