"""How often a full pool is named, and a pool that is not full: services whose truth is known."""

import pytest
from simulation import at_most

from fakes.pools import Pooled, watch
from uncork.diagnosis.bottleneck import find_bottlenecks

ALPHA = 0.05
FULL = {
    "32 clients, 4 connections, 20 ms": Pooled(32, 4, [(0.02, 0.0)]),
    "8 clients, 4 connections": Pooled(8, 4, [(0.02, 0.0)]),
    "60 clients, 6 connections, 50 ms elsewhere": Pooled(60, 6, [(0.01, 0.0), (0.01, 0.0)], 0.05),
}
NOT_FULL = {
    "as many connections as clients": Pooled(8, 8, [(0.02, 0.0)]),
    "lent in turn, 1 s elsewhere": Pooled(100, 10, [(0.002, 0.0)], 1.0),
    "half used, 180 ms elsewhere": Pooled(40, 8, [(0.02, 0.0)], 0.18),
    "70 % used, 180 ms elsewhere": Pooled(35, 5, [(0.02, 0.0)], 0.18),
    "90 % used, 180 ms elsewhere": Pooled(45, 5, [(0.02, 0.0)], 0.18),
    "held for a computation": Pooled(20, 20, [(0.002, 0.001)]),
}


def named(service, runs, generator):
    return sum(bool(find_bottlenecks(watch(service, 4.0, generator).seen)) for _ in range(runs)) / runs


@pytest.mark.parametrize("name", FULL)
def test_a_full_pool_is_named(name, runs, generator, figure):
    many = max(20, runs // 40)
    share = named(FULL[name], many, generator)
    figure(f"a full pool is named: {name}", share)
    assert 1 - share <= at_most(ALPHA, many)


@pytest.mark.parametrize("name", NOT_FULL)
def test_a_pool_that_is_not_full_is_not_named(name, runs, generator, figure):
    many = max(20, runs // 40)
    share = named(NOT_FULL[name], many, generator)
    figure(f"a pool that is not full is named: {name}", share)
    assert share <= at_most(ALPHA, many)
