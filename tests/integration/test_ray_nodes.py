"""Loads from the nodes of real Ray clusters on this machine: attached, refused, killed, and its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")

from fakes.http_servers import nginx
from fakes.ray_cluster import ray_cluster
from uncork.spawn.reaper import processes

EXPERIMENT = Path(__file__).parents[2] / "examples" / "pytest" / "orders.toml"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray"), pytest.mark.thorough]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster([{}, {}], client=True) as running:
        yield running


@pytest.fixture
def words(server, tmp_path):
    url = f"http://127.0.0.1:{server.ports['plain']}/small.txt"
    load = ("load", "http", "-c", "6", "-R", "300", "--arrivals", "poisson", "--runs", str(tmp_path / "runs"))
    return (sys.executable, "-m", "uncork", *load, url)


def run(words, environment):
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=240)


def parts_of(done):
    parts = json.loads(done.stdout)["parts"]["parts"]
    for part in parts:
        assert part["planned"] == part["started"] + part["not_started"] + part["unknown"]
    return parts


def commands(folder=""):
    """Return the command line of each process, by pid; or of those whose temporary folder this is."""
    found = {}
    for one in processes():
        place = Path(f"/proc/{one.pid}")
        try:
            if not folder or f"TMPDIR={folder}".encode() in (place / "environ").read_bytes().split(b"\0"):
                found[one.pid] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


@pytest.mark.parametrize("place", ["address", "client"])
def test_two_nodes_send_one_load(cluster, server, words, place):
    before = len(server.requests("plain"))
    at = getattr(cluster, place)
    done = run((*words, "-D", "2", "--nodes", "2", "--cluster", at, "--yes", "--json"), cluster.environment)
    assert done.returncode == 0, done.stderr
    parts = parts_of(done)
    assert [(part["ended"], part["unknown"]) for part in parts] == [("complete", 0)] * 2
    assert sum(part["started"] for part in parts) == len(server.requests("plain")) - before > 300
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"uncork: 2 nodes of {at} will send 300 requests a second over 6 connections")
    assert lines[-1].startswith("uncork: run "), done.stderr


def test_a_killed_agent_is_noticed_and_all_parts_end(cluster, server, words):
    before = len(server.requests("plain"))
    asked = ("-D", "60", "--nodes", "2", "--cluster", cluster.address, "--yes", "--json")
    with subprocess.Popen(
        (*words, *asked, "-P", "1"),
        env=cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as load:
        for line in load.stderr:
            if line.startswith("progress: "):
                break
        (agent,) = (
            one.pid
            for one in processes()
            if one.parent == cluster.raylets[1] and "RayAgent" in commands().get(one.pid, "")
        )
        os.kill(agent, 9)
        killed = time.monotonic()
        for line in load.stderr:
            if "is lost" in line:
                break
        assert time.monotonic() - killed < 3
        output, errors = load.communicate(timeout=60)
    parts = parts_of(subprocess.CompletedProcess((), load.returncode, output, errors))
    assert load.returncode == 2
    assert sorted(part["ended"] for part in parts) == ["interrupted", "lost"]
    assert "the load stops" in line
    started, unknown = (sum(part[name] for part in parts) for name in ("started", "unknown"))
    assert started <= len(server.requests("plain")) - before <= started + unknown


def test_more_nodes_than_the_cluster_has_are_refused(cluster, words):
    done = run(
        (*words, "-D", "2", "--nodes", "3", "--cluster", cluster.address, "--yes"), cluster.environment
    )
    assert done.returncode == 1
    assert "the cluster has 2 machines with a processor for Ray, but --nodes asks for 3" in done.stderr


@pytest.mark.postgres
def test_an_experiment_runs_on_two_hosts(cluster, tmp_path):
    words = (sys.executable, "-m", "uncork", "run", str(EXPERIMENT), "--runs", str(tmp_path / "runs"))
    asked = ("--budget", "40s", "--precision", "80%", "--hosts", "2", "--cluster", cluster.address)
    unasked = run((*words, *asked), cluster.environment)
    assert unasked.returncode == 1 and "must be confirmed: add --yes" in unasked.stderr
    assert not (tmp_path / "runs").exists()
    done = run((*words, *asked, "--yes"), cluster.environment)
    assert done.returncode == 0, done.stderr
    assert f"2 hosts of {cluster.address}, drawn by lot, will each start PostgreSQL" in done.stderr
    assert "which counts as one host" in " ".join(done.stdout.split())
    (folder,) = (tmp_path / "runs").iterdir()
    (host,) = json.loads((folder / "hosts.json").read_text())
    assert len(host["runs"]) == 2 and len(host["rounds"]) == 2 * max(host["waves"]) >= 5
    too_many = run((*words, "--hosts", "3", "--cluster", cluster.address, "--yes"), cluster.environment)
    assert too_many.returncode == 1 and "but --hosts asks for 3" in too_many.stderr


def test_a_cluster_that_requires_no_token_gets_no_load(server, words):
    before = len(server.requests("plain"))
    with ray_cluster([{}], token=None) as open_to_all:
        environment = {**open_to_all.environment, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "t" * 64}
        asked = ("-D", "2", "--nodes", "1", "--cluster", open_to_all.address, "--yes")
        done = run((*words, *asked), environment)
    assert done.returncode == 1
    assert "requires no token" in done.stderr and "RAY_AUTH_MODE=token" in done.stderr
    assert len(server.requests("plain")) == before


def test_a_cluster_of_its_own_asks_nobody_is_on_loopback_and_leaves_nothing(words, tmp_path):
    environment = {**os.environ, "TMPDIR": tempfile.mkdtemp(dir="/tmp", prefix="t-")}
    with subprocess.Popen(
        (*words, "-D", "6", "--nodes", "2", "--json", "-P", "1"),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as load:
        said = []
        for line in load.stderr:
            said.append(line)
            if line.startswith("progress: "):
                break
        else:
            pytest.fail(f"the load ended early: {''.join(said)}")
        assert len(commands(environment["TMPDIR"])) > 5, "the processes of the cluster are known by it"
        listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
        output, errors = load.communicate(timeout=60)
    own = [
        one.split()[3] for one in listening.splitlines() if "ray::" in one or "raylet" in one or "gcs" in one
    ]
    assert own and all("127.0.0.1" in place for place in own), own
    parts = parts_of(subprocess.CompletedProcess((), 0, output, errors))
    assert load.returncode == 0, errors
    assert [part["ended"] for part in parts] == ["complete", "complete"]
    time.sleep(1.0)
    assert commands(environment["TMPDIR"]) == {}
    assert list(Path(environment["TMPDIR"]).iterdir()) == []
