"""How large a load from nodes may be, what is said before it starts, and which nodes are refused."""

from dataclasses import replace

import pytest

from uncork.cluster.loads import LoadSize, check_cap, refusals, statement
from uncork.cluster.ports import NodeFacts
from uncork.errors import UsageError
from uncork.model.load import ClusterRequest

SIZE = LoadSize("request", "http://shop.example", 4_000, 10_000.0, 60 * 10**9, loopback=False)
FAR = ClusterRequest(4, "ray://head:10001")
OWN = NodeFacts("here", 1, "0.1.0", "0.1.0 release", 20_000, 28_232)


def nodes(**changes):
    facts = {number: replace(OWN, host=f"host-{number}", machine=number) for number in range(1, 5)}
    facts[3] = replace(facts[3], **changes)
    return facts


def test_one_sentence_says_what_will_be_sent():
    assert statement(SIZE, FAR) == (
        "4 nodes of ray://head:10001 will send 10 000 requests a second over 4 000 connections in total for "
        "60.0 s, to http://shop.example"
    )
    closed = replace(SIZE, rate=None, duration_ns=None, loopback=True, target="http://127.0.0.1")
    assert statement(closed, FAR).endswith("to http://127.0.0.1 (each node's own machine)")
    assert statement(closed, ClusterRequest(1)).startswith(
        "1 node on this machine will send requests as fast"
    )


@pytest.mark.parametrize(("size", "nodes", "message"), [
    ({"rate": 100_001.0}, 4, "the load has 100 001 requests a second"),
    ({"connections": 20_001}, 4, "the load has 20 001 connections"),
    ({}, 101, "the load has 101 nodes"),
])  # fmt: skip
def test_a_cluster_sends_no_more_than_its_cap_unless_told_so(size, nodes, message):
    size, request = replace(SIZE, **size), replace(FAR, nodes=nodes)
    with pytest.raises(UsageError, match=f"{message}.*--uncapped"):
        check_cap(size, request)
    check_cap(size, replace(request, uncapped=True))
    check_cap(size, replace(request, place="local"))


def test_nodes_that_can_send_their_parts_are_accepted():
    assert list(refusals(nodes(authenticated=True), OWN, SIZE, FAR)) == []


@pytest.mark.parametrize(("changes", "message"), [
    ({"authenticated": False}, "requires no token.*RAY_AUTH_MODE=token"),
    ({"version": "0.2.0"}, r"node 3 \(host-3\) has uncork 0.2.0.*install the same build"),
    ({"core": "0.1.0 dev"}, "core 0.1.0 dev"),
    ({"open_files": 1_024}, "may open 1 024 files, but its part needs 1 064: raise its limit"),
    ({"ports": 900}, "has 900 ports.*need 1 000: use at least 5 machines"),
    ({"machine": 1, "ports": 1_900}, "has 1 900 ports.*need 2 000: use at least 3 machines"),
])  # fmt: skip
def test_a_node_that_cannot_send_its_part_is_refused_with_what_to_do(changes, message):
    found = list(refusals(nodes(**changes), OWN, SIZE, FAR))
    assert len(found) == 1
    with pytest.raises(UsageError, match=message):
        raise UsageError(found[0])


def test_over_a_socket_no_ports_are_needed():
    size = replace(SIZE, over_tcp=False)
    assert list(refusals(nodes(ports=10), OWN, size, FAR)) == []
