"""Which runs are of one host: those of one machine, and those of machines of one name."""

from uncork.model.stored_run import RunHost
from uncork.workbench.experiment.joining import host_numbers


def test_runs_of_one_machine_or_name_share_a_host():
    hosts = [RunHost("a", 1), RunHost("b", 2), RunHost("container", 1), RunHost("a", 9), RunHost("c", 0)]
    assert host_numbers([*hosts, RunHost("d", 0)]) == [1, 2, 1, 1, 3, 4]
