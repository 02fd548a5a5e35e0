"""Who sent which statements: from the comments in a log, from traces, and from samples of sessions."""

import pyarrow as pa
import pytest

from uncork.analysis.database.result import routes_of as routes_of_sessions
from uncork.analysis.database.steps import counted_time, steps_of
from uncork.analysis.log.contributions import routes_of
from uncork.analysis.service.result import join_traces
from uncork.load.traceparent import group_of
from uncork.model.results.database import TimeNode
from uncork.model.results.service import SentTemplate
from uncork.model.tables.register import TABLES
from uncork.store.tables import arrow_schema

TEXTS = ["select a", "select b", "select c"]


def routes(*rows):
    blank = {"tagged_application": "", "application": "web", "server": "", "trace": "", "max_us": 900}
    blank |= {"rows_plans": 0, "rows_sum": 0, "requests": None}
    schema = arrow_schema(TABLES["log_routes"])
    return pa.Table.from_pylist([{**blank, **row} for row in rows], schema=schema)


def origins(*rows):
    blank = {"user": "", "database": "", "host": "", "server": "", "max_us": 900}
    schema = arrow_schema(TABLES["log_origins"])
    return pa.Table.from_pylist([{**blank, **row} for row in rows], schema=schema)


def of(template, executions, micros, **more):
    return {"template": template, "executions": executions, "sum_us": micros, **more}


def test_routes_and_the_rest_of_each_application_add_up():
    tagged = routes(
        of(0, 10, 4_000, route="/orders", requests=5, rows_plans=2, rows_sum=40),
        of(1, 50, 1_000, route="/orders", requests=5),
        of(1, 1, 500, route="", tagged_application="Shop"),
        of(1, 4, 100, route="/orders", requests=3, trace=group_of("0123ab", 1)),
    )
    all_of = origins(
        of(0, 12, 5_000, application="web"),
        of(1, 55, 1_600, application="web"),
        of(2, 1, 400, application="cron"),
    )
    found = {(one.kind, one.name): one for one in routes_of(tagged, all_of, TEXTS, 7_000)}
    assert list(found) == [
        ("route", "/orders"),
        ("session", "web"),
        ("application", "Shop"),
        ("session", "cron"),
    ]
    assert sum(one.executions for one in found.values()) == 68
    assert sum(one.sum_ns for one in found.values()) == 7_000_000
    assert sum(one.share for one in found.values()) == pytest.approx(1)
    orders = found["route", "/orders"]
    assert (orders.requests, orders.executions, orders.rows) == (8, 64, 20)
    assert [(one.text, one.executions, one.rows) for one in orders.statements] == [
        ("select a", 10, 20),
        ("select b", 54, None),
    ]
    assert [one.executions for one in found["session", "web"].statements] == [2]


def test_without_comments_applications_are_the_senders():
    none = routes()
    named = routes_of(none, origins(of(0, 1, 10, application="web")), TEXTS, 10)
    assert [(one.kind, one.name, one.requests) for one in named] == [("session", "web", None)]
    assert routes_of(none, origins(of(0, 1, 10, application="")), TEXTS, 10) == ()


def test_requests_are_joined_with_their_statements_by_trace():
    first, second = group_of("0123ab", 1), group_of("0123ab", 2)
    table = routes(
        of(0, 100, 50_000, route="/a", trace=first, requests=100),
        of(1, 2_000, 40_000, route="/a", trace=first, requests=100, rows_plans=10, rows_sum=30),
        of(1, 50, 1_000, route="/b", trace=second, requests=50),
        of(2, 9, 9_000, route="/a", trace=group_of("ffffff", 1), requests=9),
        of(2, 9, 9_000, route="/a"),
    )
    known = {"a": {"select a": SentTemplate(7, "select a", 1.1, 0.9, 1.3, 20.0, 500.0, 550.0)}}
    found = join_traces(table, TEXTS, "0123ab", {"a": 100, "b": 50, "c": 10}, known)
    assert found.keys() == {"a", "b"}
    assert (found["a"].requests, found["b"].requests) == (100, 50)
    one, many = found["a"].templates
    assert (one.template, one.text, one.calls, one.rows, one.ns) == (7, "select a", 1.0, 20.0, 500_000)
    assert (many.calls, many.rows, many.call_ns, many.traced) == (20.0, 3.0, 20_000, True)
    assert many.template != one.template
    assert found["b"].templates[0].rows is None


def test_busy_sessions_have_a_route_and_the_rest_none():
    rows = [
        {"origin": "/a", "template": 0, "weight": 30.0},
        {"origin": "/a", "template": 1, "weight": 10.0},
        {"origin": None, "template": None, "weight": 60.0},
    ]
    rest, first = routes_of_sessions(rows, 10.0, dict(enumerate(TEXTS)))
    assert (rest.name, rest.sessions, rest.share) == ("", 6.0, 0.6)
    assert (first.name, first.sessions, first.share) == ("/a", 4.0, 0.4)
    assert [(one.name, one.share) for one in first.templates] == [("select a", 0.75), ("select b", 0.25)]
    assert routes_of_sessions(rows[2:], 10.0, {}) == ()


def test_steps_of_busy_sessions_add_up_and_the_rest_is_unknown():
    idle = TimeNode("class", "idle in transaction", 1.0, 0.25, None, ())
    flush = TimeNode("event", "WALSync", 0.5, 0.125, None, ())
    waits = TimeNode("class", "IO", 0.5, 0.125, None, (flush,))
    tree = TimeNode("all", "", 4.0, 1.0, None, (idle, waits))
    row = {"toplevel": True, "calls": 2, "plans": 0, "planning_ns": 0.0, "execution_ns": 2e9}
    inner = {**row, "toplevel": False, "execution_ns": 5e9}
    snapshots = {"before": {"begun_us": 0}, "after": {"begun_us": 1_000_000}}

    def steps(*rows):
        found = steps_of(tree, counted_time(rows, snapshots))
        assert sum(one.share for one in found) == pytest.approx(1)
        return {one.name: one.sessions for one in found}

    assert steps(row, inner) == {"idle in transaction": 1.0, "commit": 0.5, "execute": 2.0, "unknown": 0.5}
    planned = {**row, "plans": 3, "planning_ns": 0.25e9}
    assert steps(planned)["plan"] == 0.25
    assert steps({**row, "execution_ns": 9e9})["unknown"] == 0
    assert counted_time([inner], snapshots) is None
