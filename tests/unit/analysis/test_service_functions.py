"""Functions of a service by request, from stacks recorded while only that request was sent."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from uncork.analysis.service.result import functions_by_request
from uncork.model.results.stacks import RouteFrames
from uncork.report.service.document import routes_table
from uncork.report.stacks.answer import frame_text, sampled_share
from uncork.report.stacks.document import hottest_frame

ROOT = "process 7:app;<module> (app.py:9);"


def stacks(*rows, measure="samples", unit="samples"):
    names = ("route", "stack", "value")
    columns = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return pa.table({"measure": [measure] * len(rows), "unit": [unit] * len(rows), **columns})


ORDERS = stacks(
    ("/orders", f"{ROOT}orders (app.py:3);fetch (driver.py:1)", 30),
    ("/orders", f"{ROOT}orders (app.py:4);fetch (driver.py:2)", 30),
    ("/orders", f"{ROOT}write (web.py:5)", 40),
    ("/seal", f"{ROOT}seal (app.py:7);digest (app.py:8)", 9),
    ("/rare", f"{ROOT}write (web.py:5)", 4),
    (None, f"{ROOT}write (web.py:5)", 50),
)


def test_functions_are_added_up_over_their_lines():
    found = functions_by_request(ORDERS)["/orders"]
    assert (found.mostly.name, found.mostly.total) == ("fetch (driver.py)", pytest.approx(0.6))
    assert (found.hottest.name, found.hottest.own) == ("fetch (driver.py)", pytest.approx(0.6))
    assert found.samples == 100


def test_requests_with_hardly_a_sample_are_left_out():
    assert list(functions_by_request(ORDERS)) == ["/orders", "/seal"]


def test_no_function_has_half_of_the_time_if_only_frames_of_all_stacks_do():
    found = functions_by_request(stacks(*((("/", f"{ROOT}{name} (a.py:1)", 10)) for name in "abc")))["/"]
    assert found.mostly is None
    assert found.hottest.own == pytest.approx(1 / 3)


def test_time_counts_as_samples_and_sleep_does_not_count():
    rows = ("/", "main.main;main.seal", 300_000_000)
    counted = stacks(("/", "main.main;main.seal", 30), measure="samples", unit="count")
    timed, asleep = stacks(rows, measure="cpu", unit="nanoseconds"), stacks(rows, measure="off-cpu")
    found = functions_by_request(pa.concat_tables([counted, asleep, timed]))["/"]
    assert (found.mostly.name, found.samples) == ("main.seal", 30)
    assert functions_by_request(asleep) == {}
    assert functions_by_request(asleep.slice(0, 0)) == {}


def test_few_samples_are_counted_instead_of_a_percentage():
    assert sampled_share(0.5, 50) == sampled_share(0.5, None) == "50 %"
    assert sampled_share(1.0, 1) == "1 of 1 sample"
    frame = functions_by_request(ORDERS)["/seal"].hottest
    assert hottest_frame(RouteFrames("/seal", 0.1, (frame,), 9)).note == "9 of 9 samples"


def test_type_arguments_of_go_are_not_shown():
    found = functions_by_request(stacks(("/", "slices.Sort[go.shape.[]int,go.shape.int]", 9)))
    assert frame_text(found["/"].hottest) == "slices.Sort[...]"


def test_a_route_that_only_comments_name_has_a_row():
    frame = functions_by_request(ORDERS)["/orders"].hottest
    code = SimpleNamespace(measures=(SimpleNamespace(routes=(RouteFrames("/orders", 1.0, (frame,), 100),)),))
    busy = SimpleNamespace(name="/search", sessions=2.0, templates=(SimpleNamespace(name="select search"),))
    result = SimpleNamespace(code=code, database=SimpleNamespace(routes=(busy,)), log=None)
    assert [[cell.text for cell in row] for row in routes_table(result).rows] == [
        ["/orders", "100 %", "fetch (driver.py)", "", ""],
        ["/search", "0 %", "", "2", "select search"],
    ]
