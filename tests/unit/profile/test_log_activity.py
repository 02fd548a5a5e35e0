"""What a log shows beside templates: filters, single statements, sessions, background work."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from fakes.logs import BEGIN_US, line, result
from uncork.errors import UsageError
from uncork.profile.logs import LogFilter
from uncork.report.log.answer import answer_log
from uncork.requests.option import from_words
from uncork.requests.profile_options import LogOptions

HOUR_MS = 3_600_000


def entry(text, *, at_ms=0, pid=7, user="u", database="d", application="app"):
    """Return an entry with a message."""
    made = line("", at_ms=at_ms, ms=1, pid=pid, application=application).replace(
        "u@d", f"{user}@{database}", 1
    )
    return re.sub(r"LOG:  duration.*", "", made).rstrip() + f" {text}\n"


# ---- filters ----


def everyone():
    """Return a log of three databases and two applications, in the hours from 0:00 to 5:00."""
    return "".join(
        line(f"SELECT {number}", at_ms=number * HOUR_MS // 2, ms=1, application=f"app{number % 2}").replace(
            "u@d", ("ada@shop", "bob@stock", "eve@shop_old")[number % 3]
        )
        for number in range(12)
    )


@pytest.mark.parametrize(
    ("wanted", "executions", "left_out"),
    [
        ({"database": ("shop",)}, 4, {("database", "stock"): 4, ("database", "shop_old"): 4}),
        ({"database": ("shop*", "!*_old")}, 4, {("database", "stock"): 4, ("database", "shop_old"): 4}),
        ({"user": ("!bob",), "application": ("app1",)}, 4, {("user", "bob"): 4, ("application", "app0"): 4}),
        ({"time_of_day": ("01:00-02:30",)}, 3, {("time of day", ""): 9}),
        ({"time_of_day": ("05:00-01:00",)}, 4, {("time of day", ""): 8}),
        ({"host": ("!10.*",)}, 12, {}),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_only_entries_that_pass_count_and_the_others_are_named(
    wanted, executions, left_out, threads, tmp_path
):
    found = result(tmp_path / "a.log", everyone(), filter=LogFilter(**wanted), threads=threads)
    assert found.executions.count == found.entries == executions
    assert {(one.by, one.name): one.entries for one in found.filters.left_out} == left_out
    assert found.filters.entries == 12 - executions
    (words,) = (one for one in answer_log(found).warnings if one.startswith("The filters ("))
    for name in (name for _, name in left_out if name):
        assert f"{name} {left_out[next(key for key in left_out if key[1] == name)]}" in words


def test_without_filters_nothing_is_said(tmp_path):
    found = answer_log(result(tmp_path / "a.log", everyone()))
    assert found.filters is None and not any("filter" in one for one in found.warnings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("08:00-17:00", "08:00-17:00"),
        ("8:00-17:00+02:00", "06:00-15:00"),
        ("01:00-05:30 +0530", "19:30-00:00"),
        ("20:00-24:00Z", "20:00-00:00"),
    ],
)
def test_a_time_of_day_is_read_with_its_offset(text, expected):
    read = from_words(LogOptions, {"files": ["a.log"], "time_of_day": [text]})
    assert read.time_of_day == [expected]


@pytest.mark.parametrize(
    ("option", "text", "problem"),
    [
        ("time_of_day", "8-17", "expecting a range of hours and minutes, such as 08:00-17:00"),
        ("time_of_day", "08:00-25:00", "expecting a range"),
        ("time_of_day", "08:00-08:00", "the range is empty; write 00:00-24:00"),
        ("database", "", "expecting a name"),
        ("user", "!", "expecting a name"),
    ],
)
def test_a_filter_that_says_nothing_is_refused(option, text, problem):
    with pytest.raises(UsageError, match=re.escape(problem)) as refused:
        from_words(LogOptions, {"files": ["a.log"], option: [text]})
    assert f"--{option.replace('_', '-')}" in str(refused.value)


# ---- statements ----


def test_quantiles_and_the_peak_are_of_all_statements(tmp_path):
    log = "".join(line(f"SELECT {n % 7}, a{n % 3}", at_ms=n * 10, ms=n + 1) for n in range(1000))
    log += "".join(line("SELECT now()", at_ms=20_500 + n, ms=0.5) for n in range(150))
    found = result(tmp_path / "a.log", log)
    expected = {"p50_ns": 425, "p95_ns": 943, "p99_ns": 989}
    for name, milliseconds in expected.items():
        assert getattr(found, name) == pytest.approx(milliseconds * 1e6, rel=0.01)
    assert asdict(found.peak) == {"start_us": BEGIN_US + 20_000_000, "executions": 150, "server": ""}


def test_the_slowest_statements_have_their_time_and_origin(tmp_path):
    log = "".join(line(f"SELECT {n}", at_ms=n, ms=(n * 7919) % 1000) for n in range(1000))
    log += line("UPDATE t SET a = 'x'", at_ms=5_000, ms=5_000, application="batch").replace(
        "u@d", "ada@shop", 1
    )
    found = result(tmp_path / "a.log", log, threads=3).slowest
    assert [one.duration_ns // 10**6 for one in found] == [5_000, *range(999, 900, -1)]
    first = found[0]
    assert (first.user, first.database, first.application) == ("ada", "shop", "batch")
    assert (first.text, first.time_us) == ("UPDATE t SET a = 'x'", BEGIN_US + 5_000_000)


def test_each_hour_has_its_statements_and_errors(tmp_path):
    log = "".join(
        line("SELECT 1", at_ms=hour * HOUR_MS + n * 1000, ms=(hour + 1) * (n + 1))
        for hour in range(3)
        for n in range(100)
    )
    log += entry("ERROR:  division by zero", at_ms=HOUR_MS + 7)
    log += entry("ERROR:  division by zero", at_ms=4 * HOUR_MS)
    hours = result(tmp_path / "a.log", log).hours
    assert [(one.start_us - BEGIN_US) // 1000 // HOUR_MS for one in hours] == [0, 1, 2, 4]
    assert [one.executions for one in hours] == [100, 100, 100, 0]
    assert [one.errors for one in hours] == [0, 1, 0, 1]
    for hour, one in enumerate(hours[:3]):
        assert one.sum_ns == (hour + 1) * 5050 * 10**6
        assert one.p95_ns == pytest.approx((hour + 1) * 95e6, rel=0.01)
    assert hours[3].p95_ns is None


def test_execute_counts_as_the_statement_that_was_prepared(tmp_path):
    log = "".join(
        line(f"EXECUTE pick({n})", at_ms=n, ms=2)
        + entry("DETAIL:  prepare: PREPARE pick (int) AS SELECT name FROM items WHERE id = $1", at_ms=n)
        for n in range(5)
    )
    found = result(tmp_path / "a.log", log + line("SELECT name FROM items WHERE id = 8", at_ms=9, ms=2))
    (template,) = found.templates
    assert (template.text, template.executions) == ("select name from items where id = ?", 6)
    (slowest,) = (one for one in template.examples if one.kind == "slowest")
    assert slowest.text == "SELECT name FROM items WHERE id = $1" and slowest.parameters == "EXECUTE pick(0)"


def test_query_ids_are_those_of_the_server(tmp_path):
    log = "".join(
        line(f"SELECT {n}", at_ms=n, ms=1).replace("LOG:", f"{id} LOG:", 1)
        for n, id in enumerate([-5, 0, -5, 9_007_199_254_740_993])
    )
    found = result(tmp_path / "a.log", log, prefix="%m [%p] %u@%d %a %Q ")
    (template,) = found.templates
    assert [(one.id, one.executions) for one in template.query_ids] == [("-5", 2), ("9007199254740993", 1)]


# ---- sessions ----


def test_sessions_have_their_names_and_durations(tmp_path):
    log = ""
    for n in range(6):
        names = f"user=ada database={('shop', 'stock')[n % 2]}"
        log += entry(f"LOG:  connection authorized: {names} application_name=web", at_ms=n, pid=n + 1)
        log += entry(
            f"LOG:  disconnection: session time: 0:00:0{n}.500 {names} host=10.0.0.{n % 3} port=1",
            at_ms=1000 + n,
            pid=n + 1,
        )
    lines = sorted(log.splitlines(keepends=True))
    sessions = result(tmp_path / "a.log", "".join(lines)).sessions
    assert (sessions.begun, sessions.ended, sessions.sum_ns) == (6, 6, 18 * 10**9)
    assert sessions.max_ns == 5_500_000_000
    assert sessions.p50_ns == pytest.approx(2.5e9, rel=0.01)
    assert (sessions.most, sessions.most_us) == (6, BEGIN_US + 5_000)
    assert [(one.name, one.begun, one.ended, one.sum_ns) for one in sessions.databases] == [
        ("stock", 3, 3, 10_500_000_000),
        ("shop", 3, 3, 7_500_000_000),
    ]
    assert {one.name: one.ended for one in sessions.hosts if one.ended} == {
        "10.0.0.0": 2,
        "10.0.0.1": 2,
        "10.0.0.2": 2,
    }


# ---- background work ----

CHECKPOINT = (
    "LOG:  checkpoint complete: wrote {n}00 buffers ({n}.5%), wrote 1 SLRU buffers; 1 WAL file(s) added, "
    "2 removed, 3 recycled; write=4.000 s, sync=0.500 s, total=4.600 s; sync files=11, longest=0.{n}00 s, "
    "average=0.001 s; distance={n}000 kB, estimate=2000 kB; lsn=0/1, redo lsn=0/1"
)
VACUUM = """LOG:  automatic vacuum of table "d.s.t": index scans: 1
\tpages: 3 removed, 440 remain, 443 scanned (100.00% of total)
\ttuples: 100 removed, 900 remain, 7 are dead but not yet removable
\tbuffer usage: 17 hits, 4 misses, 5 dirtied
\tWAL usage: 10 records, 2 full page images, 2456 bytes
\tsystem usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 0.03 s"""


def test_checkpoints_and_vacuums_tell_their_work(tmp_path):
    log = "".join(
        entry(f"LOG:  checkpoint starting: {reason}", at_ms=n) + entry(CHECKPOINT.format(n=n), at_ms=n)
        for n, reason in enumerate(["time", "wal", "time", "immediate force wait"], 1)
    )
    log += entry(VACUUM, at_ms=8) * 2
    server = result(tmp_path / "a.log", log).server
    work = server.checkpoint_work
    assert (work.completed, work.timed, work.wal, work.requested) == (4, 2, 1, 1)
    assert (work.buffers, work.buffers_share) == (1000, pytest.approx(0.03))
    assert (work.wal_files_added, work.wal_files_removed, work.wal_files_recycled) == (4, 8, 12)
    assert (work.distance_bytes, work.distance_max_bytes) == (2500 * 1024, 4000 * 1024)
    assert (work.write_ns, work.sync_ns, work.longest_sync_ns) == (16 * 10**9, 2 * 10**9, 400_000_000)
    (vacuum,) = server.vacuum_work
    assert (vacuum.table, vacuum.analyze, vacuum.runs, vacuum.sum_ns) == ("d.s.t", False, 2, 60_000_000)
    assert (vacuum.pages_removed, vacuum.tuples_removed, vacuum.tuples_dead) == (6, 200, 14)
    assert (vacuum.buffer_hits, vacuum.buffer_misses, vacuum.buffers_dirtied) == (34, 8, 10)
    assert (vacuum.wal_records, vacuum.wal_images, vacuum.wal_bytes) == (20, 4, 4912)
