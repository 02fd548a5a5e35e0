"""What reading the catalogue costs: a real server with statements, its locks, and the reading in steps."""

import threading
import time
from contextlib import closing
from dataclasses import asdict

import psycopg
import pytest

from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.observing import LockProbe, create_extension
from uncork.model.server import Target
from uncork.workbench.overhead.catalogue import WATCH_S, catalogue_cost, read_catalogue_once
from uncork.workbench.overhead.switched import STATEMENTS_COUNTED
from uncork.workbench.overhead.switches import switches

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]


@pytest.fixture(scope="module")
def server():
    one = EmbeddedServer({**STATEMENTS_COUNTED, "fsync": False})
    one.start()
    create_extension(one.conninfo(), "pg_stat_statements")
    with psycopg.connect(one.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, code text)")
        connection.execute("INSERT INTO item SELECT n, 'c' || n % 7 FROM generate_series(1, 5000) AS n")
        connection.execute("ANALYZE item")
    yield one
    one.stop()


@pytest.fixture
def target(server):
    address = resolve(server.conninfo())
    return Target(address.database, asdict(address), server.pid)


@pytest.fixture
def busy(server):
    """Keep a client busy with a statement on the table."""
    ended = threading.Event()

    def work():
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while not ended.is_set():
                connection.execute("SELECT count(*) FROM item WHERE code = %s", ("c1",))

    thread = threading.Thread(target=work)
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.mark.usefixtures("busy")
def test_a_reading_is_measured_on_both_sides(target):
    found = catalogue_cost(target)
    assert found.readings == 5
    assert found.tables == 1
    assert 0 < found.observer_ns < found.elapsed_ns
    assert 0 < found.server_ns < found.elapsed_ns
    assert found.share == pytest.approx((found.observer_ns + found.server_ns) / WATCH_S / 1e9)
    # EXPLAIN locks the table while it plans.
    assert found.lock_looks > 10 and found.lock_ns < 1e9


def test_the_cost_of_a_server_elsewhere_is_unknown(target):
    elsewhere = Target(target.database, target.connection, None)
    found = catalogue_cost(elsewhere)
    assert found.server_ns is None
    assert found.share == pytest.approx(found.observer_ns / WATCH_S / 1e9)


def test_locks_are_followed_from_look_to_look(server):
    with (
        psycopg.connect(server.conninfo()) as holder,
        closing(LockProbe(server.conninfo(), holder.info.backend_pid)) as probe,
    ):
        probe.look()
        assert (probe.looks, probe.longest_ns) == (1, 0)
        begun = time.monotonic_ns()
        holder.execute("LOCK TABLE item IN ROW SHARE MODE")
        probe.look()
        time.sleep(0.1)
        probe.look()
        held = time.monotonic_ns() - begun
        holder.commit()
        probe.look()
        assert probe.longest_ns > 100e6
        longest = probe.longest_ns
        # The next lock is another one, although it is on the same table.
        holder.execute("LOCK TABLE item IN ROW SHARE MODE")
        probe.look()
        holder.commit()
        probe.look()
        assert longest >= held * 0.9
        assert probe.longest_ns < longest + held


@pytest.mark.usefixtures("busy")
def test_a_reading_comes_in_steps_and_waits_between_them(target, server):
    steps = []
    with closing(ServerWatch(server.conninfo())) as watch:
        assert read_catalogue_once(watch, lambda: steps.append(time.monotonic())) == 1
    assert len(steps) > 10
    with switches(("catalogue",), target) as found:
        one = found["catalogue"]
        assert one._period_ns == pytest.approx(WATCH_S * 1e9 / (len(steps) + 1), rel=0.3)
        one.switch(True)
        time.sleep(0.1)
        one.switch(False)  # it ends in the middle of a reading
