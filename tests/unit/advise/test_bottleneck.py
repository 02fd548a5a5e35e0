"""Which resource is named first, on evidence as it was recorded or as it must look."""

from dataclasses import replace

import pytest

from uncork.advise.bottleneck import find_bottlenecks
from uncork.model.bottleneck import RESOURCES, DatabaseUse, LoadUse, MachineUse, Party, Seen

ON_CPU = ("CPU", "")
MACHINE = MachineUse(processors=2, busy=0.4)
DATABASE = Party(user=0.5, system=0.2)
SERVICE = Party(user=0.1, system=0.05)


def load(in_flight=32.0, **changes):
    return LoadUse(in_flight=in_flight, mean_ns=20e6, **changes)


def sessions(waits, open_=32.0, **changes):
    return DatabaseUse(waits=waits, sessions=open_, **changes)


SATURATED = {
    "generator": Seen(load(limit="yes", limit_reason="its thread is 99 % busy"), MACHINE, DATABASE),
    "ephemeral ports": Seen(load(errors={"EADDRNOTAVAIL": 40}), MACHINE, DATABASE),
    "file descriptors": Seen(load(errors={"EMFILE": 3}), MACHINE, DATABASE),
    "listen backlog": Seen(load(), replace(MACHINE, overflows=12), DATABASE),
    "connection limit": Seen(
        load(errors={"53300": 9}), MACHINE, DATABASE, sessions({ON_CPU: 3.0}, max_connections=100)
    ),
    "cpu quota": Seen(load(), MACHINE, replace(DATABASE, quota=0.5, throttled=0.63), sessions({ON_CPU: 9.0})),
    "pool": Seen(
        load(in_flight=200.0),
        MACHINE,
        DATABASE,
        sessions({ON_CPU: 50.0, ("Client", "ClientRead"): 10.0}, 60.0),
        SERVICE,
    ),
    "locks": Seen(
        load(), MACHINE, DATABASE, sessions({("Lock", "tuple"): 20.0, ("Lock", "transactionid"): 8.0})
    ),
    "commit": Seen(
        load(), MACHINE, DATABASE, sessions({("IO", "WALSync"): 6.0, ("LWLock", "WALWrite"): 14.0})
    ),
    "storage": Seen(load(), MACHINE, DATABASE, sessions({("IO", "DataFileRead"): 25.0, ON_CPU: 2.0})),
    "internal locks": Seen(
        load(), MACHINE, DATABASE, sessions({("LWLock", "BufferMapping"): 18.0, ON_CPU: 4.0})
    ),
    "database cpu": Seen(
        load(),
        replace(MACHINE, busy=0.99),
        Party(1.5, 0.2),
        sessions({ON_CPU: 30.0}, templates={"select * from t where x = ?": 0.71}),
        generator=Party(0.1, 0.1),
    ),
    "service cpu": Seen(
        load(), replace(MACHINE, busy=0.97), DATABASE, sessions({ON_CPU: 1.0}), Party(1.1, 0.1)
    ),
    "machine cpu": Seen(load(), replace(MACHINE, busy=1.0), DATABASE, sessions({ON_CPU: 20.0})),
}


def test_there_is_evidence_for_every_resource():
    assert set(SATURATED) == set(RESOURCES)


@pytest.mark.parametrize("resource", SATURATED)
def test_the_resource_that_gave_out_is_named_first(resource):
    first, *_ = find_bottlenecks(SATURATED[resource])
    assert first.resource == resource
    assert first.sentence and first.remedy and first.weight > 0


@pytest.mark.parametrize(
    "healthy",
    [
        Seen(load(in_flight=0.4), replace(MACHINE, busy=0.2), DATABASE, sessions({ON_CPU: 0.3})),
        Seen(load(in_flight=1.0), replace(MACHINE, busy=0.5), Party(0.9, 0.1), sessions({ON_CPU: 0.9})),
        Seen(
            load(in_flight=6.0),
            MACHINE,
            DATABASE,
            sessions({ON_CPU: 1.4, ("IO", "DataFileRead"): 0.8}, 60.0),
            SERVICE,
        ),
        Seen(load(in_flight=2.0), MACHINE, DATABASE, sessions({("IO", "WALSync"): 0.9, ON_CPU: 0.2})),
        Seen(load(in_flight=3.0), MACHINE),
    ],
)
def test_a_healthy_run_has_none(healthy):
    assert find_bottlenecks(healthy) == ()


def test_what_refuses_comes_before_what_holds_up():
    both = replace(SATURATED["locks"], load=load(errors={"53300": 2}))
    assert [one.resource for one in find_bottlenecks(both)] == ["connection limit", "locks"]


def test_a_pool_is_not_blamed_where_the_service_has_no_processor_left():
    seen = replace(SATURATED["pool"], service=Party(1.6, 0.2), machine=replace(MACHINE, busy=0.99))
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
    assert "throttled in 63 % of periods by its quota of 0.5 processors" in quota.sentence
