"""What `uncork load sql` says while it goes, and the command that repeats it."""

from dataclasses import replace

import pytest

from uncork.cli.load import progress_line, redacted_command
from uncork.model.load import LoadProgress

PROGRESS = LoadProgress(
    elapsed_ns=5_000_000_000,
    seconds=5.0,
    succeeded=256_171,
    failed=3,
    skipped=2,
    retries=4,
    backlog=12,
    clients=14,
    mean_ns=156_000.0,
    stddev_ns=33_000.0,
    p50_ns=150_000,
    p99_ns=310_000,
    max_ns=2_100_000,
    lateness_p99_ns=50_000,
)


def line(progress=PROGRESS, **changes):
    return progress_line(
        progress, **{"at": None, "open_loop": False, "limited": False, "tries": False, **changes}
    )


def test_a_line_begins_as_pgbench_s_does():
    assert line() == (
        "progress: 5.0 s, 51234.2 tps, lat 0.156 ms stddev 0.033, 3 failed, p50 0.150 p99 0.310 max 2.100"
    )


def test_an_open_loop_tells_its_backlog_and_lateness():
    assert line(open_loop=True, limited=True, tries=True).endswith(
        "3 failed, 2 skipped, 4 retries, p50 0.150 p99 0.310 max 2.100, backlog 12, clients 14, "
        "late p99 0.050 ms"
    )


def test_unix_time_can_take_the_place_of_the_time_elapsed():
    assert line(at=1_700_000_000.25).startswith("progress: 1700000000.250 s, ")


def test_nothing_done_is_no_division_by_zero():
    assert line(replace(PROGRESS, seconds=0.0)).startswith("progress: 5.0 s, 0.0 tps")


@pytest.mark.parametrize(
    "words",
    [
        ["--dsn", "postgresql://me:hush@db/x"],
        ["--dsn=postgresql://me:hush@db/x"],
        ["-dpostgres://me:hush@db/x"],
        ["--dsn", "host=db password=hush"],
        ["--dsn=host=db password='hush hush'"],
        ["postgresql://db/x?password=hush&sslpassword=hush"],
    ],
)
def test_the_command_that_repeats_a_load_holds_no_password(words):
    command = redacted_command(["load", "sql", *words])
    assert command.startswith("uncork load sql ")
    assert "hush" not in command
    assert "db" in command
