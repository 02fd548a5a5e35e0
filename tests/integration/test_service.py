"""The processes of a real service: found by their port, and what they hold while it is loaded."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

from uncork.engines.services.inspection import ServiceWatch, ThreadTimes, find_service, is_here
from uncork.workbench.load.monitor import find_components

LISTENER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0), backlog=1)
files = [open("/dev/null") for _ in range(int(sys.argv[1]))]
print(listener.getsockname()[1], flush=True)
while sys.argv[2] == "busy":
    pass
time.sleep(60)
"""


@contextmanager
def listener(files: int = 0, what: str = "sleeps", limit: int = 64):
    """Run a process that listens, accepts nobody, and holds files; yield its port and itself."""
    running = subprocess.Popen(
        [sys.executable, "-c", LISTENER, str(files), what],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),  # noqa: PLW1509
    )
    try:
        assert running.stdout is not None
        yield int(running.stdout.readline()), running.pid
    finally:
        running.kill()
        running.communicate()


def test_a_service_is_found_by_the_port_on_which_it_listens():
    with listener() as (port, pid):
        found, missing = find_service((), "127.0.0.1", port)
        assert found is not None and found.pids == (pid,) and found.port == port and not missing
        assert find_service((), "localhost", port)[0] == found
    assert find_service((), "127.0.0.1", port) == (None, ())


def test_our_own_process_is_no_service():
    with socket.create_server(("127.0.0.1", 0)) as own:
        assert find_service((), "127.0.0.1", own.getsockname()[1]) == (None, ())


def test_an_address_of_another_machine_is_not_here():
    assert is_here("127.0.0.1")
    assert not is_here("192.0.2.1")


def test_a_process_that_is_gone_is_told_and_the_others_are_looked_at():
    with listener() as (port, pid):
        found, (lacking,) = find_service((pid, 4194303), "127.0.0.1", port)
        assert found is not None and found.pids == (pid,)
        assert "there is no process 4194303" in lacking


def test_open_files_stand_beside_their_limit():
    with listener(files=20, limit=40) as (port, pid):
        watch = ServiceWatch(find_service((pid,), "127.0.0.1", port)[0])
        watch.look()
        held = watch.end()
    assert held.descriptor_limit == 40
    assert 23 <= held.descriptors <= 30


def test_connections_that_wait_to_be_accepted_are_seen_and_those_without_room_counted():
    with listener() as (port, _):
        watch = ServiceWatch(find_service((), "127.0.0.1", port)[0])
        clients = [socket.socket() for _ in range(8)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        time.sleep(0.3)
        watch.look()
        held = watch.end()
        for client in clients:
            client.close()
    assert held.backlog == 2, "one more than the backlog"
    assert held.overflows is not None and held.overflows >= 1


def test_a_busy_thread_is_told_apart_from_one_that_sleeps():
    with listener(what="busy") as (_, busy), listener() as (_, sleeps):
        times = [ThreadTimes((pid,)) for pid in (busy, sleeps)]
        time.sleep(0.5)
        (busiest, waited), (idle, _) = (one.end() for one in times)
    assert busiest[0] + waited > 0.5, "other programs may have taken the processor"
    assert idle[0] < 0.1


def test_a_database_that_cannot_be_reached_is_told_in_one_sentence():
    components = find_components((), "192.0.2.1", 80, "host=127.0.0.1 port=1 dbname=x connect_timeout=2")
    (lacking,) = components.missing
    assert components.conninfo is None and components.service is None
    assert lacking.startswith("--postgres: ") and "\n" not in lacking
    assert "the load continues without" in lacking


def test_threads_that_ended_are_known_as_of_the_last_look():
    with listener(what="busy") as (_, pid):
        times = ThreadTimes((pid,))
        time.sleep(0.4)
        times.look()
    busy, waited = times.end()
    assert busy[0] + waited > 0.3
