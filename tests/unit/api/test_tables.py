"""Tables in each form, what is said of a missing library, and how notebooks draw them."""

import sys

import pyarrow as pa
import pytest

from fakes.results import large_result
from uncork.analysis.experiment.comparisons import comparisons_table
from uncork.api.tables import Table
from uncork.errors import UsageError
from uncork.model.extras import install_extra

TABLE = Table(pa.table({"name": ["a", "<b>"], "n": [1, None], "share": [0.25, 1 / 3]}))


def test_the_same_rows_come_in_every_form():
    rows = [{"name": "a", "n": 1, "share": 0.25}, {"name": "<b>", "n": None, "share": 1 / 3}]
    assert TABLE.rows() == list(TABLE) == rows
    assert TABLE.arrow().to_pylist() == TABLE.polars().to_dicts() == rows
    frame = TABLE.pandas()
    assert list(frame.columns) == TABLE.columns == ["name", "n", "share"]
    assert frame["share"].tolist() == [0.25, 1 / 3]
    assert len(TABLE) == 2


def test_libraries_that_speak_arrow_take_it_as_it_is():
    import duckdb
    import polars

    rows = TABLE
    assert pa.table(rows).num_rows == polars.DataFrame(rows).height == 2
    assert duckdb.sql("SELECT sum(n) FROM rows").fetchall() == [(1,)]


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_library_is_told_in_one_line(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError) as caught:
        getattr(TABLE, name)()
    assert str(caught.value) == (
        f"{name} is not installed; use .arrow(), or install it: {install_extra(name)}"
    )


def test_a_notebook_shows_a_table_without_its_markup_and_a_shell_one_line():
    assert TABLE._repr_html_().count("<tr>") == 3
    assert "&lt;b&gt;" in TABLE._repr_html_()
    assert "<b>" not in TABLE._repr_html_()
    assert repr(TABLE) == "<uncork table: 2 rows of name, n, share>"
    long = Table(pa.table({"n": list(range(50))}))
    assert "20 of 50 rows" in long._repr_html_()


def test_comparisons_are_a_table_with_a_row_each():
    comparisons = large_result().comparisons
    rows = comparisons_table(comparisons).to_pylist()
    assert len(rows) == len(comparisons)
    for row, one in zip(rows, comparisons, strict=True):
        assert (row["ratio"], row["low"], row["verdict"]) == (one.ratio, one.low, one.verdict.value)
        assert row["cell"].count("=") == len(one.cell)
    assert comparisons_table(()).schema == comparisons_table(comparisons).schema
