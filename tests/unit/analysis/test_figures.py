"""Published figures, with those measured here beside them."""

from dataclasses import replace

import pytest

from fakes.results import small_result
from uncork.analysis.experiment.published import Measured, beside_ours
from uncork.model.results.experiment import Cost, PublishedFigure, RequestCounts
from uncork.report.experiment.batches import figures_table
from uncork.report.experiment.view import View

CELL = (("rows", "10"),)
METRICS = {"simple": "throughput", "heavy": "success", "read": "latency_p50"}
VALUES = {
    ("rows=10", "simple", "one"): 40.0,
    ("rows=10", "simple", "two"): 400.0,
    ("rows=10", "heavy", "one"): 0.0,
    ("rows=10", "heavy", "two"): 0.5,
    ("rows=10", "read", "one"): 3e6,
}
NOTHING = dict.fromkeys(set(Cost.__dataclass_fields__) - {"cell", "workload", "variant", "operations"})
COSTS = [
    Cost(cell=CELL, workload="simple", variant="one", operations=9, **{**NOTHING, "received_bytes": 5e3})
]

REQUESTS = [
    RequestCounts(
        cell=CELL, workload="heavy", variant=name, started=300, succeeded=0, failed=300, timed_out=0, low=0.0,
        high=0.1, statuses={}, errors={}, throughput=rate, mean_ns=mean_ns, longest_ns=longest_ns,
    )
    for name, rate, mean_ns, longest_ns in (("one", 45.0, 2e8, None), ("two", 1200.0, 4e6, 9_000_000))
]  # fmt: skip


def figure(**more) -> PublishedFigure:
    entry = {"name": "it", "before": "1", "note": "", "cell": {"rows": "10"}, "workload": "simple", **more}
    found = beside_ours(entry, Measured(COSTS, (), VALUES, METRICS, REQUESTS))
    return found


def row(found: PublishedFigure) -> list[str]:
    """Return what a report says of a figure: published, its change, measured, its change."""
    (cells,) = figures_table(View(replace(small_result(), figures=(found,))), "per operation").rows
    return [cell.text for cell in cells[1:5]]


def test_before_and_after_of_a_metric():
    found = figure(cost="throughput", after="9", ratio=9.0, variants=["one", "two"])
    assert (found.measured, found.unit) == ((40.0, 400.0), "/s")
    assert row(found) == ["1 → 9", "×9", "throughput: 40/s → 400/s", "×10"]


def test_a_figure_alone():
    found = figure(cost="time", workload="read", variants=["one"])
    assert (found.measured, found.after) == ((3e6,), "")
    assert row(found) == ["1", "", "time: 3.00 ms", ""]
    assert row(figure(cost="received", variants=["one"]))[2] == "received: 5.00 kB"


def test_what_is_told_of_requests_whatever_they_are_compared_by():
    found = figure(cost="mean time", after="13 ms", workload="heavy", variants=["one", "two"])
    assert found.measured == (2e8, 4e6)
    assert row(found)[2:] == ["mean time: 200 ms → 4.00 ms", "÷50"]
    assert row(figure(cost="requests a second", workload="heavy", variants=["two"]))[2] == (
        "requests a second: 1 200/s"
    )
    assert figure(cost="longest time", workload="heavy", variants=["one", "two"]).measured is None


def test_whose_processor_time_it_is():
    times = {
        "server_user_ns": 2e6,
        "server_system_ns": 1e6,
        "service_user_ns": 0.5e6,
        "service_system_ns": 0.5e6,
    }
    costs = [Cost(cell=CELL, workload="simple", variant="one", operations=9, **{**NOTHING, **times})]
    entry = {
        "name": "it",
        "before": "",
        "note": "",
        "cell": dict(CELL),
        "workload": "simple",
        "variants": ["one"],
    }
    asked = [{**entry, "cost": cost} for cost in ("service CPU", "database's share of CPU")]
    mine, share = (beside_ours(entry, Measured(costs, (), VALUES, METRICS)) for entry in asked)
    assert (mine.measured, mine.unit) == ((1e6,), "ns")
    assert (share.measured, share.unit) == ((0.75,), "share")
    assert row(share) == ["", "", "database's share of CPU: 75 %", ""]


def test_none_succeeded_is_a_figure_too():
    found = figure(cost="success", after="2", workload="heavy", variants=["one", "two"])
    assert (found.measured, found.unit) == ((0.0, 0.5), "share")
    assert row(found)[2:] == ["success: 0 % → 50 %", ""]


@pytest.mark.parametrize(
    "asked",
    [
        {"cost": "time", "variants": ["one", "two"]},  # its metric is another
        {"cost": "throughput", "variants": ["one", "three"]},  # no such variant ran
        {"cost": "throughput", "variants": ["one"], "workload": "none"},
        {"cost": "received", "variants": ["one", "two"]},
    ],
)
def test_what_was_not_measured_is_told(asked):
    found = figure(**asked)
    assert found.measured is None
    assert row(found)[2:] == ["not measured", ""]


def test_a_figure_that_nothing_corresponds_to():
    assert row(figure())[2:] == ["no counterpart", ""]
