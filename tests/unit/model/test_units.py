import pytest

from uncork.model.units import (
    format_bytes,
    format_count,
    format_duration,
    format_percent,
    parse_duration,
    parse_share,
)


@pytest.mark.parametrize(("text", "nanoseconds"), [
    ("250ms", 250_000_000),
    ("1.5s", 1_500_000_000),
    ("30 min", 1_800_000_000_000),
    ("2h", 7_200_000_000_000),
    ("10us", 10_000),
    ("10µs", 10_000),
    ("7ns", 7),
    ("1_000 s", 1_000_000_000_000),
    ("0.4ns", 0),
])  # fmt: skip
def test_a_time_with_a_unit_is_nanoseconds(text, nanoseconds):
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", "5 S", "5 seconds", "-5s", "5,5s", "1.2.3s", "1__0s", "5%", "1.s"]
)
def test_what_is_no_time_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match='expected a time with a unit, such as "250ms"') as raised:
        parse_duration(text)
    assert str(raised.value).endswith(f'found "{text}"')


def test_a_percentage_is_a_fraction():
    assert parse_share("3%") == 0.03
    assert parse_share(" 2.5 % ") == 0.025


@pytest.mark.parametrize("text", ["", "3", "0.03", "%", "-3%", "3 percent", "3s"])
def test_what_is_no_percentage_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match='expected a percentage, such as "3%"'):
        parse_share(text)


@pytest.mark.parametrize(("nanoseconds", "text"), [
    (0, "0 ns"),
    (999, "999 ns"),
    (999.6, "1.00 µs"),
    (31_300, "31.3 µs"),
    (999_600, "1.00 ms"),
    (2_516_000, "2.52 ms"),
    (100_000_000, "100 ms"),
    (1_500_000_000, "1.50 s"),
    (119_000_000_000, "119 s"),
    (120_000_000_000, "2 min 00 s"),
    (185_400_000_000, "3 min 05 s"),
])  # fmt: skip
def test_a_time_is_shown_in_the_unit_that_suits_it(nanoseconds, text):
    assert format_duration(nanoseconds) == text


@pytest.mark.parametrize(("size", "text"), [
    (0, "0 B"),
    (999, "999 B"),
    (1.25, "1.25 B"),
    (1000, "1.00 kB"),
    (117_300_000, "117 MB"),
    (2e12, "2.00 TB"),
])  # fmt: skip
def test_a_size_is_shown_in_decimal_units(size, text):
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (7, "7"), (1234567, "1 234 567"), (1234.5, "1 234"), (12.345, "12.3"), (0.01234, "0.0123")],
)
def test_a_count_is_shown_with_thousands_apart(number, text):
    assert format_count(number) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.81, "−19 %"), (1.052, "+5.2 %"), (1.0, "±0 %"), (1.0004, "±0 %"), (0.9996, "±0 %"), (6.17, "+517 %")],
)
def test_a_ratio_is_shown_as_a_signed_change(ratio, text):
    assert format_percent(ratio) == text
