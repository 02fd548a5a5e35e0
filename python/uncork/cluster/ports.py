"""What the coordinator of a load needs of a cluster, and what nodes say about themselves."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from uncork.model.load import ClusterRequest

Program = Literal["load", "experiment"]
"""What a node does: it sends a part of a load, or measures rounds of an experiment."""


class Nodes(Protocol):
    """Nodes that are reserved, numbered from 1. Each has a `uncork.cluster.agent.NodeAgent`."""

    @property
    def count(self) -> int:
        """How many nodes there are."""

    def ask(self, number: int, method: str, *arguments: Any) -> Future[Any]:
        """Call a method of a node's agent, and return at once.

        The future raises NodeLost if the node has ended, ConnectionError if it could not be reached this
        time, and what the method raised. Calls of one node are carried out one after another.
        """


Reserve = Callable[[ClusterRequest, Callable[[str], None]], AbstractContextManager[Nodes]]
"""Reserve the nodes of a request, and release them afterwards; the second argument takes messages."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node says about itself.

    `machine` is the same for nodes on one machine. `version` and `core` are the builds of uncork and its
    core. `open_files` is how many files its load may open, `ports` how many connections it can open to one
    address. `authenticated` says whether its cluster requires a token; None where that has no meaning.
    """

    host: str
    machine: int
    version: str
    core: str
    open_files: int
    ports: int
    authenticated: bool | None = None


@dataclass(frozen=True, slots=True)
class News:
    """What a node reports since it was last asked.

    `said` are messages of its part: see `uncork.cluster.part_process`. `snapshots` are lines that the part
    added to its progress, `reserved` is its file of reservations, and `files` are others that it has written
    by its start, once. `status` is the exit status of the part; None while it runs. `ending` says why the
    agent will end soon; empty if it will not.
    """

    said: tuple[dict[str, Any], ...] = ()
    snapshots: bytes = b""
    reserved: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    status: int | None = None
    ending: str = ""
