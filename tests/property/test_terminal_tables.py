"""Tables in a terminal: no line is longer than it, and no word is broken, however narrow it is."""

import re
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from uncork.report.blocks import Column, Table, Value
from uncork.report.write.terminal_text import write_rows

LONGEST = 18
WORDS = st.text("abcxyz_=()", min_size=1, max_size=LONGEST)
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
VALUES = st.builds(Value, TEXTS, note=st.one_of(st.just(""), TEXTS))
COLUMNS = st.builds(Column, TEXTS, number=st.just(False), header=st.booleans())


@st.composite
def tables(draw):
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=7))
    row = st.tuples(*[VALUES for _ in columns])
    return Table("", tuple(columns), tuple(draw(st.lists(row, min_size=1, max_size=4))))


@given(tables(), st.integers(40, 140))
def test_no_line_is_too_long_and_no_word_is_broken(table, width):
    output = StringIO()
    write_rows(Console(file=output, width=width, color_system=None, _environ={}), table)
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    shown = set(re.findall(r"[abcxyz_=()]+", output.getvalue()))
    words = {word for row in table.rows for one in row for word in f"{one.text} {one.note}".split()}
    assert words <= shown
