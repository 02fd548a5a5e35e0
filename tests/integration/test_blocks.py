"""Arms that take turns on a real server: one call, the same connections, counts that add up."""

from __future__ import annotations

import pytest

from uncork.engines.postgres import embedded_server
from uncork.errors import LoadError
from uncork.load.http_trials import run_block
from uncork.model.block import BlockRequest, SliceSize
from uncork.model.measurement import Outcome
from uncork.model.request import LoadRequest, Statement
from uncork.model.trial import Arm, Cell

pytestmark = pytest.mark.postgres

CELL = Cell()
ARMS = (Arm("a"), Arm("a", again=True))
TABLE = """
CREATE TABLE t (id int PRIMARY KEY, f text);
INSERT INTO t SELECT n, 'x' FROM generate_series(1, 5000) AS n;
"""
MINUTE = 60 * 10**9
MS = 10**6


@pytest.fixture(scope="module")
def server():
    server = embedded_server({"shared_buffers": "64MB"})
    server.start()
    server.build(CELL, "a", TABLE, {}, MINUTE)
    server.restore_all([(CELL, arm) for arm in ARMS])
    yield server
    server.stop()


def request(server, arm: Arm, sql: str, *, rows: int = 1000, **changes) -> LoadRequest:
    target = server.target(CELL, arm)
    facts = {"clients": 1, "threads": 1, "warmup_operations": 3, **changes}
    return LoadRequest(
        target=target,
        statements=(Statement("only", sql, (0,)),),
        parameters=[[str(number) for number in range(1, rows + 1)]],
        transaction=False,
        protocol="prepared",
        operations=None,
        duration_ns=None,
        deadline_ns=MINUTE,
        pin_cpu=target.cpu,
        **facts,
    )


def block(requests, size: SliceSize, cycles: int = 4, **changes) -> BlockRequest:
    arms = len(requests)
    order = tuple(tuple(range(arms))[:: 1 if cycle % 2 else -1] for cycle in range(cycles))
    return BlockRequest(tuple(requests), (size,) * arms, order, **changes)


def test_slices_add_up_to_what_each_arm_measured(server):
    requests = [request(server, arm, "SELECT f FROM t WHERE id = $1") for arm in ARMS]
    before = [server.snapshot(CELL, arm).queries for arm in ARMS]
    found = run_block(block(requests, SliceSize(duration_ns=5 * MS, settle_ns=MS)), sample=True)
    for arm, measured, queries in zip(ARMS, found.arms, before, strict=True):
        sent = measured.started + measured.settling + 3  # one statement each, also in the warm-up
        assert server.snapshot(CELL, arm).queries - queries == sent
    assert [one.cycle for one in found.slices] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [one.arm for one in found.slices] == [1, 0, 0, 1, 1, 0, 0, 1]
    for place, measured in enumerate(found.arms):
        own = [one for one in found.slices if one.arm == place]
        assert measured.outcome == Outcome.COMPLETE
        assert measured.started == sum(one.started for one in own) > 4
        assert measured.elapsed_ns == sum(one.elapsed_ns for one in own) >= 20 * MS
        assert measured.operation.sum_ns == sum(one.sum_ns for one in own)
        assert measured.rows == measured.succeeded
        assert measured.server_user_ns + measured.server_system_ns > 0
        assert measured.client_user_ns + measured.client_system_ns > 0
    assert found.arms[0].system is not None
    assert found.arms[1].system is None
    assert all(one.waited_ns is not None for one in found.slices)


def test_arms_that_write_leave_the_same_data_behind(server):
    requests = [
        request(server, arm, "INSERT INTO t VALUES (10000 + $1::int, 'y')", warmup_operations=5)
        for arm in ARMS
    ]
    found = run_block(block(requests, SliceSize(operations=25)), sample=False)
    assert [one.started for one in found.arms] == [100, 100]
    for arm in ARMS:
        assert server.column(CELL, arm, "SELECT count(*) FROM t WHERE id > 10000") == ["105"]
    server.restore_all([(CELL, arm) for arm in ARMS])
    for arm in ARMS:
        assert server.column(CELL, arm, "SELECT count(*) FROM t") == ["5000"]


def test_several_clients_on_several_threads_take_their_turn_together(server):
    requests = [request(server, arm, "SELECT f FROM t WHERE id = $1", clients=4, threads=2) for arm in ARMS]
    found = run_block(block(requests, SliceSize(duration_ns=10 * MS)), sample=False)
    assert all(one.outcome == Outcome.COMPLETE and one.started >= 16 for one in found.arms)


def test_a_statement_that_fails_is_counted_and_one_that_is_wrong_is_an_error(server):
    failing = [request(server, arm, "SELECT 1 / ($1::int - 4)") for arm in ARMS]
    found = run_block(block(failing, SliceSize(operations=5)), sample=False)
    assert [one.outcome for one in found.arms] == [Outcome.ERRORS] * 2
    assert [one.errors for one in found.arms] == [{"22012": 1}] * 2
    with pytest.raises(LoadError, match="no_such"):
        run_block(
            block([request(server, ARMS[0], "SELECT $1, no_such")], SliceSize(operations=1)), sample=False
        )


def test_a_block_ends_when_its_time_is_over_but_not_between_two_cycles_that_belong_together(server):
    requests = [request(server, arm, "SELECT f FROM t WHERE id = $1") for arm in ARMS]
    size = SliceSize(duration_ns=5 * MS)
    found = run_block(block(requests, size, cycles=100, limit_ns=35 * MS), sample=False)
    assert len(found.slices) % 4 == 0
    assert 4 <= len(found.slices) < 100
