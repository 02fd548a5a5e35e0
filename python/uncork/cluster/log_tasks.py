"""Carry out tasks of reading logs on the nodes of a Ray cluster."""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import Final

from uncork.cluster.ports import Nodes, Reserve
from uncork.cluster.ray_nodes import check_installed, reserved
from uncork.errors import NodeLost, SetupError, UsageError
from uncork.model.load import ClusterRequest
from uncork.profile.portions.tasks import CarryOut, Done, LogTask, ignore
from uncork.requests.part import cluster_place
from uncork.requests.profile_options import LogOptions

_ATTEMPTS: Final = 2
"""How often a task is begun: on another node if the first one is lost."""
_AHEAD: Final = 4
"""How many results of each node may wait for earlier ones."""


def nodes_of(options: LogOptions, notify: Callable[[str], None]) -> CarryOut | None:
    """Return what carries out tasks on nodes; None if options name none. Raises UsageError."""
    if options.nodes is None:
        if options.cluster is not None:
            raise UsageError("--cluster requires --nodes NUM, the number of nodes that read the logs")
        return None
    if options.processes is not None:
        raise UsageError("--nodes and --processes cannot be combined: use one of them")
    request = ClusterRequest(nodes=options.nodes, place=cluster_place(options.cluster or "local"))
    return partial(on_nodes, request=request, notify=notify)


def on_nodes(
    tasks: Sequence[LogTask],
    request: ClusterRequest,
    notify: Callable[[str], None],
    reserve: Reserve = reserved,
    done: Done = ignore,
) -> Iterator[bytes]:
    """Yield what each task has gathered, in order. All nodes must see the same files, or read objects.

    `done` takes results as soon as they arrive. Raises SetupError if a log cannot be read, or no node is
    left. Raises UsageError if Ray is not installed, or the cluster cannot be used.
    """
    if reserve is reserved:
        check_installed()
    with reserve(request, notify) as nodes:
        yield from carry_out(nodes, tasks, notify, done)


def carry_out(
    nodes: Nodes, tasks: Sequence[LogTask], notify: Callable[[str], None], done: Done = ignore
) -> Iterator[bytes]:
    """Yield what each task has gathered, in order. The task of a lost node is done again by another, once.

    Raises SetupError if a log cannot be read, a task's nodes were lost twice, or no node is left.
    """
    waiting, free = deque(tasks), deque(range(1, nodes.count + 1))
    running: dict[Future[bytes], tuple[int, LogTask]] = {}
    attempts: Counter[int] = Counter()
    results: dict[int, bytes] = {}
    for task in tasks:
        while task.number not in results:
            while free and waiting and waiting[0].number < task.number + _AHEAD * nodes.count:
                next_task, node = waiting.popleft(), free.popleft()
                attempts[next_task.number] += 1
                running[nodes.ask(node, "gather", pickle.dumps(next_task))] = (node, next_task)
            if not running:
                raise SetupError("all nodes are lost: start them again, and read the logs again")
            for answer in wait(running, return_when=FIRST_COMPLETED).done:
                node, ended = running.pop(answer)
                try:
                    results[ended.number] = answer.result()
                    free.append(node)
                    done(ended, results[ended.number])
                except (NodeLost, ConnectionError) as error:
                    if attempts[ended.number] == _ATTEMPTS:
                        raise SetupError(
                            f"{ended.name}: the nodes that read it were lost twice: {error}"
                        ) from error
                    # What Ray says of a node that it cannot reach is for its programmers.
                    reason = error if isinstance(error, NodeLost) else "it cannot be reached"
                    notify(f"node {node} is lost ({reason}); another one reads {ended.name}")
                    waiting.appendleft(ended)
        yield results.pop(task.number)
