"""The time tree is additive, whatever was seen; samples stand for all of the time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.profile.activity import time_tree, weights

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "weight": st.floats(1, 1e6),
            "backend": st.sampled_from(["client backend", "parallel worker", "checkpointer"]),
            "state": st.sampled_from(["active", "idle in transaction", None]),
            "wait_class": st.sampled_from([None, "Lock", "IO"]),
            "wait_event": st.sampled_from(["a", "b", "c"]),
            "template": st.one_of(st.none(), st.integers(0, 60)),
            "application": st.sampled_from(["", "shop", "batch"]),
        }
    ),
    max_size=80,
)


def check(node):
    if node.children:
        assert sum(child.sessions for child in node.children) == pytest.approx(node.sessions)
        assert sum(child.share for child in node.children) == pytest.approx(node.share)
    for child in node.children:
        check(child)


@given(ROWS, st.booleans(), st.floats(1, 1e9))
def test_every_part_is_the_sum_of_its_parts(rows, by_process, whole):
    tree = time_tree(rows, whole, by_process=by_process)
    assert tree.sessions == pytest.approx(sum(row["weight"] for row in rows) / whole)
    check(tree)


@given(st.lists(st.integers(0, 10**9), min_size=1, unique=True), st.integers(0, 10**9), st.integers(0, 10**9))
def test_samples_stand_for_all_of_the_time(times, begun, length):
    times = sorted(times)
    found = weights(times, begun, begun + length)
    assert all(one >= 0 for one in found)
    assert sum(found) == pytest.approx(max(begun + length, times[-1]) - min(begun, times[0]))
