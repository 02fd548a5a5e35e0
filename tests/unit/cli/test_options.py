"""What the shared options become, and what they refuse."""

from __future__ import annotations

import pytest

from uncork.cli.options import collect, seconds, server
from uncork.errors import UsageError


def test_levels_are_collected_by_factor():
    options = collect(["rows=10,20", "index=none", "rows=30"], None, "2min", "5%", 7)
    assert options.levels == {"rows": ["10", "20", "30"], "index": ["none"]}
    assert (options.budget_ns, options.precision, options.seed) == (120 * 10**9, 0.05, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["rows"], None, None, None, None), "--set rows: write FACTOR=LEVEL"),
        ((["rows="], None, None, None, None), "--set rows=: write FACTOR=LEVEL"),
        ((None, None, "5", None, None), "--budget: expected a time with a unit"),
        ((None, None, "0s", None, None), "must be above zero"),
        ((None, None, None, "3", None), "--precision: expected a percentage"),
    ],
)
def test_options_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        collect(*arguments)


def test_an_existing_server_and_one_of_our_own_exclude_each_other(tmp_path):
    with pytest.raises(UsageError, match="leave out --pg-bin and --port"):
        server("service=x", tmp_path, None)
    with pytest.raises(UsageError, match="leave out --pg-bin and --port"):
        server("service=x", None, 5555)
    assert server("", None, None).dsn == "", "an empty string means the environment: PGHOST and the like"


def test_a_time_to_last_is_above_zero_and_has_a_unit():
    assert seconds("1.5min", "--for") == 90
    with pytest.raises(UsageError, match="--every: expected a time with a unit"):
        seconds("5", "--every")
    with pytest.raises(UsageError, match="--for must be above zero"):
        seconds("0s", "--for")
