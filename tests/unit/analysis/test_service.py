"""Places of requests, and the join of requests with statements. No server needed."""

from dataclasses import replace

import pytest

from uncork.analysis.service.result import (
    connections_opened,
    foreign_share,
    join_requests,
    time_places,
    with_branches,
)
from uncork.model.bottleneck import Component, DatabaseUse, LoadUse, MachineUse, Seen
from uncork.model.results.service import WorkerFacts
from uncork.model.tables.service import CountRow, SliceRow

SEEN = Seen(
    load=LoadUse(in_flight=8.0, mean_ns=40e6),
    machine=MachineUse(processors=4, busy=0.5),
    database=Component(user=0.4, system=0.1),
    sessions=DatabaseUse(
        {("CPU", ""): 1.5, ("Lock", "tuple"): 2.0, ("IO", "WalSync"): 0.5, ("idle in transaction", ""): 1.0},
        sessions=6.0,
    ),
    service=Component(user=0.5, system=0.1, waiting=0.4),
    generator=Component(user=0.1, system=0.1),
)


def shares(seen):
    return {one.kind: one.share for one in time_places(seen)}


def test_places_add_up_to_all_requests_in_flight():
    places = time_places(SEEN)
    assert sum(one.requests for one in places) == pytest.approx(8.0)
    assert sum(one.share for one in places) == pytest.approx(1.0)
    assert sum(one.ns for one in places) == pytest.approx(40e6)
    assert [one.kind for one in places][:2] == ["service wait", "locks"]


def test_each_source_gives_its_place():
    found = shares(SEEN)
    assert found["database cpu"] == pytest.approx(0.5 / 8)
    assert found["database queue"] == pytest.approx(1.0 / 8)
    assert found["locks"] == pytest.approx(2.0 / 8)
    assert found["commit"] == pytest.approx(0.5 / 8)
    assert found["service cpu"] == pytest.approx(0.6 / 8)
    assert found["service queue"] == pytest.approx(0.4 / 8)
    # The service computes for requests with and without a transaction alike.
    assert found["idle in transaction"] == pytest.approx(3.0 * 0.25 / 8)


def test_parsing_planning_and_the_pooler_are_parts_of_places():
    before = time_places(SEEN)
    places = with_branches(before, 0.2, 0.3, 1.0)
    assert sum(one.requests for one in places) == pytest.approx(8.0)
    assert sum(one.ns for one in places) == pytest.approx(40e6)
    found = {one.kind: one.requests for one in places}
    assert found["database parsing"] == pytest.approx(0.2)
    assert found["database planning"] == pytest.approx(0.3)
    assert found["database cpu"] + found["database queue"] == pytest.approx(1.0)
    assert found["pool wait"] == pytest.approx(1.0)
    assert with_branches(before, 0.0, 0.0, 0.0) == before
    # A source can only explain what is there.
    all_of_it = {one.kind: one.requests for one in with_branches(before, 0.0, 9.0, 99.0)}
    assert all_of_it["database planning"] == pytest.approx(1.5)
    assert "service wait" not in all_of_it


def forked(pid, parent=1, threads=1, sessions=1):
    return WorkerFacts(pid, parent, "gunicorn", "python", 0, 0, 0, threads, 0.3, sessions, 10**9)


WORKERS = (forked(1, parent=0, threads=2, sessions=0), forked(2), forked(3))


def test_requests_queue_for_processes_that_answer_one_at_a_time():
    seen = replace(
        SEEN,
        sessions=DatabaseUse({("CPU", ""): 0.5, ("idle in transaction", ""): 1.2}, sessions=2.0),
        service=Component(user=0.7, system=0.1, waiting=0.2),
    )
    found = {one.kind: one.share * 8 for one in time_places(seen, WORKERS)}
    # Both processes are busy: what computes does so for the two requests in progress.
    assert found == {
        "process queue": pytest.approx(6.3),
        "service cpu": pytest.approx(0.8),
        "database cpu": pytest.approx(0.5),
        "service queue": pytest.approx(0.2),
        "idle in transaction": pytest.approx(0.2),
    }


@pytest.mark.parametrize(
    "workers",
    [
        (),
        tuple(replace(one, threads=8) for one in WORKERS),  # each answers several requests
        tuple(replace(one, runtime="go") for one in WORKERS),
        tuple(replace(one, sessions=5) for one in WORKERS),
        (*WORKERS, *(forked(pid) for pid in range(4, 12))),  # most of them wait for a request
    ],
)
def test_other_services_have_no_queue_for_processes(workers):
    assert "process queue" not in {one.kind for one in time_places(SEEN, workers)}


def test_sessions_of_others_do_not_make_more_requests_than_are_in_flight():
    busy = DatabaseUse({("Lock", "tuple"): 30.0, ("CPU", ""): 10.0}, sessions=40.0)
    found = shares(replace(SEEN, sessions=busy))
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["locks"] == pytest.approx(0.75)


def test_without_a_load_busy_sessions_are_the_whole():
    seen = replace(SEEN, load=LoadUse(0.0, 0.0), service=None, database=None)
    places = time_places(seen)
    assert sum(one.share for one in places) == pytest.approx(1.0)
    assert {one.ns for one in places} == {None}
    assert places[0].kind == "locks"


def test_without_a_database_everything_is_in_the_service():
    found = shares(replace(SEEN, sessions=None, database=None))
    assert set(found) == {"service cpu", "service queue", "service wait"}
    assert sum(found.values()) == pytest.approx(1.0)


def test_other_programs_use_the_rest_of_the_processors():
    assert foreign_share(SEEN) == pytest.approx((2.0 - 1.3) / 2.0)
    assert foreign_share(replace(SEEN, machine=MachineUse(4))) == 0.0


TEXTS = {0: "select a", 1: "select b", 2: "begin"}


def one_slice(number, kind, request="", started=0, seconds=1.0, sessions=None):
    return SliceRow(number, kind, request, 0, round(seconds * 1e9), started, 0, 0, sessions)


def count(number, template, calls, each_ns=1e6, rows=1):
    return CountRow(number, template, calls, calls * each_ns, calls * rows)


def test_each_request_gets_its_statements_and_its_part_of_the_time():
    slices = [
        one_slice(0, "one", "/a", 10),
        one_slice(1, "one", "/b", 20),
        one_slice(2, "none"),
        one_slice(3, "one", "/a", 10),
        one_slice(4, "all", started=30),
    ]
    counts = [
        *(count(0, 0, 50), count(0, 1, 10, each_ns=3e6), count(1, 1, 20), count(3, 0, 50)),
        *(count(3, 1, 10, each_ns=3e6), count(4, 0, 50, each_ns=2e6), count(4, 1, 30, each_ns=4e6)),
    ]
    join = join_requests(slices, counts, TEXTS, {"/a": 10, "/b": 20})
    first, second = join.templates["/a"]
    assert (first.text, first.calls, first.rows) == ("select a", 5.0, 1.0)
    assert first.ns == pytest.approx(5 * 2e6)
    # 10 executions that took 3 ms each alone, and 20 that took 1 ms, share 120 ms as 30 to 20.
    assert second.ns == pytest.approx(120e6 * 30 / 50 / 10)
    (other,) = join.templates["/b"]
    assert other.ns == pytest.approx(120e6 * 20 / 50 / 20)
    assert join.explained == pytest.approx(1.0)


def test_connections_of_each_request_are_counted_without_those_of_others():
    slices = [
        one_slice(0, "one", "/a", 40, seconds=2.0, sessions=44),
        one_slice(1, "one", "/b", 10, sessions=2),
        one_slice(2, "none", sessions=2),
        one_slice(3, "all", started=10, sessions=30),
    ]
    assert connections_opened(slices, "/a") == pytest.approx(1.0)
    assert connections_opened(slices, "/b") == 0.0
    assert connections_opened([replace(row, sessions=None) for row in slices], "/a") is None


def test_work_of_others_belongs_to_no_request():
    slices = [
        one_slice(0, "none", seconds=2.0),
        one_slice(1, "one", "/a", 100),
        one_slice(2, "all", started=100),
    ]
    counts = [count(0, 1, 100), count(1, 0, 100), count(1, 1, 50), count(2, 0, 100), count(2, 1, 50)]
    join = join_requests(slices, counts, TEXTS, {"/a": 100})
    assert [one.text for one in join.templates["/a"]] == ["select a"]
    assert join.explained == pytest.approx(1.0)


def test_statements_that_appear_only_together_are_unexplained():
    slices = [one_slice(0, "one", "/a", 10), one_slice(1, "all", started=10)]
    counts = [count(0, 0, 10), count(1, 0, 10), count(1, 1, 10)]
    assert join_requests(slices, counts, TEXTS, {"/a": 10}).explained == pytest.approx(0.5)
    assert join_requests(slices, [], TEXTS, {"/a": 10}).explained is None
