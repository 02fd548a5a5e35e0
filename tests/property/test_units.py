"""What is written with a unit can be read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.model.units import (
    format_bytes,
    format_count,
    format_duration,
    format_percent,
    parse_duration,
    parse_share,
)

UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " ", "  "]))
def test_a_whole_number_of_any_unit_is_read_exactly(number, unit, space):
    assert parse_duration(f"{number}{space}{unit}") == number * UNITS[unit]
    assert parse_duration(f" {number:_}{space}{unit} ") == number * UNITS[unit]


@given(st.integers(0, 119_999_999_999))
def test_a_time_that_is_shown_is_read_again_to_three_digits(nanoseconds):
    assert parse_duration(format_duration(nanoseconds)) == pytest.approx(nanoseconds, rel=0.0051)


@given(st.integers(120 * 10**9, 10**15))
def test_long_times_are_shown_in_minutes_and_seconds(nanoseconds):
    minutes, word, seconds, unit = format_duration(nanoseconds).split()
    assert (word, unit) == ("min", "s")
    assert int(seconds) < 60
    assert int(minutes) * 60 + int(seconds) == pytest.approx(nanoseconds / 1e9, abs=0.51)


@given(st.integers(0, 10_000))
def test_a_percentage_is_read_as_a_fraction(hundredths):
    assert parse_share(f"{hundredths / 100}%") == pytest.approx(hundredths / 10_000)


@given(st.integers(0, 10**15))
def test_a_size_that_is_shown_is_right_to_three_digits(size):
    number, unit = format_bytes(size).split()
    assert float(number) * SIZES[unit] == pytest.approx(size, rel=0.0051)


@given(st.integers(-(10**12), 10**12))
def test_a_whole_number_is_shown_in_full(number):
    assert int(format_count(number).replace(" ", "")) == number


@given(st.floats(0.001, 999))
def test_a_fraction_is_shown_to_three_digits(number):
    assert float(format_count(number)) == pytest.approx(number, rel=0.0051)


@given(st.floats(0.01, 100))
def test_a_change_has_the_sign_of_its_direction(ratio):
    text = format_percent(ratio)
    change = float(text.removesuffix(" %").replace("−", "-").replace("±", ""))
    assert change == pytest.approx((ratio - 1) * 100, abs=0.51)
    assert text[0] == ("±" if change == 0 else "+" if change > 0 else "−")


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_with_what_was_expected(text):
    for read, word in (
        (parse_duration, "expected a time with a unit"),
        (parse_share, "expected a percentage"),
    ):
        try:
            assert read(text) >= 0
        except ValueError as error:
            assert str(error).startswith(word)
