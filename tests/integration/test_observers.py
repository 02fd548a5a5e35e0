"""Limits that a load reaches, and what observing costs."""

import hashlib
import os
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import asdict

import psycopg
import pytest

from fakes.answered import log_result
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.observing import LockProbe, create_extension
from uncork.errors import RunError, UncorkError
from uncork.load.builtin import find
from uncork.model.results.log import LogRunFacts
from uncork.model.server import Target
from uncork.profile.logs import LogRequest, read_logs
from uncork.report.findings import finding_headline
from uncork.report.headline import fits
from uncork.workbench.overhead.catalogue import WATCH_S, catalogue_cost, read_catalogue_once
from uncork.workbench.overhead.observers import SESSIONS_HZ
from uncork.workbench.overhead.switched import (
    STATEMENTS_COUNTED,
    SwitchedLoad,
    judge_switched,
    measure_switched,
)
from uncork.workbench.overhead.switches import switches
from uncork.workbench.profile.databases import profile_database

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]

RUN = LogRunFacts("log-x", "complete", "2026-01-01T00:00:00+00:00", 1, 1, "uncork profile logs x", "0")
SETTINGS = {
    "max_connections": 20,
    "max_prepared_transactions": 2,
    "temp_file_limit": "256kB",
    "work_mem": "64kB",
    "log_line_prefix": "%m [%p] ",
}
ROLES = 17
"""Connections for roles that are no superusers: 20 without the three reserved ones."""


@pytest.fixture(scope="module")
def server():
    found = EmbeddedServer(dict(SETTINGS))
    found.start()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE shop LOGIN")
        connection.execute("CREATE ROLE poor LOGIN")
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def fresh_log(server, tmp_path):
    """Begin each test with an empty log."""
    server.take_log(tmp_path / "earlier.log")


def as_role(server, name):
    return server.conninfo().replace("user=uncork", f"user={name}")


def watched(server, tmp_path):
    address = resolve(as_role(server, "poor"))
    return profile_database(
        tmp_path / "runs", address, seconds=0.5, rate_hz=20.0, command="uncork profile db"
    ).result


def found(result, rule):
    return [one for one in result.findings if one.rule == rule]


def logged(server):
    reading = read_logs(LogRequest((server.logs[0],)))
    return log_result(RUN, reading.facts, reading.tables)


def test_a_healthy_server_is_far_from_its_limits(server, tmp_path):
    with psycopg.connect(as_role(server, "shop")):
        result = watched(server, tmp_path)
    assert result.connections == 1
    assert result.horizons == ()
    assert result.findings == ()
    assert found(logged(server), "connection-limit") == []


def test_connections_are_counted_until_the_server_refuses_one(server, tmp_path):
    with ExitStack() as stack:
        for _ in range(ROLES - 1):
            stack.enter_context(psycopg.connect(as_role(server, "shop")))
        result = watched(server, tmp_path)
        (near,) = found(result, "connection-limit")
        assert near.headline == "16 of 17 connections are open, so the server will soon refuse more"
        assert "max_connections = 40" in near.candidates[-1].sql
        stack.enter_context(psycopg.connect(as_role(server, "shop")))
        for _ in range(3):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(as_role(server, "shop"))
    (one,) = found(logged(server), "connection-limit")
    assert one.headline == "The server refused 3 connections: all connections were taken"
    assert "remaining connection slots" in one.evidence[1]
    assert fits(finding_headline(one))


def test_a_role_has_a_limit_of_its_own(server):
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute('CREATE ROLE "Batch job" LOGIN CONNECTION LIMIT 1')
    conninfo = psycopg.conninfo.make_conninfo(server.conninfo(), user="Batch job")
    with psycopg.connect(conninfo), pytest.raises(psycopg.OperationalError):
        psycopg.connect(conninfo)
    (own,) = found(logged(server), "connection-limit")
    assert (own.objects, own.cost) == (("Batch job",), "1 refused connection")


def test_a_statement_beyond_the_limit_of_temporary_files_is_named(server):
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        for _ in range(2):
            with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
                connection.execute(
                    "SELECT md5(n::text) AS hash FROM generate_series(1, 50000) AS n ORDER BY 1"
                )
    (one,) = found(logged(server), "temporary-file-limit")
    assert one.headline.startswith("Temporary files of 2 statements exceeded temp_file_limit (256 kB)")
    assert one.statement.startswith("SELECT md5")
    assert "temp_file_limit = '512kB'" in one.candidates[1].sql


def test_a_prepared_transaction_keeps_dead_rows(server, tmp_path):
    steps = (
        "CREATE TABLE ticket AS SELECT n AS id, 0 AS n FROM generate_series(1, 10000) AS n",
        "BEGIN; INSERT INTO ticket VALUES (0, 0); PREPARE TRANSACTION 'order 17'",
        "SET synchronous_commit = off; UPDATE ticket SET n = 1",
        "UPDATE ticket SET n = 2",
    )
    for step in steps:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute(step)
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(
            "DO $$ BEGIN FOR i IN 1..10000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$"
        )
        connection.execute("VACUUM ANALYZE ticket")
    result = watched(server, tmp_path)
    assert [(one.kind, one.name, one.user) for one in result.horizons] == [
        ("prepared transaction", "order 17", "uncork")
    ]
    (one,) = found(result, "vacuum-held-back")
    assert one.headline.startswith("VACUUM keeps dead rows of ticket for prepared transaction order 17, open")
    assert one.bill is None
    assert "ROLLBACK PREPARED 'order 17'" in one.candidates[0].text
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("ROLLBACK PREPARED 'order 17'")
        connection.execute("VACUUM ticket")
    after = watched(server, tmp_path)
    assert after.horizons == ()
    assert found(after, "vacuum-held-back") == []


@pytest.fixture(scope="module")
def switching_server():
    one = EmbeddedServer({"fsync": False})
    one.start()
    yield one
    one.stop()


@pytest.fixture
def measure(switching_server):
    address = resolve(switching_server.conninfo())
    target = Target(address.database, asdict(address), switching_server.pid)

    def run(seconds, names=(), others=None):
        load = SwitchedLoad("select-only", find("select-only").text, 1, 2, 1, seconds)
        return measure_switched(load, target, address.conninfo(), names, lambda _: None, others)

    return run


class Burner:
    """Takes most of every processor while it is on.

    Of a single one is not enough: a busy neighbour keeps a virtual processor awake, which can help the load.
    """

    def __init__(self):
        self.on, self.ended = threading.Event(), False
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in os.sched_getaffinity(0)]
        for one in self.threads:
            one.start()

    def switch(self, on):
        self.on.set() if on else self.on.clear()

    def work(self):
        block = b"x" * 1_000_000  # hashing so much lets go of the interpreter
        while not self.ended:
            if self.on.wait(0.1):
                hashlib.sha256(block).digest()


def test_what_takes_most_of_the_processors_is_found(measure):
    burner, slices = Burner(), []
    try:
        for _ in range(20):  # a few are enough where nothing else runs; beside other tests it takes more
            found = measure(5, others={"burner": burner})
            assert not found.interrupted
            slices.extend(found.slices)
            cost = judge_switched(slices, "burner", 0.95, 0.99)
            assert cost.quadruples * 4 == len(slices)
            if cost.sure and cost.sure.high < 1 and cost.processor_sure.low > 1:
                break
        else:
            pytest.fail(f"not found in {cost.quadruples} quadruples: {cost}")
    finally:
        burner.ended = True
        for one in burner.threads:
            one.join()
    assert judge_switched(slices, "another", 0.95, 0.99) is None


def test_uncorks_own_samplers_are_switched_and_an_observer_that_breaks_off_is_told(measure):
    found = measure(3.5, names=("system", "sessions"))
    assert {name for one in found.slices for name in one.on} == {"system", "sessions"}
    for one in found.slices:
        assert one.operations > 0
        assert one.length_ns > 80e6
        assert one.work_ns > 0

    class Broken:
        def switch(self, on):
            raise UncorkError("it fell over")

    with pytest.raises(RunError, match="an observer stopped early: it fell over"):
        measure(3.5, others={"broken": Broken()})


def test_samplers_work_while_they_are_on_only(switching_server):
    address = resolve(switching_server.conninfo())
    with switches(("sessions",), Target(address.database, asdict(address), switching_server.pid)) as found:
        sessions, looked = found["sessions"], found["sessions"]._found.samples
        sessions.switch(False)
        time.sleep(0.2)
        assert not looked
        begun = time.monotonic()
        sessions.switch(True)
        while len(looked) < 4 and time.monotonic() < begun + 60:
            time.sleep(0.05)
        sessions.switch(False)
        many, seconds = len(looked), time.monotonic() - begun
        assert 4 <= many <= SESSIONS_HZ * seconds + 1
        time.sleep(0.3)
        assert len(looked) <= many + 1


@pytest.fixture(scope="module")
def catalogue_server():
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
def target(catalogue_server):
    address = resolve(catalogue_server.conninfo())
    return Target(address.database, asdict(address), catalogue_server.pid)


@pytest.fixture
def busy(catalogue_server):
    """Keep a client busy with a statement on the table."""
    ended = threading.Event()

    def work():
        with psycopg.connect(catalogue_server.conninfo(), autocommit=True) as connection:
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


def test_locks_are_followed_from_look_to_look(catalogue_server):
    with (
        psycopg.connect(catalogue_server.conninfo()) as holder,
        closing(LockProbe(catalogue_server.conninfo(), holder.info.backend_pid)) as probe,
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
def test_a_reading_comes_in_steps_and_waits_between_them(target, catalogue_server):
    steps = []
    with closing(ServerWatch(catalogue_server.conninfo())) as watch:
        assert read_catalogue_once(watch, lambda: steps.append(time.monotonic())) == 1
    assert len(steps) > 10
    with switches(("catalogue",), target) as found:
        one = found["catalogue"]
        assert one._period_ns == pytest.approx(WATCH_S * 1e9 / (len(steps) + 1), rel=0.3)
        one.switch(True)
        time.sleep(0.1)
        one.switch(False)  # it ends in the middle of a reading
