"""Processes of a service, read from /proc: this test's own process is one."""

import os
import shutil
import socket
import subprocess
import sys

import pytest

from uncork.engines.services.workers import WorkerWatch, runtime_of, socket_ports


def test_this_process_is_python_and_its_sockets_are_counted():
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, socket.create_connection(listener.getsockname()) as client:
        port = client.getsockname()[1]
        assert port in set(socket_ports(os.getpid()))
        watch = WorkerWatch([os.getpid()])
        sum(number * number for number in range(300_000))
        me = next(one for one in watch.end([port, 1]) if one.pid == os.getpid())
        assert me.runtime == "python"
        assert me.sessions == 1
        assert me.threads >= 1
        assert 0.0 < me.busiest <= 1.5
    assert next(one for one in WorkerWatch([os.getpid()]).end() if one.pid == os.getpid()).sessions is None


def test_children_are_watched_and_processes_that_ended_are_left_out():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        watch = WorkerWatch([os.getpid()])
        assert child.pid in [one.pid for one in watch.end()]
        assert next(one for one in watch.end() if one.pid == child.pid).parent == os.getpid()
        child.communicate(b"\n")
        assert child.pid not in [one.pid for one in watch.end()]


@pytest.mark.skipif(shutil.which("sleep") is None, reason="there is no sleep")
def test_a_program_without_a_known_runtime_is_native():
    with subprocess.Popen(["sleep", "30"]) as child:
        assert runtime_of(child.pid) == "native"
        child.kill()
