"""Which resource is named first, on evidence as it was recorded or as it must look."""

from dataclasses import replace
from typing import get_args

import pytest

from uncork.diagnosis.bottleneck import find_bottlenecks
from uncork.model.bottleneck import Component, DatabaseUse, LoadUse, MachineUse, Resource, Seen

ON_CPU = ("CPU", "")
MACHINE = MachineUse(processors=2, busy=0.4)
DATABASE = Component(user=0.5, system=0.2)
SERVICE = Component(user=0.1, system=0.05)


def load(in_flight=32.0, **changes):
    return LoadUse(in_flight=in_flight, mean_ns=20e6, **changes)


def sessions(waits, open_=32.0, **changes):
    return DatabaseUse(waits=waits, sessions=open_, **changes)


SATURATED = {
    "generator": Seen(load(limit="yes", limit_reason="its thread is 99 % busy"), MACHINE, DATABASE),
    "ephemeral ports": Seen(load(errors={"EADDRNOTAVAIL": 40}), MACHINE, DATABASE),
    "file descriptors": Seen(load(errors={"EMFILE": 3}), MACHINE, DATABASE),
    "listen backlog": Seen(load(opened=300), replace(MACHINE, overflows=12, backlog=2), DATABASE),
    "connection limit": Seen(load(errors={"53300": 9}), MACHINE, DATABASE,
                             sessions({ON_CPU: 3.0}, max_connections=100)),
    "cpu quota": Seen(load(), MACHINE, replace(DATABASE, quota=0.5, throttled=0.63),
                      sessions({ON_CPU: 9.0})),
    "pool": Seen(load(in_flight=200.0), MACHINE, DATABASE,
                 sessions({ON_CPU: 50.0, ("Client", "ClientRead"): 10.0}, 60.0), SERVICE),
    "locks": Seen(load(), MACHINE, DATABASE,
                  sessions({("Lock", "tuple"): 20.0, ("Lock", "transactionid"): 8.0})),
    "commit": Seen(load(), MACHINE, DATABASE,
                   sessions({("IO", "WALSync"): 6.0, ("LWLock", "WALWrite"): 14.0})),
    "storage": Seen(load(), MACHINE, DATABASE,
                    sessions({("IO", "DataFileRead"): 25.0, ON_CPU: 2.0})),
    "internal locks": Seen(load(), MACHINE, DATABASE,
                           sessions({("LWLock", "BufferMapping"): 18.0, ON_CPU: 4.0})),
    "database cpu": Seen(load(), replace(MACHINE, busy=0.99), Component(1.5, 0.2),
                         sessions({ON_CPU: 30.0}, templates={"select * from t where x = ?": 0.71}),
                         generator=Component(0.1, 0.1)),
    "service cpu": Seen(load(), replace(MACHINE, busy=0.97), DATABASE, sessions({ON_CPU: 1.0}),
                        Component(1.1, 0.1)),
    "machine cpu": Seen(load(), replace(MACHINE, busy=1.0), DATABASE, sessions({ON_CPU: 20.0})),
}  # fmt: skip


def test_there_is_evidence_for_every_resource():
    assert set(SATURATED) == set(get_args(Resource))


@pytest.mark.parametrize("resource", SATURATED)
def test_the_resource_that_gave_out_is_named_first(resource):
    first, *_ = find_bottlenecks(SATURATED[resource])
    assert first.resource == resource
    assert first.sentence and first.remedy and first.weight > 0


@pytest.mark.parametrize(
    "healthy",
    [
        Seen(load(in_flight=0.4), replace(MACHINE, busy=0.2), DATABASE, sessions({ON_CPU: 0.3})),
        Seen(load(in_flight=1.0), replace(MACHINE, busy=0.5), Component(0.9, 0.1),
             sessions({ON_CPU: 0.9})),
        Seen(load(in_flight=6.0), MACHINE, DATABASE,
             sessions({ON_CPU: 1.4, ("IO", "DataFileRead"): 0.8}, 60.0), SERVICE),
        Seen(load(in_flight=2.0), MACHINE, DATABASE,
             sessions({("IO", "WALSync"): 0.9, ON_CPU: 0.2})),
        Seen(load(in_flight=3.0), MACHINE),
    ],
)  # fmt: skip
def test_a_healthy_run_has_none(healthy):
    assert find_bottlenecks(healthy) == ()


SERVED = replace(SATURATED["pool"].load, in_flight=32.0)
"""A load through a service whose pool has four connections."""


def behind_a_pool(waits, alone_ns=None):
    """Four connections, and 32 requests that take 20 ms."""
    served = replace(SERVED, alone_ns=alone_ns)
    return Seen(served, MACHINE, DATABASE, sessions(waits, 4.0), SERVICE, indirect=True)


def named(seen):
    return [one.resource for one in find_bottlenecks(seen)]


def test_what_the_sessions_of_a_full_pool_wait_for_comes_before_the_pool():
    assert named(behind_a_pool({("Timeout", "PgSleep"): 3.9})) == ["pool"]
    assert named(behind_a_pool({("Lock", "tuple"): 3.0, ON_CPU: 0.9}))[0] == "locks"
    assert named(behind_a_pool({("IO", "DataFileRead"): 3.5, ON_CPU: 0.4}))[0] == "storage"
    assert named(behind_a_pool({("IO", "WALSync"): 1.5, ("LWLock", "WALWrite"): 2.4}))[0] == "commit"
    assert "internal locks" not in named(behind_a_pool({("IPC", "SyncRep"): 3.9})), "a commit, counted once"


def test_a_pool_is_full_where_requests_take_longer_than_alone():
    """Recorded while other programs kept both processors busy: connections changed hands slowly."""
    slowly = {("Timeout", "PgSleep"): 3.33, ON_CPU: 0.02}
    assert named(behind_a_pool(slowly, alone_ns=2.5e6)) == ["pool"]
    assert named(behind_a_pool(slowly, alone_ns=19e6)) == [], "they are slow elsewhere"
    assert named(behind_a_pool(slowly)) == [], "a queue of so busy a pool is short"
    assert named(behind_a_pool({("Timeout", "PgSleep"): 2.8}, alone_ns=2.5e6)) == [], "one is free mostly"


def test_a_pool_is_judged_though_the_service_is_out_of_sight():
    seen = replace(behind_a_pool({("Timeout", "PgSleep"): 3.9}), service=None)
    assert named(seen) == ["pool"]
    assert named(replace(seen, indirect=False)) == [], "a load by SQL has no pool"


def test_a_service_that_computes_in_one_thread_is_named_though_the_machine_has_processors_left():
    one = Component(0.95, 0.03, threads=(0.96, 0.01))
    assert named(Seen(load(in_flight=8.0), MACHINE, service=one)) == ["service cpu"]
    assert named(Seen(load(in_flight=1.0), MACHINE, service=one)) == [], "nothing waits"
    several = Component(1.6, 0.1, threads=(0.5, 0.5, 0.4, 0.3))
    assert named(Seen(load(in_flight=8.0), replace(MACHINE, processors=8), service=several)) == []


def test_a_full_machine_is_no_matter_to_requests_that_hardly_need_it():
    sleeping = Seen(
        load(in_flight=4.0),
        replace(MACHINE, busy=1.0),
        service=Component(0.02, 0.01, waiting=0.05),
        generator=Component(0.01, 0.02, waiting=0.02),
    )
    assert named(sleeping) == []
    assert named(replace(sleeping, service=Component(0.4, 0.1, waiting=1.2))) == ["machine cpu"]


def test_a_generator_that_is_throttled_alone_is_the_limit():
    own = Component(0.1, 0.1, quota=0.2, throttled=0.98)
    assert named(Seen(load(), MACHINE, service=SERVICE, generator=own)) == ["generator"]
    shared = replace(SERVICE, quota=0.2, throttled=0.98)
    assert named(Seen(load(), MACHINE, service=shared, generator=own)) == ["cpu quota"], "in one container"


def test_a_service_that_fails_while_the_database_is_full_has_met_its_limit():
    full = sessions({ON_CPU: 3.0}, 19.0, connections=20, max_connections=20, reserved=3)
    failing = load(errors={"status 503": 40})
    assert named(Seen(failing, MACHINE, DATABASE, full, SERVICE)) == ["connection limit"]
    assert named(Seen(load(), MACHINE, DATABASE, full, SERVICE)) == [], "full, and nobody is turned away"
    room = replace(full, connections=12)
    assert named(Seen(failing, MACHINE, DATABASE, room, SERVICE)) == []


def test_words_of_http_name_ports_and_files():
    assert named(Seen(load(errors={"no local port": 1}), MACHINE)) == ["ephemeral ports"]
    assert named(Seen(load(errors={"too many files": 1}), MACHINE)) == ["file descriptors"]
    full = replace(SERVICE, descriptors=24, descriptor_limit=24)
    assert named(Seen(load(errors={"timed out": 9}), MACHINE, service=full)) == ["file descriptors"]


def test_a_backlog_that_overflowed_before_anything_was_measured_is_no_limit():
    early = replace(SATURATED["listen backlog"], load=load(opened=0))
    assert named(early) == []
    seldom = replace(SATURATED["listen backlog"], load=load(opened=10_000))
    assert named(seldom) == []


def test_what_refuses_comes_before_what_holds_up():
    both = replace(SATURATED["locks"], load=load(errors={"53300": 2}))
    assert [one.resource for one in find_bottlenecks(both)] == ["connection limit", "locks"]


def test_a_pool_is_not_blamed_where_the_service_has_no_processor_left():
    seen = replace(SATURATED["pool"], service=Component(1.6, 0.2), machine=replace(MACHINE, busy=0.99))
    assert "pool" not in {one.resource for one in find_bottlenecks(seen)}


def test_the_sentence_holds_the_evidence():
    (pool,) = find_bottlenecks(SATURATED["pool"])
    assert (
        "the pool of 60 connections is full: 140 of 200 requests in flight wait for one, 14.0 ms each"
        in pool.sentence
    )
    (cpu,) = find_bottlenecks(SATURATED["database cpu"])
    assert "99 % busy" in cpu.sentence and "88 % user and 12 % system" in cpu.sentence
    assert "71 % of the sessions' time is in `select * from t where x = ?`" in cpu.sentence
    (quota,) = find_bottlenecks(SATURATED["cpu quota"])
    assert "throttled in 63 % of periods by the CPU quota of 0.5 processors" in quota.sentence


def test_a_full_machine_is_no_bottleneck_of_requests_that_hardly_wait_for_it():
    busy = replace(MACHINE, busy=0.99)
    sleeping = Seen(
        load(),
        busy,
        replace(DATABASE, waiting=0.1),
        sessions({ON_CPU: 0.5}),
        replace(SERVICE, waiting=0.5),
        replace(SERVICE, waiting=0.1),
    )
    assert not [one for one in find_bottlenecks(sleeping) if one.resource.endswith("cpu")]
    starved = replace(sleeping, service=replace(SERVICE, waiting=1.7))
    assert [one for one in find_bottlenecks(starved) if one.resource.endswith("cpu")]


def test_waiting_for_a_page_that_another_session_reads_is_storage():
    seen = Seen(load(), MACHINE, DATABASE, sessions({("IPC", "BufferIo"): 20.0, ("IO", "DataFileRead"): 6.0}))
    assert find_bottlenecks(seen)[0].resource == "storage"
