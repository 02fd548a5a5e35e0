"""What observing costs: the answers and tables are in golden/report/observer_costs.txt."""

from dataclasses import replace

import pytest

from fakes.goldens import compare_cases, terminal
from uncork.model.results.observer_cost import (
    CatalogueCost,
    IdleCost,
    ObserverCost,
    ObserverCosts,
    Pushes,
    Ratio,
    Switched,
    processor_verdict,
)
from uncork.report.experiment.observer_cost import compose_cost_answer, render_costs

NEAR, FAR = Ratio(0.998, 0.995, 1.001, 12), Ratio(0.9, 0.85, 0.95, 12)


def cost(name, verdict, ratio=NEAR, **changes):
    one = ObserverCost(name, name, "select-only", "all", ratio, ratio, verdict, ratio, None, ratio, 0.004)
    return replace(one, **changes)


FOUND = ObserverCosts(
    run="r",
    answer="",
    practical=0.01,
    confidence=0.95,
    noise="the baseline against itself stays within ±1 %",
    costs=(
        cost("system", "costs less"),
        cost("sessions", "costs less"),
        cost("log_statements", "costs more", FAR, observer_share=None),
        cost("perf", "not enough evidence", Ratio(0.99, None, None, 3)),
    ),
    idle={"system": IdleCost(8, 3.5e6, 4e5, -1e5, 4e5), "sessions": IdleCost(8, 6e6, 7e5, None, None)},
    skipped={"auto_explain": "the server refuses it: permission denied"},
)


SWITCHED = Switched(
    quadruples=400,
    slice_ns=100_200_000,
    plain=Ratio(0.991, 0.97, 1.012, 100),
    adjusted=Ratio(0.9968, 0.9931, 1.0005, 100),
    sure=Ratio(0.9968, 0.992, 1.0016, 100),
    processor=Ratio(1.004, 1.001, 1.007, 100),
    processor_sure=Ratio(1.004, 1.0002, 1.0078, 100),
    others=0.314,
    stolen=0.01,
    work=0.5,
    bound=Ratio(1.001, 1.0001, 1.002, 100),
    apart=False,
)


READING = CatalogueCost(5, 12, 446e6, 17e6, 64e6, 4_100_000, 960, 60_000_000_000)


def agent(pushes):
    """Return the cost of an agent, whose own processor time is the service's."""
    alone = cost("agent", "not enough evidence", service_cpu=Ratio(1.072, 1.01, 1.16, 8), observer_share=None)
    idle = {"agent": IdleCost(12, 0.0, None, 7.5e6, 1.3e6)}
    return replace(FOUND, costs=(alone,), idle=idle, pushes=pushes)


def with_verdict(name, verdict, ratio):
    unsure = cost(name, "not enough evidence", processor=ratio)
    return replace(unsure, processor_verdict=verdict)


def switched(*observers, **changes):
    """Return costs of observers that were switched on and off: each a name and its verdict."""
    how = replace(SWITCHED, **changes)
    return replace(FOUND, costs=tuple(cost(name, verdict, switched=how) for name, verdict in observers))


UNSURE, LESS = "not enough evidence", "costs less"
NONE = dict.fromkeys(("plain", "adjusted", "sure", "processor"))
WIDE = {"sure": Ratio(0.9968, 0.9802, 1.01, 100)}
CASES = {
    "several observers": FOUND,
    "nothing measured": replace(FOUND, costs=()),
    "two workloads": replace(
        FOUND, costs=(FOUND.costs[0], cost("system", "costs more", FAR, workload="tpcb-like"))
    ),
    "an agent": agent(Pushes(6, 11_300)),
    "an agent that pushed nothing": agent(Pushes(0, 0)),
    "processor time decides": replace(
        FOUND,
        costs=(
            with_verdict("system", LESS, Ratio(1.004, 1.001, 1.008, 30)),
            with_verdict("perf", "costs more", Ratio(1.03, 1.02, 1.04, 30)),
            replace(FOUND.costs[0], processor_verdict=LESS),
        ),
    ),
    "switched": replace(FOUND, costs=(*switched(("system", LESS)).costs, FOUND.costs[2])),
    "switched, wide and not decided": switched(("system", UNSURE), **WIDE),
    "switched, wide and decided": switched(("system", LESS), **WIDE),
    "too few quadruples": switched(("system", UNSURE), quadruples=9, **NONE),
    "counted and adjusted throughput differ": switched(("sessions", UNSURE), apart=True),
    "processor time bounds what throughput does not": switched(
        ("system", UNSURE), ("sessions", "costs more")
    ),
    "processor time bounds nothing": switched(("system", UNSURE), bound=Ratio(1.005, 0.995, 1.015, 100)),
    "a reading of the catalogue": replace(FOUND, costs=FOUND.costs[:1], catalogue=READING),
    "a reading of a server elsewhere": replace(FOUND, catalogue=replace(READING, server_ns=None, lock_ns=0)),
}


def test_answers_and_tables():
    cases = [
        (name, compose_cost_answer(found), terminal(render_costs, 80)(found)) for name, found in CASES.items()
    ]
    assert all(len(line) <= 80 for _, answer, table in cases for line in table.splitlines())
    compare_cases("report/observer_costs", cases)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.99, 1.009, "costs less"),
        (1.011, 1.03, "costs more"),
        (1.001, 1.03, "costs something"),
        (0.99, 1.02, "not enough evidence"),
        (None, None, "not enough evidence"),
    ],
)
def test_processor_time_costs_where_it_grows(low, high, verdict):
    assert processor_verdict(Ratio(1.0, low, high, 9), 0.01, enough=True) == verdict
    assert processor_verdict(Ratio(1.0, low, high, 9), 0.01, enough=False) == "not enough evidence"
    assert processor_verdict(None, 0.01, enough=True) == "not enough evidence"
