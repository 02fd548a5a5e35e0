"""The scopes of an effect that several hosts measured in waves: the widest interval decides."""

import math

import pytest

from fakes.runners import experiment
from uncork.experiment.plan.order import cells
from uncork.experiment.run.ledger import Ledger
from uncork.model.trial import Arm, Trial


def ledger_of(gains):
    """Return a ledger with a round for each wave and host; `gains` has the log ratio of each."""
    spec = experiment()
    rounds = [(wave, host) for wave in range(len(gains)) for host in range(len(gains[0]))]
    numbers = dict(enumerate(rounds, 1))
    hosts = {number: host for number, (_, host) in numbers.items()}
    waves = {number: wave for number, (wave, _) in numbers.items()}
    found = Ledger(spec, "round", hosts, waves)
    (workload,) = spec.workloads
    place = (cells(spec)[0], workload)
    for number, (wave, host) in numbers.items():
        for block in (1, 2):
            for position, arm in enumerate((Arm("base"), Arm("new"), Arm("base", again=True)), 1):
                slower = 1e6 * (1 + 0.001 * position)
                value = slower * math.exp(gains[wave][host]) if arm.variant == "new" else slower
                found.add_value(Trial(number, block, position, *place, arm), value)
    return found, (*place, "new")


def test_the_widest_scope_decides():
    by_host = [[0.05 * host for host in range(5)] for _ in range(5)]
    by_wave = [[0.05 * wave] * 5 for wave in range(5)]
    for gains, wide, narrow in (
        (by_host, "like_hosts", "other_times"),
        (by_wave, "other_times", "like_hosts"),
    ):
        ledger, compared = ledger_of(gains)
        scopes = {
            name: getattr(ledger, name)(*compared) for name in ("these_hosts", "like_hosts", "other_times")
        }
        assert ledger.effect(*compared) == max(scopes.values(), key=lambda one: one.half_width)
        assert scopes[narrow].half_width < 1e-9
        assert scopes[wide].half_width > 0.2
        for one in scopes.values():
            assert one.ratio == pytest.approx(math.exp(0.1), rel=0.01)


@pytest.mark.parametrize(("waves", "hosts"), [(4, 5), (5, 4)])
def test_fewer_than_five_hosts_or_waves_say_nothing_about_others(waves, hosts):
    ledger, compared = ledger_of([[0.01 * (wave + host) for host in range(hosts)] for wave in range(waves)])
    assert (ledger.like_hosts(*compared) is None) == (hosts < 5)
    assert (ledger.other_times(*compared) is None) == (waves < 5)
