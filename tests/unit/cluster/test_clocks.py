"""What probes say about a node's clock, and how certain that is."""

from hypothesis import given
from hypothesis import strategies as st

from uncork.cluster.conductor import NodeClock, Probe, clock_of

MS = 1_000_000


def test_the_probe_with_the_least_round_trip_decides():
    probes = [Probe(0, 300 * MS, 40 * MS), Probe(100 * MS, 350 * MS, 102 * MS)]
    clock = clock_of(probes)
    assert clock == NodeClock(249 * MS, MS + 1)
    assert clock.of_node(1_000 * MS) == 1_249 * MS


@given(
    st.integers(-(10**12), 10**12),
    st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**8)), min_size=1, max_size=16),
)
def test_the_bound_holds_however_unequal_the_ways_are(offset_ns, ways):
    probes = [
        Probe(sent, sent + there + offset_ns, sent + there + back)
        for sent, (there, back) in zip(range(0, 10**12, 10**9), ways, strict=False)
    ]
    clock = clock_of(probes)
    assert abs(clock.offset_ns - offset_ns) <= clock.bound_ns
