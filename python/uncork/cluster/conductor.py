"""Conduct the nodes of a load or an experiment: ask them in turns, notice who is lost, stop them if need be.

While nodes measure, they are asked twice a second, which renews the lease of each. No request, sample or
histogram waits for that: see `uncork.cluster.agent`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from uncork.cluster.agent import STALE_NS
from uncork.cluster.ports import News, NodeFacts, Nodes
from uncork.errors import NodeLost, RunError, UsageError
from uncork.load.parts import LEASE_NS

# ---- who takes part in a load: which nodes to ask next, and which do not answer in time ----


OVERDUE_S: Final = 8.0
"""A node that has not answered for so long is lost. Its lease is over by then."""
UNREACHABLE_S: Final = 0.75
"""A node that refuses every connection for so long is lost, long before its lease ends: the process of its
agent has ended."""


@dataclass(slots=True)
class _Entry:
    heard_s: float
    failing_s: float | None = None
    asked_s: float | None = None
    due_s: float = 0.0
    ended: bool = False


class Roll:
    """The nodes of a load, and what is known about each.

    A node is *open* until its part ends or the node is given up. At most one question to it is under way.
    Times are seconds of the coordinator's monotonic clock.
    """

    def __init__(self, numbers: Iterable[int], now_s: float) -> None:
        self._entries = {number: _Entry(now_s) for number in numbers}

    @property
    def open(self) -> list[int]:
        """The nodes that have not ended."""
        return [number for number, entry in self._entries.items() if not entry.ended]

    def due(self, now_s: float) -> list[int]:
        """Return the open nodes to ask now."""
        return [
            number
            for number in self.open
            if self._entries[number].asked_s is None and self._entries[number].due_s <= now_s
        ]

    def asked(self, number: int, now_s: float) -> None:
        """Note that a node was asked."""
        self._entries[number].asked_s = now_s

    def answered(self, number: int, now_s: float, next_s: float) -> None:
        """Note that a node answered; it is asked again after `next_s` seconds, counted from the question."""
        entry = self._entries[number]
        entry.heard_s, entry.failing_s = now_s, None
        entry.due_s = (now_s if entry.asked_s is None else entry.asked_s) + next_s
        entry.asked_s = None

    def failed(self, number: int, now_s: float, next_s: float) -> None:
        """Note that a node could not be reached this time; it is asked again after `next_s` seconds."""
        entry = self._entries[number]
        if entry.failing_s is None:  # since the question: Ray tries for up to two seconds
            entry.failing_s = now_s if entry.asked_s is None else entry.asked_s
        entry.asked_s, entry.due_s = None, now_s + next_s

    def end(self, number: int) -> None:
        """Note that the part of a node has ended, or that the node is given up: it is not asked again."""
        self._entries[number].ended = True

    def overdue(self, now_s: float) -> list[int]:
        """Return the open nodes that were silent for `OVERDUE_S`, or not reached for `UNREACHABLE_S`."""
        found = []
        for number in self.open:
            entry = self._entries[number]
            failing_s = 0.0 if entry.failing_s is None else now_s - entry.failing_s
            if failing_s > UNREACHABLE_S or now_s - entry.heard_s > OVERDUE_S:
                found.append(number)
        return found

    def resume(self, now_s: float) -> None:
        """Begin to ask, or continue after a while: all open nodes are due now, and none is overdue."""
        for number in self.open:
            self._entries[number].due_s = self._entries[number].heard_s = now_s


# ---- how far the wall clocks of nodes are from the coordinator's ----


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


QUIET_S: Final = 0.5
"""How often a node is asked while it measures. Several missed answers in a row do not end its lease."""
_PREPARING_S: Final = 0.2
_ENDING_S: Final = 0.25
_ANSWER_S: Final = 20.0
"""How long to wait for an answer outside of the load, when nothing is measured."""
_AGAIN_S: Final = 0.25
_LOOK_S: Final = 0.5
_LEAST_AHEAD_S: Final = 2.0
_CONNECT_S: Final = 0.002
"""Time that a part is given to open one connection before the start: ten times what a busy server takes."""

_WALL_NS, _MONOTONIC_NS = time.time_ns(), time.monotonic_ns()


def wall_ns() -> int:
    """Return the coordinator's time: its wall clock at its start, and from then on its monotonic clock."""
    return _WALL_NS + time.monotonic_ns() - _MONOTONIC_NS


@dataclass(frozen=True, slots=True)
class Lost:
    """A lost node: why, when this was noticed, and until when its part may have sent (coordinator's time).

    `until_ns` is None if the part's own counts are known: then only its process ended.
    """

    reason: str
    noticed_ns: int
    until_ns: int | None


@dataclass(slots=True)
class Conductor:
    """Asks nodes, passes messages to `notify`, each once, and calls `heard` with news."""

    nodes: Nodes
    notify: Callable[[str], None]
    heard: Callable[[int, News], None] = lambda _, __: None
    names: dict[int, str] = field(default_factory=dict)
    clocks: dict[int, NodeClock] = field(default_factory=dict)
    lost: dict[int, Lost] = field(default_factory=dict)
    _roll: Roll = field(init=False)
    _renewed_ns: dict[int, int] = field(default_factory=dict)
    _pending: dict[Future[Any], int] = field(default_factory=dict)
    _notes: set[str] = field(default_factory=set)
    _said: dict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._roll = Roll(self.numbers, time.monotonic())

    @property
    def numbers(self) -> list[int]:
        """All nodes."""
        return list(range(1, self.nodes.count + 1))

    @property
    def sending(self) -> list[int]:
        """The nodes whose parts have neither ended nor been lost."""
        return self._roll.open

    def name(self, number: int) -> str:
        """Return what messages call a node."""
        host = self.names.get(number, "")
        return f"node {number} ({host})" if host else f"node {number}"

    def meet(self) -> dict[int, NodeFacts]:
        """Ask all nodes about themselves. Raises RunError if a node does not answer."""
        facts = {number: NodeFacts(**found) for number, found in self.each("facts", lambda _: ()).items()}
        self.names = {number: fact.host for number, fact in facts.items()}
        return facts

    def each(self, method: str, of: Callable[[int], Sequence[Any]]) -> dict[int, Any]:
        """Call a method of all nodes, with arguments of each; return the answers. Raises RunError."""
        asked = {number: self.nodes.ask(number, method, *of(number)) for number in self.numbers}
        return {number: self._answer(number, future) for number, future in asked.items()}

    def end(self, patience_s: float) -> None:
        """Let all nodes end their parts, and remove what these stored."""
        wait([self.nodes.ask(number, "end") for number in self.numbers], timeout=patience_s)

    def probe_clocks(self) -> dict[int, NodeClock]:
        """Return the clocks of the nodes that answer."""
        found = {}
        for number in self.numbers:
            probes: list[Probe] = []
            with suppress(RunError):
                while number not in self.lost and len(probes) < PROBES:
                    sent_ns = wall_ns()
                    node_ns = self._answer(number, self.nodes.ask(number, "clock"))
                    probes.append(Probe(sent_ns, node_ns, wall_ns()))
                if probes:
                    found[number] = clock_of(probes)
        return found

    def _answer(self, number: int, future: Future[Any]) -> Any:
        try:
            return future.result(timeout=_ANSWER_S)
        except TimeoutError as error:
            raise RunError(f"{self.name(number)} does not answer for {_ANSWER_S:.0f} s") from error
        except (NodeLost, ConnectionError) as error:
            raise RunError(f"{self.name(number)} is lost: {error}") from error

    def prepare(self) -> None:
        """Wait until all parts are ready to start.

        Raises UsageError if a part cannot be prepared; the message is the part's. Raises RunError if a node
        is lost, or its part ends.
        """
        waiting = set(self.numbers)
        for number, news in self._turns(lambda: _PREPARING_S if waiting else None):
            if news is None:
                reason = self.lost[number].reason
                raise RunError(f"{self.name(number)} was lost before the load began: {reason}")
            for message in news.said:
                if "error" in message:
                    raise UsageError(f"{self.name(number)}: {message['error']}")
                if message.get("ready"):
                    waiting.discard(number)
            if news.status is not None:
                why = self._outcome(number) or self._last_words(number, news.status)
                raise RunError(f"{self.name(number)}: its part ended before the start: {why}")

    def start(self, connections: int, warm_up_ns: int) -> int:
        """Give all parts their start, by their own clocks; return it in our time. Raises RunError."""
        # An open loop warms up on connections of its own.
        opened = 2 * connections if warm_up_ns else connections
        ahead_s = _LEAST_AHEAD_S + opened * _CONNECT_S / self.nodes.count + warm_up_ns / 1e9
        start_ns = wall_ns() + round(ahead_s * 1e9)
        self.each("tell", lambda number: [f"start {self.clocks[number].of_node(start_ns)}"])
        return start_ns

    def watch(
        self, end_ns: int | None, lose: Callable[[int, Lost], None], follow: Callable[[], None]
    ) -> None:
        """Watch until all parts have ended or are lost.

        `lose` is called for each lost node, and `follow` after each report. From `end_ns` on, when the load
        should end, nodes are asked more often.
        """

        def pace() -> float:
            return _ENDING_S if end_ns is not None and wall_ns() > end_ns else QUIET_S

        for number, news in self._turns(pace):
            self._note_end(number, news, lose)
            follow()

    def watch_round(self, lose: Callable[[int, Lost], None]) -> set[int]:
        """Watch until each node that still measures has reported a round; return the nodes that reported one.

        `lose` is called for each node that is lost meanwhile, or whose program fails. Others have ended by
        themselves.
        """
        measured: set[int] = set()
        for number, news in self._turns(lambda: None if measured.issuperset(self.sending) else QUIET_S):
            if news is not None and any("round" in line for line in news.said):
                measured.add(number)
            if news is not None and news.status:
                words = self._outcome(number) or self._last_words(number, news.status)
                self.lost[number] = Lost(words, wall_ns(), None)
            self._note_end(number, news, lose)
        return measured - self.lost.keys()

    def _note_end(self, number: int, news: News | None, lose: Callable[[int, Lost], None]) -> None:
        if news is not None and news.status is not None:
            self._roll.end(number)
            if self._outcome(number) is None:  # its process was killed, but its files are there
                words = self._last_words(number, news.status)
                self.lost[number] = Lost(f"the process of its part ended: {words}", wall_ns(), None)
        if number in self.lost:
            lose(number, self.lost[number])

    def stop(self) -> None:
        """Ask all parts that still send to end, without waiting."""
        for number in self.sending:
            self.nodes.ask(number, "stop")
        self._roll.resume(time.monotonic())

    def collect(self, take: Callable[[int, dict[str, bytes]], None]) -> None:
        """Fetch the files of all parts whose nodes answer; the others are lost now."""
        known = [
            number for number in self.numbers if number not in self.lost or self.lost[number].until_ns is None
        ]
        self._fetch(known, "files", take)

    def collect_new(
        self, numbers: Collection[int], take: Callable[[int, dict[str, bytes]], None]
    ) -> set[int]:
        """Fetch new files from some nodes, and return who answered; the others are lost now."""
        self._fetch(sorted(numbers), "new_files", take)
        return set(numbers) - self.lost.keys()

    def _fetch(
        self, numbers: Iterable[int], method: str, take: Callable[[int, dict[str, bytes]], None]
    ) -> None:
        asked = {number: self.nodes.ask(number, method) for number in numbers}
        for number, future in asked.items():
            try:
                take(number, self._answer(number, future))
            except RunError as error:
                self._roll.end(number)
                self.lost[number] = Lost(f"its results could not be fetched: {error}", wall_ns(), wall_ns())

    def await_leases(self) -> None:
        """Wait until no lost part can send any more."""
        until_ns = max((lost.until_ns or 0 for lost in self.lost.values()), default=0)
        time.sleep(max(0, until_ns - wall_ns()) / 1e9)

    def _turns(self, pace: Callable[[], float | None]) -> Iterator[tuple[int, News | None]]:
        """Ask the open nodes, and yield their news as they come, or None for a node that is lost.

        End when no node is open, or the pace is None. An interrupted turn can be continued by another call.
        """
        self._roll.resume(time.monotonic())
        while self._roll.open and (every_s := pace()) is not None:
            now = time.monotonic()
            for number in self._roll.due(now):
                sent_ns = wall_ns()
                clock = self.clocks.get(number)
                node_ns = sent_ns if clock is None else clock.of_node(sent_ns)
                self._pending[self.nodes.ask(number, "watch", node_ns)] = number
                self._renewed_ns[number] = sent_ns
                self._roll.asked(number, now)
            done, _ = wait(self._pending, timeout=min(_LOOK_S, every_s), return_when=FIRST_COMPLETED)
            if not done and not self._pending:
                time.sleep(min(_LOOK_S, every_s) / 4)
            for future in done:
                number = self._pending.pop(future)
                if number in self._roll.open:
                    yield from self._heard(number, future, every_s)
            for number in self._roll.overdue(time.monotonic()):
                self._lose(number, "it does not answer any more")
                yield number, None

    def _heard(self, number: int, future: Future[Any], every_s: float) -> Iterator[tuple[int, News | None]]:
        try:
            news = News(**future.result())
        except NodeLost as error:
            self._lose(number, str(error))
            yield number, None
            return
        except ConnectionError:
            self._roll.failed(number, time.monotonic(), _AGAIN_S)
            return
        self._roll.answered(number, time.monotonic(), every_s)
        self._said[number] += news.said
        self.heard(number, news)
        for text in (line["note"] for line in news.said if line.get("note")):
            if text not in self._notes:
                self._notes.add(text)
                self.notify(text)
        if news.ending and news.status is None:
            self._lose(number, news.ending)
        yield number, None if number in self.lost else news

    def _lose(self, number: int, reason: str) -> None:
        """Give up a node. Its last renewal counts for `LEASE_NS` from when it arrived, if it did in time."""
        self._roll.end(number)
        until_ns = self._renewed_ns.get(number, wall_ns()) + STALE_NS + LEASE_NS
        self.lost[number] = Lost(reason, wall_ns(), until_ns)

    def _outcome(self, number: int) -> str | None:
        words = [line.get("outcome") or line.get("error") for line in self._said[number]]
        return next((word for word in reversed(words) if word is not None), None)

    def _last_words(self, number: int, status: int) -> str:
        if status < 0:
            return f"signal {-status}"
        words = [line["last"] for line in self._said[number] if line.get("last")]
        return words[-1] if words else f"status {status}"
