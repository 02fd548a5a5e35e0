"""The words and the table of what observing costs."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

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


def shown(found):
    text = io.StringIO()
    render_costs(found, Console(file=text, width=80))
    return text.getvalue()


def test_the_answer_names_each_observer_once_by_what_is_known():
    assert compose_cost_answer(FOUND) == (
        "system and sessions cost less than 1 % of throughput. log_statements costs more than 1 %. "
        "perf has an unknown cost, which may be above or below 1 %."
    )
    assert compose_cost_answer(replace(FOUND, costs=())) == "Nothing was measured."


def test_with_several_workloads_the_answer_says_where():
    costs = (FOUND.costs[0], cost("system", "costs more", FAR, workload="tpcb-like"))
    answer = compose_cost_answer(replace(FOUND, costs=costs))
    assert "system on select-only costs less" in answer
    assert "system on tpcb-like costs more" in answer


def test_the_tables_show_intervals_own_time_and_what_was_skipped():
    text = shown(FOUND)
    assert "Under load: select-only; change" in text
    assert "-0.5 to +0.1" in text
    assert "-15 to -5.0" in text
    assert "0.40 %" in text
    assert "3.50 ± 0.40 ms (0.35 %)" in text
    assert "unavailable" in text
    assert "skipped: auto_explain: the server refuses it: permission denied" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_of_an_agent_the_services_figures_are_told_and_what_it_pushed():
    agent = cost("agent", "not enough evidence", service_cpu=Ratio(1.072, 1.01, 1.16, 8), observer_share=None)
    found = replace(
        FOUND,
        costs=(agent,),
        idle={"agent": IdleCost(12, 0.0, None, 7.5e6, 1.3e6)},
        pushes=Pushes(6, 11_300),
    )
    text = shown(found)
    assert "+7.2 %" in text and "+1.0 to +16" in text
    assert "CPU/op is the service's" in text and "own CPU that" not in text
    assert "for the service, the increase over no observer" in text
    assert "7.50 ± 1.30 ms (0.75 %)" in text and "0.00" not in text
    assert "The agent pushed 6 times during the measurement, 11.3 kB in total." in text
    assert "its cost is partial" in shown(replace(found, pushes=Pushes(0, 0)))


def test_processor_time_tells_where_throughput_does_not():
    system = cost("system", "not enough evidence", processor=Ratio(1.004, 1.001, 1.008, 30))
    system = replace(system, processor_verdict="costs less")
    perf = cost("perf", "not enough evidence", processor=Ratio(1.03, 1.02, 1.04, 30))
    perf = replace(perf, processor_verdict="costs more")
    found = replace(FOUND, costs=(system, perf, replace(FOUND.costs[0], processor_verdict="costs less")))
    assert compose_cost_answer(found) == (
        "system costs less than 1 % of throughput. system and perf have an unknown cost, which may be above "
        "or below 1 %. system takes less than 1 % of processor time. perf takes more than 1 % of processor "
        "time."
    )
    text = " ".join(shown(found).split())
    assert "Under 1 % of processor time per operation, including the observer's own? Wider" in text
    assert "system +0.1 to +0.8 % (yes); perf +2.0 to +4.0 % (no)" in text


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


def test_what_switching_told_is_shown_with_what_was_counted():
    found = replace(FOUND, costs=(cost("system", "costs less", switched=SWITCHED), FOUND.costs[2]))
    text = shown(found)
    words = " ".join(text.split())
    assert "Switched on and off many times a second within one load; change from off to on" in words
    assert "-0.32 %" in text and "-0.69 to +0.05" in text
    assert "-0.90 %" in text and "-3.00 to +1.20" in text
    assert "+0.40 %" in text and "400" in text
    assert "which took 0.31 of a processor (the host 0.01)" in words
    assert "Load, server and observer had 0.50 processors" in words
    assert "under 1 %? At most: system +0.01 to +0.20 % (yes)" in words
    assert "Verdicts on switched observers use wider intervals: system -0.80 to +0.16 %." in words
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "Switched" not in shown(FOUND)
    assert "times the budget" not in words
    wide = replace(SWITCHED, sure=Ratio(0.9968, 0.9802, 1.01, 100))
    for verdict, told in (("not enough evidence", True), ("costs less", False)):
        words = " ".join(shown(replace(found, costs=(cost("system", verdict, switched=wide),))).split())
        assert (
            "To decide 1 %, use about 9 times the budget (--budget), or less if other programs" in words
        ) == told


def test_why_switching_gives_no_verdict_is_told():
    few = replace(SWITCHED, quadruples=9, plain=None, adjusted=None, sure=None, processor=None)
    apart = replace(SWITCHED, apart=True)
    found = replace(
        FOUND,
        costs=(
            cost("system", "not enough evidence", switched=few),
            cost("sessions", "not enough evidence", switched=apart),
        ),
    )
    words = " ".join(shown(found).split())
    assert "system: too few quadruples for an estimate. Measure longer with --budget." in words
    assert "sessions: no verdict. Counted and adjusted throughput differ by more than chance" in words


def test_what_processor_time_bounds_is_said_where_throughput_tells_nothing():
    found = replace(
        FOUND,
        costs=(
            cost("system", "not enough evidence", switched=SWITCHED),
            cost("sessions", "costs more", switched=SWITCHED),
        ),
    )
    assert compose_cost_answer(found).endswith(
        ". Judged by processor time, system and sessions cost less than 1 % of throughput if the load has "
        "all processors."
    )
    less = replace(found, costs=(cost("system", "costs less", switched=SWITCHED),))
    assert compose_cost_answer(less) == "system costs less than 1 % of throughput."
    wide = replace(SWITCHED, bound=Ratio(1.005, 0.995, 1.015, 100))
    unknown = replace(found, costs=(cost("system", "not enough evidence", switched=wide),))
    assert "by processor time" not in compose_cost_answer(unknown)


READING = CatalogueCost(5, 12, 446e6, 17e6, 64e6, 4_100_000, 960, 60_000_000_000)


def test_a_reading_of_the_catalogue_is_a_share_of_a_processor():
    found = replace(FOUND, costs=FOUND.costs[:1], catalogue=READING)
    assert compose_cost_answer(found) == (
        "system costs less than 1 % of throughput. "
        "Reading the catalogue once takes 0.14 % of a processor over a watch of 60 s."
    )
    text = " ".join(shown(found).split())
    assert "5 12 446 ms 17 ms 64 ms 4.1 ms" in text
    assert "uncork looked for its own locks every 2.3 ms" in text


def test_of_a_server_elsewhere_only_uncorks_share_is_known():
    found = replace(FOUND, catalogue=replace(READING, server_ns=None, lock_ns=0))
    assert "takes 0.028 % of a processor in uncork over a watch of 60 s." in compose_cost_answer(found)
    text = " ".join(shown(found).split())
    assert "17 ms unavailable none seen" in text
