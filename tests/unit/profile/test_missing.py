"""What a watched server lacks, by its version, its role and the way to it."""

from __future__ import annotations

import pytest

from uncork.profile.missing import find_missing

SERVER = {
    "sees_all": True,
    "role": "app",
    "database": "shop",
    "track_activities": "on",
    "track_io_timing": "on",
    "compute_query_id": "auto",
    "statements": "counting",
    "pooled": False,
}


def missing(*, file_waits=0.5, **server):
    facts = {
        "server": {**SERVER, **server},
        "snapshots": {},
        "catalogue": {},
        "system": {"server_here": False},
    }
    return {one.what: one for one in find_missing(facts, file_waits=file_waits)}


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (13, {"pg_stat_wal", "pg_stat_database.sessions", "pg_stat_activity.query_id", "pg_stat_io"}),
        (14, {"pg_stat_io"}),
        (15, {"pg_stat_io"}),
        (16, set()),
        (18, set()),
    ],
)
def test_an_older_server_names_what_it_does_not_count(number, expected):
    setting = None if number < 14 else "auto"
    found = missing(number=number, compute_query_id=setting)
    assert {name for name in found if name.startswith("pg_")} == expected
    assert all("upgrade to PostgreSQL" in found[name].remedy for name in expected)


def test_a_right_on_the_extensions_schema_is_granted_by_name():
    found = missing(number=16, statements="permission denied for schema monitoring")
    assert found["pg_stat_statements"].remedy == 'GRANT USAGE ON SCHEMA "monitoring" TO "app"'


def test_processes_behind_a_pooler_are_seen_without_it():
    (direct,) = missing(number=16).values()
    (pooled,) = missing(number=16, pooled=True).values()
    assert "pooler" not in direct.remedy and "not through a pooler" in pooled.remedy


@pytest.mark.parametrize(("file_waits", "named"), [(0.0, False), (0.04, False), (0.06, True), (1.0, True)])
def test_times_of_reads_are_missing_only_where_sessions_wait_for_files(file_waits, named):
    found = missing(number=15, track_io_timing="off", file_waits=file_waits)
    assert (
        {"track_io_timing", "pg_stat_io"} <= found.keys()
        if named
        else found.keys() == {"access to the server's processes"}
    )
