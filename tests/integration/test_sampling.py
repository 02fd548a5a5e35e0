"""The system sampler beside a real server: whose processes, how much, and what may not be read."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import asdict
from types import SimpleNamespace

import psycopg
import pytest

from uncork.engines.conninfo import resolve
from uncork.engines.postmaster import local_postmaster, postmaster_of
from uncork.load.run import run_load
from uncork.load.sampler import Sampler
from uncork.model.load import LoadScript, LoadSpec
from uncork.model.system import GENERATOR, SERVER, Watch
from uncork.profile.system import system_use
from uncork.store.system import system_tables

pytestmark = pytest.mark.postgres
MS = 1_000_000
STRANGER = 65_533


@contextmanager
def as_stranger():
    """Give up the rights over other users' processes; without root there are none over root's own."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(STRANGER)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def use_of(series):
    return system_use(system_tables([({}, series)]))


def test_the_postmaster_is_found_over_a_socket_and_over_tcp(embedded):
    assert postmaster_of(embedded.conninfo()) == embedded.pid
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE over_tcp LOGIN PASSWORD 'secret'")
    words = {"host": "127.0.0.1", "user": "over_tcp", "password": "secret"}
    assert postmaster_of(psycopg.conninfo.make_conninfo(embedded.conninfo(), **words)) == embedded.pid


def test_a_process_here_that_bears_the_number_of_our_session_is_not_trusted():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as ours,
    ):
        link = SimpleNamespace(
            pgconn=SimpleNamespace(socket=ours.fileno()), info=SimpleNamespace(backend_pid=os.getpid())
        )
        assert local_postmaster(link) is None


def test_nobody_answers_for_a_server_that_is_not_there():
    assert postmaster_of("host=/nowhere port=1 dbname=x connect_timeout=1") is None


def test_a_load_tells_what_server_and_generator_used(embedded):
    script = LoadScript("count", 1, "SELECT count(*) FROM generate_series(1, 20000);\n")
    spec = LoadSpec(scripts=(script,), clients=2, operations_each=40)
    measured = run_load(spec, asdict(resolve(embedded.conninfo())), pid=embedded.pid)
    use = use_of(measured.system)
    totals = measured.totals
    counted = totals.server_user_ns + totals.server_system_ns
    assert 0.9 * counted <= use.cpu_ns(SERVER) <= counted + 5 * MS
    generator = totals.client_user_ns + totals.client_system_ns
    assert use.cpu_ns(GENERATOR) >= 0.9 * generator
    backends = next(one for one in use.processes if one.kind == "client backend")
    assert backends.processes >= 2
    assert backends.user_ns + backends.system_ns == backends.cpu_ns
    assert backends.voluntary_switches + backends.involuntary_switches > 0
    assert backends.rss_bytes > 1_000_000
    assert use.modes is not None
    assert sum(use.modes.values()) == pytest.approx(1)


def test_of_a_server_elsewhere_only_this_machine_is_told(embedded):
    spec = LoadSpec(scripts=(LoadScript("one", 1, "SELECT 1;\n"),), clients=1, operations_each=10)
    use = use_of(run_load(spec, asdict(resolve(embedded.conninfo()))).system)
    assert {one.role for one in use.processes} <= {GENERATOR}


def test_parallel_workers_and_their_kinds_are_told_apart(embedded):
    sampler = Sampler([Watch(SERVER, embedded.pid, children=True)], period_ns=10 * MS, memory=True)
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("SET debug_parallel_query = on")
        connection.execute("SELECT count(*) FROM generate_series(1, 500000)")
        connection.execute("SELECT pg_sleep(0.3)")
    use = use_of(sampler.stop())
    kinds = {one.kind for one in use.processes}
    assert "client backend" in kinds
    assert not any("postgres:" in kind or "[local]" in kind for kind in kinds)
    assert any(one.pss_bytes for one in use.processes)


def test_what_is_another_users_is_lacking_and_the_rest_is_told(embedded):
    watched = embedded.pid if os.geteuid() == 0 else 1
    with as_stranger():
        sampler = Sampler([Watch(SERVER, watched)], period_ns=10 * MS, memory=True)
        seen = sampler.stop()
    (lack,) = [one for one in seen.facts["lacks"] if one["what"].startswith("disk reads")]
    assert lack["what"] == "disk reads and writes of the server's processes"
    assert lack["reason"] == "they are another user's; run as that user or as root"
    assert seen.tables["system_processes"]["pid"].to_pylist() == [watched]
    assert seen.tables["system_samples"]["user_ns"].null_count == 0
