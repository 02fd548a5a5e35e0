"""Answers in the form that all engines share."""

import datetime
import uuid
from decimal import Decimal

import pytest

from uncork.model.answer import Answer, canonical, difference, digest, plain

EAST = datetime.timezone(datetime.timedelta(hours=5, minutes=45))


@pytest.mark.parametrize(("values", "text"), [
    ([None], None),
    ([5, Decimal("5"), Decimal("5.00"), Decimal("5E+0")], "=5"),
    ([True, 1], "=1"),
    ([Decimal("-0.250")], "=-0.25"),
    ([Decimal("-0.0"), 0, False], "=0"),
    ([Decimal("1E+3"), 1000], "=1000"),
    ([0.1], "~0.1"),
    ([float("nan"), Decimal("NaN")], "~nan"),
    (["a"], "'a"),
    ([b"\x01\xff", bytearray(b"\x01\xff"), memoryview(b"\x01\xff")], "x01ff"),
    ([datetime.datetime(2024, 3, 31, 1, 30), "2024-03-31 01:30:00"], "'2024-03-31 01:30:00"),
    ([datetime.date(2024, 3, 31), datetime.datetime(2024, 3, 31), "2024-03-31",
      "2024-03-31 00:00:00"], "'2024-03-31"),
    ([datetime.datetime(2024, 3, 31, 5, 45, tzinfo=EAST),
      datetime.datetime(2024, 3, 31, tzinfo=datetime.UTC)], "'2024-03-31 00:00:00+00"),
    ([datetime.timedelta(hours=1)], "'1:00:00"),
    ([uuid.UUID(int=171), "00000000-0000-0000-0000-0000000000ab"],
     "'00000000-0000-0000-0000-0000000000ab"),
    ([[1, None, "a"], (1, None, "a")], '[["=1", null, "\'a"]'),
    ([{"b": 1, "a": 2.5}], '[{"a": "~2.5", "b": "=1"}'),
    ([""], "'"),
])  # fmt: skip
def test_the_same_value_of_several_drivers_is_one_text(values, text):
    assert [canonical(value) for value in values] == [text] * len(values)


def test_what_differs_stays_apart():
    values = [None, "", 0, "0", 0.5, "0.5", b"0", datetime.date(2024, 1, 1), [0]]
    assert len({canonical(value) for value in values}) == len(values)


def test_a_value_is_shown_as_a_person_writes_it():
    assert [plain(canonical(value)) for value in (None, 5, "a", 0.25)] == [None, "5", "a", "0.25"]


def answer(*rows):
    return [Answer(1, "report", tuple(tuple(map(canonical, row)) for row in rows))]


def test_order_matters_only_where_it_is_asked_for():
    one, other = answer(("a", 1), ("b", 2)), answer(("b", 2), ("a", 1))
    assert difference(one, other, ordered=False) is None
    assert difference(one, other, ordered=True) is not None
    assert digest(one[0].rows, ordered=False) == digest(other[0].rows, ordered=False)
    assert digest(one[0].rows, ordered=True) != digest(other[0].rows, ordered=True)


def test_floats_are_compared_by_a_tolerance_also_where_a_digest_would_cut_between_them():
    # Both lie at the edge of the ninth digit, one on each side.
    one, other = 1.000000005 - 1e-12, 1.000000005 + 1e-12
    assert digest(answer((one,))[0].rows, ordered=True) != digest(answer((other,))[0].rows, ordered=True)
    assert difference(answer((one,)), answer((other,)), ordered=False) is None
    assert difference(answer((one,)), answer((one * (1 + 1e-8),)), ordered=False) is not None


def test_rows_meet_by_what_is_exact_and_not_by_a_rounded_fraction():
    low, high = 1.000000005 - 1e-12, 1.000000005 + 1e-12
    expected, found = answer((low, "b"), (high, "a")), answer((high, "b"), (low, "a"))
    assert difference(expected, found, ordered=False) is None


def test_a_float_may_stand_for_an_exact_number_but_exact_numbers_must_be_the_same():
    assert difference(answer((Decimal("2.5000"),)), answer((2.5,)), ordered=True) is None
    assert difference(answer((7,)), answer((7.0,)), ordered=True) is None
    big = 10**18
    assert difference(answer((big,)), answer((big + 1,)), ordered=True) is not None
    assert difference(answer((1.0,)), answer(("1.0",)), ordered=True) is not None


def test_the_first_row_that_differs_is_named():
    expected = answer(("Asia/Kolkata", "2024-03-31 05:30:00", 3), ("UTC", "2024-03-31", None))
    found = answer(("UTC", "2024-03-31", None), ("Asia/Kolkata", "2024-03-31 05:00:00", 3))
    assert difference(expected, found, ordered=False) == (
        "the first row that differs in sorted order is row 1: (Asia/Kolkata, 2024-03-31 05:00:00, 3) "
        "where the baseline gives (Asia/Kolkata, 2024-03-31 05:30:00, 3) (report, operation 1)"
    )


def test_rows_that_are_missing_or_too_many_are_told():
    assert difference(answer((1,), (2,)), answer((1,)), ordered=False) == (
        "1 row where the baseline gives 2; the first row that differs in sorted order is row 2: "
        "it lacks (2) (report, operation 1)"
    )
    assert "only it has (NULL)" in (difference(answer((1,)), answer((1,), (None,)), ordered=True) or "")
    assert difference(answer((1,)), [], ordered=True) == "0 answers where the baseline gives 1"
