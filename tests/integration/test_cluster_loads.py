"""Loads from nodes without Ray: real parts on a real server, wrong clocks, killed and frozen nodes."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.http_loads import spec_for
from fakes.http_servers import nginx
from fakes.local_nodes import LocalNodes, ShiftedAgent
from uncork.cluster.agent import Keeper, NodeAgent
from uncork.cluster.loads import new_cluster_load, new_cluster_sweep, planned_load
from uncork.errors import RunError, UsageError
from uncork.model.load import Arrivals, ClusterRequest, LoadOutcome
from uncork.model.sweep import SweepSpec
from uncork.report.load.tables import parts_reasons
from uncork.requests.jobs import HttpJob, SweepRequest
from uncork.store.snapshots import read_snapshots
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.documents.loads import read_load

pytestmark = [pytest.mark.xdist_group("http"), pytest.mark.thorough]
MS = 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


@pytest.fixture
def begun(server, tmp_path):
    """Return a load of a number of nodes, and the nodes; 300 requests a second, for `seconds`."""

    def begin(nodes, seconds=4, on_lost="stop", **changes):
        arrivals = Arrivals("poisson", 300.0)
        spec = spec_for(server.ports["plain"], clients=6, arrivals=arrivals, duration_ns=seconds * 10**9)
        job = HttpJob(replace(spec, **changes), "uncork load http --nodes 3")
        plan = planned_load(job, ClusterRequest(nodes.count, on_lost=on_lost))
        return new_cluster_load(tmp_path / "runs", plan, nodes.reserve)

    return begin


def agents(*shifts_ms):
    return LocalNodes([ShiftedAgent(shift * MS) for shift in shifts_ms])


def after(seconds, act):
    """Call a function so many seconds after the load began; return what to pass as its progress."""
    began = threading.Event()

    def progress(_):
        if not began.is_set():
            began.set()
            threading.Timer(seconds, act).start()

    return progress


def closes(result):
    for part in result.parts.parts:
        assert part.planned == part.started + part.not_started + part.unknown
    return result


def test_nodes_with_wrong_clocks_start_together_and_seconds_coincide(begun, server, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", tempfile.mkdtemp(dir=tmp_path))
    before, told = len(server.requests("plain")), []
    nodes = agents(-250, 0, 250)
    load = begun(nodes)
    outcome = load.run(lambda one: told.append((one, len(read_snapshots(load.folder)))), lambda _: None)
    result = closes(read_load(load.folder))
    assert outcome is LoadOutcome.COMPLETE
    assert result.counts.started == len(server.requests("plain")) - before > 900
    for part, shift_ms in zip(result.parts.parts, (-250, 0, 250), strict=True):
        assert (part.ended, part.lost, part.unknown) == ("complete", None, 0)
        assert abs(part.clock_offset_ns - shift_ms * MS) <= part.clock_bound_ns + MS
        assert part.began_after_ns < 200 * MS
    # The seconds of the whole were told while it ran, and stored for the dashboard.
    assert [stored for _, stored in told] == list(range(1, len(told) + 1))
    assert len(told) >= 2 and {one.clients for one, _ in told} == {6}
    assert not list(Path(tempfile.gettempdir()).iterdir())
    # A node sends about 1 kB a second while it measures: less than a tenth of what it may.
    assert nodes.traffic < 3 * 4 * 10_000


def test_the_load_goes_on_without_a_killed_node_and_says_since_when(begun, server):
    before, nodes, notes = len(server.requests("plain")), agents(0, 0, 0), []
    load = begun(nodes, seconds=6, on_lost="continue")
    outcome = load.run(after(1.0, lambda: nodes.kill(3)), notes.append)
    result = closes(read_load(load.folder))
    lost = result.parts.parts[2]
    assert outcome is LoadOutcome.NODE_LOST
    assert [part.ended for part in result.parts.parts] == ["complete", "complete", "lost"]
    assert 1 < lost.lost_s < 6 and 0 < lost.started < lost.planned
    sent = len(server.requests("plain")) - before
    assert result.counts.started <= sent <= result.counts.started + lost.unknown
    assert any("node 3" in note and "2 nodes continue" in note for note in notes)
    assert any("From then on, the load came from 2 of 3 nodes." in one for one in parts_reasons(result))
    assert read_load(load.folder).answer.startswith("1 of 3 parts did not complete: ")


def test_a_frozen_node_is_given_up_the_others_stop_and_nothing_is_sent_afterwards(begun, server):
    before, nodes = len(server.requests("plain")), agents(0, 0)
    load = begun(nodes, seconds=60)
    frozen = []

    def freeze():
        frozen.append(time.monotonic())
        nodes.freeze(1)

    load.run(after(0.5, freeze), lambda _: None)
    result = closes(read_load(load.folder))
    first, second = result.parts.parts
    assert (first.ended, second.ended) == ("lost", "interrupted")
    assert first.lost == "it does not answer any more"
    assert time.monotonic() - frozen[0] < 20
    sent = len(server.requests("plain")) - before
    assert result.counts.started <= sent <= result.counts.started + first.unknown
    time.sleep(0.3)
    assert len(server.requests("plain")) - before == sent


def test_a_suspended_keeper_is_named_and_a_killed_one_ends_its_node(begun, server):
    before, notes = len(server.requests("plain")), []
    with subprocess.Popen(["sleep", "600"]) as process:
        nodes = LocalNodes([NodeAgent(), NodeAgent(keeper=Keeper(process.pid, "the raylet"))])
        load = begun(nodes, seconds=60)
        seen = []

        def act():
            process.send_signal(signal.SIGSTOP)
            until = time.monotonic() + 10
            while not any("is suspended" in note for note in notes) and time.monotonic() < until:
                time.sleep(0.05)
            seen.append(time.monotonic())
            process.kill()
            process.wait()

        load.run(after(0.5, act), notes.append)
        noticed = time.monotonic() - seen[0]
    first, second = closes(read_load(load.folder)).parts.parts
    assert (first.ended, second.ended, second.lost) == ("interrupted", "lost", "the raylet has ended")
    assert sum("is suspended: the part there goes on" in note for note in notes) == 1
    assert any("node 2" in note and "(the raylet has ended): the load stops" in note for note in notes)
    assert noticed < 20  # the lease of the lost part must end first
    sent = len(server.requests("plain")) - before
    assert first.started + second.started <= sent <= first.started + second.started + second.unknown


def test_a_killed_part_is_counted_by_its_own_files(begun):
    nodes = LocalNodes([NodeAgent(), NodeAgent()])
    load = begun(nodes, seconds=5, on_lost="continue")

    def kill():
        nodes.agents[1]._child.kill()

    load.run(after(0.5, kill), lambda _: None)
    result = closes(read_load(load.folder))
    part = result.parts.parts[1]
    assert (part.ended, part.lost) == ("lost", "the process of its part ended: signal 9")
    assert 0 < part.unknown < 600 and part.not_started > 0


def test_a_person_who_interrupts_keeps_what_was_measured(begun):
    load = begun(agents(0, 0), seconds=60)
    notes = []
    outcome = load.run(after(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)), notes.append)
    result = closes(read_load(load.folder))
    assert outcome is LoadOutcome.INTERRUPTED
    assert [part.ended for part in result.parts.parts] == ["interrupted", "interrupted"]
    assert result.counts.succeeded > 0
    assert notes == ["stopping the nodes; interrupt once more to leave at once"]


def test_a_part_that_cannot_be_prepared_ends_the_load_before_anything_is_sent(begun, server):
    before = len(server.requests("plain"))
    load = begun(agents(0, 0), environment=(("UNCORK_TEST_TOKEN", "secret"),))
    with pytest.raises(UsageError, match=r"^node \d \(.*\): .*no environment variable UNCORK_TEST_TOKEN"):
        load.run(None, lambda _: None)
    assert not load.folder.exists()
    assert len(server.requests("plain")) == before


def test_a_node_that_is_lost_before_the_start_ends_the_load(begun):
    nodes = agents(0, 0)
    load = begun(nodes)
    nodes.kill(2)
    with pytest.raises(RunError, match="node 2 is lost: the process of its agent has ended"):
        load.run(None, lambda _: None)
    assert not load.folder.exists()


def test_a_sweep_sends_each_step_from_all_nodes(server, tmp_path):
    before = len(server.requests("plain"))
    spec = spec_for(server.ports["plain"], clients=2, arrivals=Arrivals("constant", 100.0), duration_ns=10**9)
    job = HttpJob(spec, "uncork load http --sweep rate --nodes 2")
    wanted = SweepRequest(SweepSpec("rate", 100.0, 200.0, 10**9, 14 * 10**9, (), seed=1), 100.0)
    nodes = agents(0, 0)
    sweep = new_cluster_sweep(tmp_path / "runs", job, wanted, ClusterRequest(2), nodes.reserve)
    steps, notes = [], []
    assert sweep.sweep(steps.append, notes.append) == "complete"
    assert [step.level for step in steps[:2]] == [100.0, 200.0]
    for step in steps:
        assert step.complete and step.succeeded == pytest.approx(step.level, rel=0.1)
    assert sum(step.started for step in steps) == len(server.requests("plain")) - before
    result = kind_named("sweep").read(sweep.folder)
    levels = [level.level for level in result.levels]
    assert (levels[0], levels[-1]) == (100.0, 200.0) and result.bottlenecks == ()
    assert any("machines of the nodes are not watched" in one for one in result.missing)
    few = SweepRequest(SweepSpec("clients", 1.0, 8.0, 10**9, 20 * 10**9, (), seed=1), 1.0)
    with pytest.raises(UsageError, match="begin with at least -c 2"):
        new_cluster_sweep(tmp_path / "runs", job, few, ClusterRequest(2), nodes.reserve)
