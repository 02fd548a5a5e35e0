"""A statement for one row becomes one for many rows in arrays, or a sentence says why it cannot."""

from __future__ import annotations

import pytest

from fakes.goldens import compare_answers
from uncork.experiment.cure.loops import many_rows
from uncork.experiment.cure.setups import Refused

TYPES = {1: "integer", 2: "text", 3: "text"}


def best(sql):
    return many_rows(sql, TYPES)[0]


def test_statements_for_many_rows_and_reasons_why_there_are_none():
    def answer(sql):
        try:
            found = many_rows(sql, TYPES)
        except Refused as refused:
            return f"refused: {refused}"
        lines = []
        for many in found:
            keys = ", ".join(f"${key}" for key in sorted(many.keys))
            lines += [many.sql, f"-- keys: {keys}; columns added: {many.added}", *many.assumed]
        return "\n".join(lines)

    compare_answers("cure/many_rows", answer)


def test_an_array_cannot_become_an_array_of_arrays():
    with pytest.raises(Refused, match="array already"):
        many_rows("SELECT * FROM item WHERE id = ANY ($1)", {1: "integer[]"})


def test_a_counter_says_that_the_same_row_must_be_summed_up():
    found = best("UPDATE counter SET n = n + $1 WHERE name = $2")
    assert any("summed up" in text for text in found.assumed)
