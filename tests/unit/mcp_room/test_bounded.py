"""Documents are cut to a size that a language model can read, and say so."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.errors import UsageError
from uncork.mcp.job import bounded, part_of, plain

DOCUMENT = {"answer": "key is faster", "plans": [{"text": "Seq Scan"}, {"text": "Index Scan"}], "cells": []}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(max_size=3), below),
)


def size(value):
    return len(json.dumps(value, ensure_ascii=False))


def test_a_short_document_is_not_cut():
    found = bounded(DOCUMENT, size(DOCUMENT))
    assert (found.value, found.cut) == (DOCUMENT, [])


def test_lists_keep_their_first_entries_and_texts_their_beginning():
    long = {"answer": "yes", "rows": [{"n": n, "text": "x" * 900} for n in range(1000)]}
    found = bounded(long, 20_000)
    assert size(found.value) <= 20_000
    assert found.value["answer"] == "yes"
    (cut,) = found.cut
    kept = found.value["rows"]
    assert cut == {"part": "rows", "shown": len(kept), "of": 1000} and 10 <= len(kept) < 1000
    assert [row["n"] for row in kept] == list(range(len(kept)))
    assert all(row["text"].startswith("xxx") for row in kept)
    assert bounded("x" * 900, 600).value.endswith("… (cut: 900 characters)")


def test_what_cannot_be_cut_is_not_returned_in_part():
    assert bounded({str(number): number for number in range(10_000)}, 1000).value is None


@given(VALUES, st.integers(20, 2000))
def test_no_document_is_longer_than_the_limit(value, limit):
    found = bounded(value, limit)
    assert found.value is None or size(found.value) <= limit
    assert len(found.cut) <= 20


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("", DOCUMENT),
        ("answer", "key is faster"),
        ("plans.1.text", "Index Scan"),
        ("plans.0", {"text": "Seq Scan"}),
    ],
)
def test_a_part_is_found_by_names_and_numbers(part, expected):
    assert part_of(DOCUMENT, part) == expected


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("verdict", 'the result has no part "verdict"; it has answer, plans, cells'),
        ("plans.2", '"plans" has 2 entries, numbered from 0; there is no 2'),
        ("plans.-1", '"plans" has 2 entries, numbered from 0; there is no -1'),
        ("plans.first", '"plans" has 2 entries, numbered from 0; there is no first'),
        ("plans.0.node", '"plans.0" has no part "node"; it has text'),
        ("cells.0", '"cells" has no entries'),
        ("answer.text", '"answer" is a single value and has no parts'),
    ],
)
def test_a_part_that_is_not_there_is_refused_with_what_is(part, message):
    with pytest.raises(UsageError) as refused:
        part_of(DOCUMENT, part)
    assert str(refused.value) == message


def test_values_of_a_database_become_those_of_json():
    moment, price = datetime(2026, 5, 31, tzinfo=UTC), Decimal("1.50")
    found = plain((1, 2.5, float("nan"), float("-inf"), None, True, b"\0\1", moment, price, {"a": [b""]}))
    text = [1, 2.5, "nan", "-inf", None, True, "(2 bytes)", "2026-05-31 00:00:00+00:00", "1.50"]
    assert found == [*text, {"a": ["(0 bytes)"]}]
    json.dumps(found, allow_nan=False)
