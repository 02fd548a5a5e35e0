"""A service with a pool of connections, without a server: what samples of its sessions would see."""

import heapq
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from uncork.model.bottleneck import Component, LoadUse, MachineUse, Seen
from uncork.workbench.load.monitor import Sample, SessionsSeen, database_use

PERIOD_S = 0.05
WARM_S = 1.0


@dataclass(frozen=True)
class Pooled:
    """A service: each request is `outside_s` elsewhere, then has one of `size` connections for statements.

    A statement is (busy seconds, seconds after it in which the connection is held and idle). Connections are
    lent in turn: the one idle for longest first.
    """

    clients: int
    size: int
    statements: Sequence[tuple[float, float]]
    outside_s: float = 0.0


@dataclass
class Watched:
    """What was seen of it, and the truth: which part of the latency is waiting for a connection."""

    seen: Seen
    waited: float


@dataclass
class _Connection:
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)


def watch(service: Pooled, seconds: float, generator: np.random.Generator) -> Watched:
    """Load it in a closed loop for so long, while its sessions are sampled 20 times a second."""
    until = WARM_S + seconds
    connections = [_Connection() for _ in range(service.size)]
    free, waiting = deque(range(service.size)), deque()
    events: list[tuple[float, int, str, tuple[float, ...]]] = []
    count = 0
    done: list[tuple[float, float, float]] = []

    def push(at: float, what: str, *facts: float) -> None:
        nonlocal count
        count += 1
        heapq.heappush(events, (at, count, what, facts))

    def spread(mean: float) -> float:
        return float(generator.gamma(4.0, mean / 4.0)) if mean else 0.0

    def hold(now: float, begun: float, asked: float) -> None:
        number, at = free.popleft(), now
        for busy, gap in service.statements:
            connections[number].starts.append(at)
            at += spread(busy)
            connections[number].ends.append(at)
            at += spread(gap)
        push(at, "release", begun, now - asked, number)

    for _ in range(service.clients):
        push(spread(service.outside_s), "ask", 0.0)
    while events:
        now, _, what, facts = heapq.heappop(events)
        if now > until:
            break
        if what == "ask":
            (begun,) = facts
            if free:
                hold(now, begun, now)
            else:
                waiting.append((begun, now))
            continue
        begun, waited, number = facts
        if now > WARM_S:
            done.append((now, now - begun, waited))
        free.append(int(number))
        if waiting:
            hold(now, *waiting.popleft())
        push(now + spread(service.outside_s), "ask", now)
    return _watched(connections, done, seconds)


def _watched(
    connections: list[_Connection], done: list[tuple[float, float, float]], seconds: float
) -> Watched:
    samples = []
    for tick in range(round(seconds / PERIOD_S)):
        at, busy, idle = WARM_S + tick * PERIOD_S, 0, 0
        for one in connections:
            place = bisect_right(one.starts, at) - 1
            if place < 0:
                continue
            if at < one.ends[place]:
                busy += 1
            else:
                idle += 1
        asleep = ("Timeout", "PgSleep")
        samples.append(Sample(round(at * 1e6), Counter({asleep: busy}), Counter(), idle))
    sessions = SessionsSeen(tuple(samples), round((WARM_S + seconds) * 1e6), len(connections), 100, 3)
    throughput, latency = len(done) / seconds, float(np.mean([one[1] for one in done]))
    use = database_use(sessions, round(seconds * 1e9))
    times = [one[1] for one in done]
    alike = np.std(times) < 0.25 * latency and min(times) < 0.25 * latency
    load = LoadUse(throughput * latency, latency * 1e9, alone_ns=min(times) * 1e9 if alike else None)
    seen = Seen(load, MachineUse(4, busy=0.2), sessions=use, service=Component(0.2, 0.1), indirect=True)
    return Watched(seen, float(np.mean([one[2] for one in done])) / latency)
