"""Traces of arrivals: what is read, and what is refused with its line."""

import pytest

from uncork.errors import UsageError
from uncork.load.recording import parse_trace


def test_offsets_are_nanoseconds_from_the_beginning():
    text = "# recorded on a Monday\n0\n\n0.25\n  0.25\n1e-1e\n".replace("1e-1e", "2.5e1")
    assert parse_trace(text, "t") == (0, 250_000_000, 250_000_000, 25_000_000_000)


@pytest.mark.parametrize(("text", "expected"), [
    ("0\nsoon\n", r't\.txt:2: expected seconds .*found "soon"'),
    ("-1\n", r't\.txt:1: expected seconds .*found "-1"'),
    ("nan\n", r't\.txt:1: expected seconds .*found "nan"'),
    ("inf\n", r't\.txt:1: expected seconds .*found "inf"'),
    ("1\n\n0.5\n", r"t\.txt:3: 0\.5 s is earlier than the line before; sort"),
    ("# nothing\n", r"t\.txt: the trace has no arrivals"),
    ("", r"t\.txt: the trace has no arrivals"),
])  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text, expected):
    with pytest.raises(UsageError, match=expected):
        parse_trace(text, "t.txt")
