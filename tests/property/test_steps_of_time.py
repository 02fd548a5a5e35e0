"""The steps of sessions and of transactions add up to the whole, whatever the sources counted."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.database_results import database_result

from uncork.analysis.database.steps import steps_of
from uncork.analysis.load.result import WatchedLoad, load_steps, step_gaps
from uncork.analysis.service.result import with_branches
from uncork.model.results.database import CountedTime, TimeNode
from uncork.model.results.service import TimePlace

AMOUNT = st.floats(0, 1e6)
COUNTED = st.builds(
    CountedTime, begun_us=st.just(0), ended_us=st.integers(1, 10**7), calls=st.integers(0, 1000),
    planning_ns=st.one_of(st.none(), st.floats(0, 1e12)), execution_ns=st.floats(0, 1e12),
)  # fmt: skip
WHOLE = database_result()


def tree_of(parts):
    """Return a tree of sessions: (class, event, sessions) each."""
    classes = [
        TimeNode("class", name, many, 0.0, None, (TimeNode("event", event, many, 0.0, None, ()),))
        for name, event, many in parts
    ]
    return TimeNode("all", "", sum(one.sessions for one in classes), 1.0, None, tuple(classes))


PARTS = st.lists(
    st.tuples(
        st.sampled_from(["CPU", "Lock", "IO", "idle in transaction"]),
        st.sampled_from(["", "tuple", "WALSync", "ClientRead"]),
        st.floats(0.01, 1e3),
    ),
    min_size=1,
    max_size=6,
)


def check(steps, whole, amount):
    assert sum(amount(one) for one in steps) == pytest.approx(whole)
    assert sum(one.share for one in steps) == pytest.approx(1)
    assert all(amount(one) >= 0 for one in steps)
    assert steps[-1].name == "unknown"
    assert len({one.name for one in steps}) == len(steps)


@given(PARTS, COUNTED)
def test_steps_of_sessions_add_up_to_the_tree(parts, counted):
    tree = tree_of(parts)
    check(steps_of(tree, counted), tree.sessions, lambda one: one.sessions)


COUNTS = st.integers(0, 2000)
POOL = st.fixed_dictionaries({"queries": COUNTS, "wait_us": AMOUNT})
DURATIONS = st.fixed_dictionaries({"count": COUNTS, "ns": st.integers(0, 10**9)})
LOG = st.fixed_dictionaries({kind: DURATIONS for kind in ("parse", "bind", "execute", "statement", "untold")})
PATH = st.fixed_dictionaries(
    {}, optional={"pooled": st.booleans(), "round_trip_ns": st.one_of(st.none(), AMOUNT)}
)


@given(
    PARTS,
    COUNTED,
    st.one_of(st.none(), AMOUNT),
    AMOUNT,
    AMOUNT,
    st.one_of(st.none(), POOL),
    st.one_of(st.none(), LOG),
    PATH,
)
def test_steps_of_a_transaction_add_up_to_its_mean_time(
    parts, counted, trip_ns, operations_ns, part_ns, pool, log, path
):
    load = {
        "ended_us": counted.ended_us, "elapsed_ns": counted.ended_us * 1000, "operations": 7,
        "operations_ns": round(operations_ns) + 1, "statements": counted.calls + 1,
        "statements_ns": round(part_ns), "round_trips": counted.calls,
    }  # fmt: skip
    seen = replace(
        WHOLE, counted=counted, tree=tree_of(parts), watch=replace(WHOLE.watch, round_trip_ns=trip_ns)
    )
    watched = WatchedLoad(load, pool, log, path)
    found = load_steps(watched, seen)
    check(found, load["operations_ns"] / 7, lambda one: one.ns)
    gaps = {one.name for one in step_gaps(watched, "extended")}
    assert ("parse" in {one.name for one in found}) != ("parse" in gaps)
    assert ("pool" in {one.name for one in found}) == (pool is not None and "pool" not in gaps)
    executing = sum(one.ns for one in found if one.name in ("locks", "storage", "execute")) * 7
    assert executing <= counted.execution_ns * (1 + 1e-9)
    others = replace(seen, counted=replace(counted, calls=2 * load["statements"]))
    assert load_steps(watched, others) == ()


@given(AMOUNT, AMOUNT, AMOUNT, st.lists(st.floats(0.01, 1e3), min_size=4, max_size=4))
def test_places_of_requests_keep_their_sum_whatever_is_taken_out_of_them(parsing, planning, pool, many):
    kinds = ("database cpu", "database queue", "service wait", "locks")
    whole = sum(many)
    places = tuple(TimePlace(kind, one, one / whole, one * 10) for kind, one in zip(kinds, many, strict=True))
    found = with_branches(places, parsing, planning, pool)
    assert sum(one.requests for one in found) == pytest.approx(whole)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert sum(one.ns for one in found) == pytest.approx(whole * 10)
    assert all(one.requests > 0 for one in found)
