"""Offsets of time zones, compared with zoneinfo itself."""

from __future__ import annotations

import datetime
import itertools
import re
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.errors import SpecError
from uncork.experiment.spec.schema import parse_spec
from uncork.experiment.spec.time_zones import offset_ranges, offset_values
from uncork.requests.source import Options, file_source

UTC = datetime.UTC
MINUTE = datetime.timedelta(minutes=1)
NIGHTS = {
    "Asia/Kolkata": ["2024-03-31", "2024-10-27"],  # +5:30, no switch
    "Asia/Kathmandu": ["2024-03-31", "2024-10-27"],  # +5:45, no switch
    "Australia/Lord_Howe": ["2024-04-06", "2024-10-05"],  # switches by 30 minutes
    "America/St_Johns": ["2024-03-10", "2024-11-03"],  # -3:30
    "Europe/Berlin": ["2024-03-31", "2024-10-27"],
    "America/New_York": ["2024-03-10", "2024-11-03"],
    "Pacific/Chatham": ["2024-04-06", "2024-09-28"],  # +12:45
}


def offset_at(ranges, moment):
    (found,) = [one.offset_s for one in ranges if one.start <= moment < one.end]
    return datetime.timedelta(seconds=found)


@pytest.mark.parametrize("name", NIGHTS)
def test_every_minute_of_both_switch_nights_is_what_zoneinfo_says(name):
    zone = ZoneInfo(name)
    ranges = list(offset_ranges(zone, 2024, 2024))
    for night in NIGHTS[name]:
        start = datetime.datetime.fromisoformat(f"{night} 00:00+00:00") - 12 * 60 * MINUTE
        for minute in range(48 * 60):
            moment = start + minute * MINUTE
            assert offset_at(ranges, moment) == moment.astimezone(zone).utcoffset(), moment


def test_a_switch_of_half_an_hour_is_at_its_second():
    ranges = list(offset_ranges(ZoneInfo("Australia/Lord_Howe"), 2024, 2024))
    assert [one.offset_s for one in ranges] == [39600, 37800, 39600]
    assert [one.start for one in ranges[1:]] == [
        datetime.datetime(2024, 4, 6, 15, tzinfo=UTC),
        datetime.datetime(2024, 10, 5, 15, 30, tzinfo=UTC),
    ]


@given(
    st.sampled_from(sorted({*NIGHTS, "Africa/Casablanca", "America/Caracas", "Asia/Pyongyang", "UTC"})),
    st.integers(1990, 2030),
    st.integers(0, 3),
)
def test_ranges_have_no_gaps_and_hold_at_every_hour(name, year, more):
    zone = ZoneInfo(name)
    ranges = list(offset_ranges(zone, year, year + more))
    assert ranges[0].start == datetime.datetime(year, 1, 1, tzinfo=UTC)
    assert ranges[-1].end == datetime.datetime(year + more + 1, 1, 1, tzinfo=UTC)
    assert all(one.end == two.start for one, two in itertools.pairwise(ranges))
    assert all(one.offset_s != two.offset_s for one, two in itertools.pairwise(ranges))
    for one in ranges:
        moment = one.start
        while moment < one.end:
            assert moment.astimezone(zone).utcoffset() == datetime.timedelta(seconds=one.offset_s)
            moment += datetime.timedelta(hours=31)


def test_rows_are_written_as_any_engine_reads_them():
    zones = {name: ZoneInfo(name) for name in ("UTC", "Asia/Kathmandu")}
    assert offset_values(zones, 2024, 2025) == (
        "('Asia/Kathmandu', '2024-01-01 00:00:00', '2026-01-01 00:00:00', 20700),\n"
        "('UTC', '2024-01-01 00:00:00', '2026-01-01 00:00:00', 0)"
    )
    with pytest.raises(ValueError, match="a time zone's name must not contain quotes"):
        offset_values({"it's": ZoneInfo("UTC")}, 2024, 2024)


FILE = """
[experiment]
name = "zones"
question = "?"
[variants.one]
baseline = true
[variants.two]
[time_zones.offsets]
zones = ["Asia/Kolkata"]
first_year = 2024
last_year = 2024
[setup]
sql = "CREATE TABLE o AS SELECT * FROM (VALUES :offsets) AS v"
[workloads.w]
sql = "SELECT 1"
operations = 1
"""


def test_rows_stand_in_set_up_sql_and_are_kept_with_the_run(tmp_path):
    path = tmp_path / "zones.toml"
    path.write_text(FILE)
    source = file_source(path, Options())
    rows = "('Asia/Kolkata', '2024-01-01 00:00:00', '2025-01-01 00:00:00', 19800)"
    assert source.spec.made == {"offsets": rows}
    assert source.files == {"time_zones.offsets.sql": rows}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("Asia/Kolkata", "Asia/Kolkatta"), 'time_zones.offsets.zones: the IANA database has no zone "Asia/Kolkatta"'),
        (("Asia/Kolkata", "../etc"), 'the IANA database has no zone "../etc"'),
        (("last_year = 2024", "last_year = 2023"), "last_year (2023) is before first_year (2024)"),
        ((":offsets", ":offset"), 'uses :offset, which is not a value, factor or parameter; did you mean "offsets"?'),
        (("[setup]", "[factors]\noffsets = [1]\n[setup]"), "time_zones.offsets: is also a variant's value or a factor; rename one of them"),
        (("operations = 1", "operations = 1\nclients = 0"), 'clients: expected a whole number from 1 to 1000'),
        (("operations = 1", 'operations = 1\nclients = ":sessions"'), 'clients: expected a whole number from 1 to 1000, or a factor'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(tmp_path, change, message):
    path = tmp_path / "zones.toml"
    path.write_text(re.sub(re.escape(change[0]), lambda _: change[1], FILE, count=1))
    with pytest.raises(SpecError) as raised:
        file_source(path, Options())
    assert message in str(raised.value)


def test_a_factor_may_say_how_many_clients_there_are():
    text = FILE.replace("operations = 1", 'operations = 1\nclients = ":sessions"').replace(
        "[setup]", "[factors]\nsessions = [1, 8]\n[setup]"
    )
    spec = parse_spec(text, file="x", read=str, overrides={})
    assert [spec.clients("w", {"sessions": level}) for level in ("1", "8")] == [1, 8]
    assert spec.workloads["w"].shares_processor(1)
    assert not spec.workloads["w"].shares_processor(8)
    with pytest.raises(SpecError, match=r"threads \(2\) cannot exceed clients \(1\)"):
        parse_spec(text + "threads = 2\n", file="x", read=str, overrides={})
