"""Which sampler records the functions of a service."""

import pytest

from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.model.results.service import WorkerFacts
from uncork.model.tables.load import LoadTimes
from uncork.workbench.profile.service_slices import plan_slices
from uncork.workbench.profile.services import choose_sampler, code_times, costliest_requests


def worker(pid, runtime, cpu_ns=10**8):
    return WorkerFacts(pid, 1, "shop", runtime, cpu_ns, 0, 0, 1, 0.1, None, 10**9)


@pytest.mark.parametrize(("workers", "py_spy", "pprof", "mapped", "tool", "missing"), [
    ([worker(5, "python")], "/bin/py-spy", "", False, "py-spy", ""),
    ([worker(5, "python")], None, "", False, "perf", "functions of Python"),
    ([worker(5, "python")], None, "", True, "perf", ""),
    ([worker(5, "go")], None, "http://here/debug/pprof/profile", False, "pprof", ""),
    ([worker(5, "go")], None, "", False, "perf", ""),
    ([worker(5, "node")], None, "", False, "perf", "--perf-basic-prof"),
    ([worker(5, "node")], None, "", True, "perf", ""),
    ([worker(5, "native")], "/bin/py-spy", "", False, "perf", ""),
    # A shell starts the service: what works decides, and the tree is recorded from its root.
    ([worker(5, "native", 0), worker(6, "python")], "/bin/py-spy", "", False, "py-spy", ""),
])  # fmt: skip
def test_the_sampler_fits_the_runtime(workers, py_spy, pprof, mapped, tool, missing):
    found = choose_sampler(workers, py_spy=py_spy, pprof=pprof, mapped=lambda _: mapped)
    assert found.tool == tool
    assert found.pid == 5
    assert missing in found.missing
    assert bool(found.missing) == bool(missing)


@pytest.mark.parametrize(
    ("kinds", "seconds", "rounds"), [(1, 7.0, 3), (3, 7.0, 3), (9, 7.0, 2), (60, 7.0, 1)]
)
def test_slices_use_the_time_that_is_there(kinds, seconds, rounds):
    plan = plan_slices(kinds, seconds)
    assert plan.rounds == rounds
    assert plan.slice_s >= 0.3
    assert plan.rounds * (kinds + 1) * plan.slice_s <= max(seconds, 0.3 * (kinds + 1)) + 1e-9


def test_rounds_are_left_out_if_answers_take_longer_than_slices():
    plan = plan_slices(1, 3.6)  # three rounds of two slices of 0.6 s
    assert (plan.rounds, plan.slice_s) == (3, pytest.approx(0.6))
    assert plan.allows_another(1, 1.3, 1)
    assert plan.allows_another(2, 2.6, 1)
    assert not plan.allows_another(1, 3.5, 1)
    assert not plan.allows_another(2, 4.2, 1)


@pytest.mark.parametrize(
    ("seconds", "kinds", "expected"), [(20, 1, (5.0, 0.0)), (20, 5, (3.0, 3.0)), (600, 5, (15.0, 15.0))]
)
def test_functions_of_several_requests_are_recorded_together_and_apart(seconds, kinds, expected):
    found = code_times(seconds, kinds)
    assert (found.together_s, found.apart_s) == expected


def test_the_requests_with_most_time_are_recorded_first():
    requests = [Request(name, "GET", name) for name in ("/a", "/b", "/c")]
    spec = HttpSpec(HttpServer("127.0.0.1", 80), tuple(requests))
    times = [
        LoadTimes(kind, name, name, None, 1, 0, 0, spent, 0.0, *[None] * 9)
        for kind, name, spent in (("script", "/a", 5), ("script", "/b", 9), ("operation", "", 99))
    ]
    found = costliest_requests(spec, times)
    assert [one.name for one in found] == ["/b", "/a", "/c"]
