"""Nodes of a cluster without Ray: agents in this process, whose parts are real processes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from uncork.cluster.agent import NodeAgent
from uncork.errors import NodeLost
from uncork.model.load import ClusterRequest

_SHIFTED = """
import sys, time
real = time.time_ns
time.time_ns = lambda: real() + {shift}
sys.argv[0] = "part"
from uncork.cluster.part_process import main
main()
"""
"""A part whose machine has a wrong clock."""


class ShiftedAgent(NodeAgent):
    """An agent on a machine whose wall clock is wrong by some nanoseconds."""

    def __init__(self, shift_ns: int) -> None:
        super().__init__({"load": (sys.executable, "-c", _SHIFTED.format(shift=shift_ns))})
        self._shift_ns = shift_ns

    def clock(self) -> int:
        return super().clock() + self._shift_ns

    def watch(self, sent_ns: int) -> dict[str, Any]:
        return super().watch(sent_ns - self._shift_ns)


def _block_interrupts() -> None:
    """Block SIGINT in a thread, as in the workers of Ray: processes that it starts inherit that."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


class LocalNodes:
    """Agents by number. `kill` and `freeze` do to an agent what happens to processes of machines."""

    def __init__(self, agents: Sequence[NodeAgent]) -> None:
        self.agents = agents
        self.calls: list[tuple[int, str]] = []
        self.traffic = 0
        self._threads = [ThreadPoolExecutor(1, initializer=_block_interrupts) for _ in agents]
        self._gone: set[int] = set()
        self._frozen: set[int] = set()

    @property
    def count(self) -> int:
        return len(self.agents)

    def ask(self, number: int, method: str, *arguments: Any) -> Future[Any]:
        self.calls.append((number, method))
        if number in self._gone:
            gone: Future[Any] = Future()
            gone.set_exception(NodeLost("the process of its agent has ended"))
            return gone
        if number in self._frozen:
            return Future()
        return self._threads[number - 1].submit(self._call, number, method, arguments)

    def _call(self, number: int, method: str, arguments: Sequence[Any]) -> Any:
        answer = getattr(self.agents[number - 1], method)(*arguments)
        if method == "watch":
            self.traffic += len(answer["snapshots"]) + len(answer["reserved"])
        return answer

    def kill(self, number: int) -> None:
        """The agent ends, and with it its part: its reaper sees to that."""
        self._gone.add(number)
        self._threads[number - 1].submit(self.agents[number - 1].end).result()

    def freeze(self, number: int) -> None:
        """Nothing reaches the agent any more; its part runs on until its lease ends."""
        self._frozen.add(number)

    @contextmanager
    def reserve(self, request: ClusterRequest, _notify: Callable[[str], None]) -> Iterator[LocalNodes]:
        assert request.nodes == self.count
        try:
            yield self
        finally:
            for agent, thread in zip(self.agents, self._threads, strict=True):
                thread.submit(agent.end).result()
                thread.shutdown()
