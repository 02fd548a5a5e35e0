"""Limits that the server refuses to exceed: connections, and the size of temporary files."""

import re
from dataclasses import replace

import pytest

from fakes.evidence import evidence, spent
from fakes.findings import compare_findings
from fakes.log_results import log_result
from uncork.diagnosis.rules import server
from uncork.model.results.log import ErrorFacts
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

NINE_US = 1_767_258_000_000_000
"""2026-01-01 09:00:00 UTC."""
TOO_MANY = "sorry, too many clients already"
RESERVED = {"superuser_reserved_connections": "3", "reserved_connections": "0"}
LIMITS = {"max_connections": "100", "idle_session_timeout": "0", **RESERVED}


def error(text, count=1, state="", **facts):
    times = {"first_us": NINE_US, "last_us": NINE_US + 90_000_000}
    rest = {"detail": "", "hint": "", "context": "", "statement": "", **times, **facts}
    message = re.sub(r"\d+|\"[^\"]*\"", "?", text)
    return ErrorFacts("FATAL", state, message, count, example=text, **rest)


def seen(*errors, watched=True, connections=None, busy=1.0, settings=LIMITS):
    found = evidence([spent(sessions=busy)], settings=settings, connections=connections)
    log = replace(log_result(), errors=errors)
    return replace(found, log=log, database=found.database if watched else None)


def refused(*arguments, **facts):
    return list(server.find_connections(seen(*arguments, **facts)))


@pytest.mark.parametrize("watched", [True, False])
def test_refused_connections_are_counted_with_their_times(watched):
    reserved = "remaining connection slots are reserved for roles with the SUPERUSER attribute"
    settings = LIMITS if watched else {}
    (one,) = refused(error(TOO_MANY, 5), error(reserved, 20, "53300"), watched=watched, settings=settings)
    assert one.headline == "The server refused 25 connections: all connections were taken"
    assert fits(finding_headline(one))
    assert one.bill is None
    assert one.cost == "25 refused connections"
    assert one.evidence[0] == (
        "The server refused connections 25 times, from 2026-01-01 09:00:00 to 2026-01-01 09:01:30 UTC."
    )
    assert one.evidence[1] == f"20 times: {reserved}"
    assert one.candidates[-1].sql == ("ALTER SYSTEM SET max_connections = 200;" if watched else "")


@pytest.mark.parametrize("kind", ["role", "database"])
def test_a_limit_of_a_role_or_a_database_is_its_own_finding(kind):
    (one,) = refused(error(f'too many connections for {kind} "Shop"', 3, "53300"))
    assert one.headline == f"The server refused 3 connections of {kind} Shop, which has its own limit"
    assert one.objects == ("Shop",)
    assert f'ALTER {kind.upper()} "Shop" CONNECTION LIMIT' in one.candidates[1].text


def failed(*arguments, **facts):
    return list(server.find_temporary_files(seen(*arguments, **facts)))


@pytest.mark.parametrize("name", ["temp_file_limit", '"temp_file_limit"'])
def test_statements_beyond_the_limit_of_temporary_files_are_named(name):
    text = f"temporary file size exceeds {name} (10240kB)"
    (one,) = failed(error(text, 4, "53400", statement="SELECT * FROM big ORDER BY body"), watched=False)
    assert one.headline == "Temporary files of 4 statements exceeded temp_file_limit (10 MB), so they failed"
    assert fits(finding_headline(one))
    assert one.statement == "SELECT * FROM big ORDER BY body"
    assert one.cost == "4 failed statements"
    assert one.candidates[1].sql == ("ALTER SYSTEM SET temp_file_limit = '20480kB'; SELECT pg_reload_conf();")
    assert one.candidates[1].undo.startswith("ALTER SYSTEM SET temp_file_limit = '10240kB'")


def test_what_is_found_word_for_word():
    compare_findings("limits", [
        ("an error in another language is known by its state",
         refused(error("tut mir leid, schon zu viele Clients", state="53300", last_us=NINE_US))),
        ("an error without a time is counted all the same",
         refused(error(TOO_MANY, 2, first_us=None, last_us=None))),
        # PostgreSQL 13 has no such timeout.
        # An idle timeout does not help sessions that work.
        ("connections near the limit are a finding before the first is refused",
         refused(connections=90),
         refused(connections=90, settings={**LIMITS, "idle_session_timeout": ""}),
         refused(connections=90, busy=60.0)),
        ("other limits are no finding about temporary files",
         failed(error("all replication slots are in use", state="53400")), failed()),
        ("other errors refuse no client",
         *(refused(one) for one in (error(
             "number of requested standby connections exceeds max_wal_senders (currently 10)",
             state="53300"), error('password authentication failed for user "shop"', 90, "28P01"),
                                    error("terminating connection due to administrator command", 9,
                                          "57P01")))),
        ("room for more connections is no finding",
         *(refused(**facts) for facts in ({"connections": 80}, {"connections": None},
                                          {"connections": 90, "settings": {}},
                                          {"connections": 90,
                                           "settings": {**LIMITS, "max_connections": "200"}}))),
    ])  # fmt: skip
