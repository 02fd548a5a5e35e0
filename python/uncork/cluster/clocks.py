"""How far the wall clocks of nodes are from the coordinator's, and how certain that is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PROBES: Final = 16
"""Probes of each node, before and after a load."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question for the time: when it was sent and answered by the coordinator's clock, and the answer."""

    sent_ns: int
    node_ns: int
    received_ns: int

    @property
    def round_trip_ns(self) -> int:
        """The time between question and answer."""
        return self.received_ns - self.sent_ns


@dataclass(frozen=True, slots=True)
class NodeClock:
    """A node's clock is ahead of the coordinator's by `offset_ns`, within ±`bound_ns`."""

    offset_ns: int
    bound_ns: int

    def of_node(self, coordinator_ns: int) -> int:
        """Return what the node's clock shows at a time of the coordinator's."""
        return coordinator_ns + self.offset_ns


def clock_of(probes: Sequence[Probe]) -> NodeClock:
    """Return a node's clock from the probe with the least round trip, as NTP does.

    The node read its clock at some moment between question and answer. The middle is off by half of the round
    trip at most, however unequal both ways were.
    """
    best = min(probes, key=lambda probe: probe.round_trip_ns)
    middle = (best.sent_ns + best.received_ns) // 2
    return NodeClock(best.node_ns - middle, best.round_trip_ns // 2 + 1)
