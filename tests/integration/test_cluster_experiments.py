"""An experiment on several hosts, without Ray: agents in this process, whose servers are real."""

import json
import sys
import zlib
from pathlib import Path

import pytest

from fakes.local_nodes import LocalNodes
from uncork.analysis.experiment.result import build_result
from uncork.cluster import conductor
from uncork.cluster.agent import NodeAgent
from uncork.cluster.experiments import new_host_session
from uncork.engines.embedded import EmbeddedServer
from uncork.errors import RunError, UsageError
from uncork.experiment.guard.sides import parse_side
from uncork.experiment.run.events import Finished, RoundEnded
from uncork.model.load import ClusterRequest
from uncork.model.results.guard import GateOutcome
from uncork.report.experiment.answer import answer_experiment
from uncork.requests.guard import GuardRequest
from uncork.requests.hosts import HostRequest
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, file_source
from uncork.store.layout import read_manifest
from uncork.store.run_documents import read_hosts
from uncork.workbench.guard.experiment import guard_experiment

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]
EXAMPLE = Path(__file__).parents[2] / "examples" / "pytest" / "orders.toml"
QUICK = (
    EXAMPLE.read_text()
    .replace("generate_series(1, 20000)", "generate_series(1, 5000)")
    .replace("operations = 30", "operations = 10")
)
"""The example with less data and fewer trials, whose rounds take little more than a start of the server."""


class MachineAgent(NodeAgent):
    """An agent on a machine of its own, as its run says."""

    def __init__(self, number):
        super().__init__()
        self._number = number

    def new_files(self):
        files = super().new_files()
        if "host.json" in files:
            files["host.json"] = zlib.compress(
                json.dumps({"name": f"db{self._number}", "machine": self._number}).encode()
            )
        return files


FAILING = """
import sys
from uncork.cluster import host_process
from uncork.errors import ServerCrash

def fail(self, left=[{rounds}]):
    left[0] -= 1
    if left[0] < 0:
        raise ServerCrash("the server does not come back")
    self._open = None

host_process.Granted.end_round = fail
host_process.main()
"""
"""A program of a host that fails after some rounds: the last one is stored, but not reported."""


class FailingAgent(MachineAgent):
    """An agent of a host whose program fails after some rounds."""

    def __init__(self, number, rounds):
        super().__init__(number)
        self._commands = {"experiment": (sys.executable, "-c", FAILING.format(rounds=rounds))}


class KeepingNodes(LocalNodes):
    """Nodes of which the second does not hand over its first round."""

    def ask(self, number, method, *arguments):
        if number == 2 and (2, method) in self.calls and method == "new_files":
            self.freeze(2)
        return super().ask(number, method, *arguments)


@pytest.fixture
def quick(tmp_path):
    file = tmp_path / "orders.toml"
    file.write_text(QUICK)
    return file


@pytest.fixture
def started(tmp_path, quick):
    notes = []

    def start(nodes, budget_s=30.0, precision=0.6, file=quick, dsns=()):
        source = file_source(file, Options(budget_ns=int(budget_s * 1e9), precision=precision))
        request = HostRequest(ClusterRequest(nodes.count, "auto"), dsns)
        session = new_host_session(
            tmp_path / "runs", source, request, ServerChoice(), notes.append, nodes.reserve
        )
        return session, notes

    return start


def test_each_wave_has_a_round_of_every_host_and_all_decide_together(started):
    nodes = LocalNodes([MachineAgent(1), MachineAgent(2)])
    session, notes = started(nodes)
    events = list(session.events())
    result = build_result(session.folder)
    hosts = read_hosts(session.folder)
    assert [one.name for one in hosts] == ["db1", "db2"]
    waves = [one.waves for one in hosts]
    assert waves[0] == waves[1] == tuple(range(1, len(waves[0]) + 1))
    assert sorted(sum((one.rounds for one in hosts), ())) == list(range(1, 2 * len(waves[0]) + 1))
    assert [one.number for one in events if isinstance(one, RoundEnded)] == [2 * one for one in waves[0]]
    assert isinstance(events[-1], Finished) and "precise as asked" in events[-1].reason
    assert result.run.status == "complete" and result.run.rounds == 2 * len(waves[0]) >= 5
    assert result.run.reproduce == f"uncork rerun {session.folder.name} --hosts 2"
    (comparison,) = result.comparisons
    assert comparison.scopes.these_hosts.count == result.run.rounds
    assert f"in {len(waves[0])} waves" in " ".join(answer_experiment(result).reasons)
    assert not notes


def test_a_lost_host_is_named_and_the_others_continue(started):
    nodes = LocalNodes([MachineAgent(1), MachineAgent(2), MachineAgent(3)])
    session, notes = started(nodes, precision=0.5)
    for event in session.events():
        if isinstance(event, RoundEnded) and event.number == 3:
            nodes.kill(3)
    hosts = read_hosts(session.folder)
    assert [len(one.rounds) for one in hosts][2] == 1
    assert [one.lost for one in hosts] == ["", "", "the process of its agent has ended"]
    assert any("node 3" in one and "2 hosts continue" in one for one in notes)
    result = answer_experiment(build_result(session.folder))
    assert result.run.status == "complete"
    assert [one.lost for one in result.hosts] == ["", "", "the process of its agent has ended"]
    assert "1 round was lost with db3 (the process of its agent has ended)." in " ".join(result.reasons)


def test_an_interrupted_run_keeps_its_waves_and_leaves_no_server(started):
    nodes = LocalNodes([MachineAgent(1), MachineAgent(2)])
    session, _ = started(nodes, precision=0.01)
    events = session.events()
    with pytest.raises(KeyboardInterrupt):
        for event in events:
            if isinstance(event, RoundEnded):
                events.throw(KeyboardInterrupt)
    assert read_manifest(session.folder).status == "interrupted"
    assert build_result(session.folder).run.rounds == 2
    assert all(agent._child is None for agent in nodes.agents)


def test_an_experiment_that_a_host_cannot_prepare_is_refused_and_leaves_nothing(started, tmp_path):
    file = tmp_path / "broken.toml"
    file.write_text(QUICK.replace("INSERT INTO orders", "INSERT INTO ordres"))
    session, _ = started(LocalNodes([MachineAgent(1), MachineAgent(2)]), file=file)
    with pytest.raises(UsageError, match=r'node \d .*"ordres" does not exist'):
        list(session.events())
    assert not session.folder.exists()


def test_a_host_whose_program_fails_is_lost_with_its_unreported_round(started):
    session, notes = started(LocalNodes([MachineAgent(1), FailingAgent(2, rounds=1)]))
    list(session.events())
    hosts = read_hosts(session.folder)
    assert [one.lost for one in hosts] == ["", "the server does not come back"]
    assert hosts[1].waves == (1,) and len(hosts[0].waves) >= 4
    assert build_result(session.folder).run.rounds == len(hosts[0].rounds) + 1
    assert any("the server does not come back" in one for one in notes)


def test_a_host_that_keeps_its_round_is_lost_and_the_others_continue(started, monkeypatch):
    monkeypatch.setattr(conductor, "_ANSWER_S", 3.0)
    session, notes = started(KeepingNodes([MachineAgent(1), MachineAgent(2)]))
    list(session.events())
    hosts = read_hosts(session.folder)
    assert "could not be fetched" in hosts[1].lost and not hosts[1].rounds and len(hosts[0].rounds) >= 5
    assert any("node 2" in one and "1 host continues" in one for one in notes)


def test_without_a_host_that_measured_the_run_is_gone_and_the_reason_told(started):
    session, _ = started(LocalNodes([FailingAgent(1, rounds=0), FailingAgent(2, rounds=0)]))
    with pytest.raises(RunError, match=r"no host has measured a round: .* the server does not come back"):
        list(session.events())
    assert not session.folder.exists()


def test_a_guard_measures_both_sides_on_each_host_and_confirms_on_hosts_drawn_anew(tmp_path, quick):
    drawn = []

    def start(root, source, choice, until=None):
        nodes = LocalNodes([MachineAgent(1), MachineAgent(2)])
        drawn.append(source.spec.experiment.seed)
        request = HostRequest(ClusterRequest(nodes.count, "auto"))
        return new_host_session(root, source, request, choice, str, nodes.reserve, until)

    wanted = GuardRequest(
        target=str(quick),
        baseline=parse_side("baseline", ["variant=index"]),
        candidate=parse_side("candidate", ["variant=without"]),
        gates=("latency_p50 < +20%",),
        options=Options(budget_ns=40 * 10**9),
        on_hosts=True,
    )
    result = guard_experiment(tmp_path, wanted, lambda session: list(session.events()), str, start)
    (check,) = result.checks
    assert check.outcome is GateOutcome.BROKEN and check.confirmed and check.rounds >= 5
    assert len(set(drawn)) == len(result.runs) == 2
    for run in result.runs:
        assert [len(one.waves) for one in read_hosts(tmp_path / run)] == [check.rounds // 2] * 2
    assert result.hosts == 2 and "side by side on 2 hosts in 3 waves." in " ".join(result.reasons)


def test_each_host_can_measure_on_a_running_server(started):
    server = EmbeddedServer({})
    server.start()
    try:
        dsns = (server.conninfo("postgres"), f"{server.conninfo('postgres')} application_name=other")
        session, _ = started(LocalNodes([MachineAgent(1), MachineAgent(2)]), dsns=dsns)
        list(session.events())
    finally:
        server.stop()
    manifest = read_manifest(session.folder)
    assert manifest.unit == "block" and manifest.server.startswith("existing, on 2 hosts: ")
    result = build_result(session.folder)
    assert result.run.status == "complete" and len(result.hosts) == 2
    parts = sorted((session.folder / "parts").iterdir())
    assert [read_manifest(one).server for one in parts] == [f"existing: {one}" for one in dsns]


def test_a_password_is_not_sent_to_a_cluster(started, tmp_path):
    with pytest.raises(UsageError, match="has a password, which would be sent to the cluster"):
        started(LocalNodes([MachineAgent(1)]), dsns=("host=db1 password=secret",))
    assert not (tmp_path / "runs").exists()
