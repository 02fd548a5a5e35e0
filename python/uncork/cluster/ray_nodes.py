"""The nodes of a Ray cluster. Ray places one agent on each, and says when one has ended; nothing else."""

from __future__ import annotations

import importlib.util
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

from uncork.cluster.agent import Keeper, NodeAgent
from uncork.cluster.attach import attached
from uncork.errors import NodeLost, UsageError
from uncork.model.extras import install_extra
from uncork.model.load import ClusterRequest
from uncork.model.units import count_words

_NODE_ID: Final = "ray.io/node-id"
"""The label that Ray gives each machine."""
_PLACE_S: Final = 60.0
"""How long to wait until processors are free."""


def check_installed(option: str = "--nodes") -> None:
    """Raise UsageError if Ray, which an option needs, is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError(f"{option} requires Ray: {install_extra('cluster')}")


@contextmanager
def reserved(request: ClusterRequest, notify: Callable[[str], None]) -> Iterator[RayNodes]:
    """Reserve nodes, and release them afterwards; a cluster of its own is started and ended.

    Raises UsageError if the cluster cannot be reached, requires no token, or has too few nodes.
    """
    with attached(request, notify):
        import ray  # noqa: PLC0415 -- only where a cluster is used
        from ray.util.placement_group import placement_group, remove_placement_group  # noqa: PLC0415
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: PLC0415

        bundles, labels = _bundles(request, ray.nodes())
        # On this machine, all nodes share one raylet.
        spread = "PACK" if request.own else "STRICT_SPREAD"
        group = placement_group(bundles, strategy=spread, bundle_label_selector=labels)
        agents: list[Any] = []
        try:
            if not group.wait(_PLACE_S):
                needed = "all processors" if labels else "a processor"
                raise UsageError(
                    f"{needed} of {count_words(request.nodes, 'machine')} did not become free within "
                    f"{_PLACE_S:.0f} s: wait until other work has ended, or use fewer"
                )
            remote = ray.remote(RayAgent)
            agents += [
                remote.options(
                    num_cpus=bundle["CPU"],
                    max_restarts=0,
                    max_task_retries=0,
                    scheduling_strategy=PlacementGroupSchedulingStrategy(
                        group, placement_group_bundle_index=place
                    ),
                ).remote()
                for place, bundle in enumerate(bundles)
            ]
            yield RayNodes(agents)
        finally:
            for agent in agents:
                ray.kill(agent)
            remove_placement_group(group)


def _bundles(
    request: ClusterRequest, nodes: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, float]], list[dict[str, str]] | None]:
    """Return what to reserve, and on which machines if drawn by lot. Raises UsageError."""
    if request.own:
        return [{"CPU": 1}] * request.nodes, None
    usable = {
        node["NodeID"]: node for node in nodes if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
    }
    if len(usable) < request.nodes:
        option = "--nodes" if request.lot is None else "--hosts"
        raise UsageError(
            f"the cluster has {count_words(len(usable), 'machine')} with a processor for Ray, but {option} "
            f"asks for {request.nodes}: start Ray on more machines (`ray start --address=...`)"
        )
    if request.lot is None:
        return [{"CPU": 1}] * request.nodes, None
    drawn = random.Random(request.lot).sample(sorted(usable), request.nodes)
    return (
        [{"CPU": usable[node]["Resources"]["CPU"]} for node in drawn],
        [{_NODE_ID: node} for node in drawn],
    )


class RayAgent(NodeAgent):
    """The agent of a node of Ray, which knows its raylet, and whether the cluster requires a token.

    Ray ends an agent soon after its raylet. An agent that is asked before says so itself.
    """

    def __init__(self) -> None:
        super().__init__(keeper=Keeper(os.getppid(), "the raylet (Ray's process)"))

    def facts(self) -> dict[str, Any]:
        """Return the node's `NodeFacts`."""
        from ray._raylet import AuthenticationMode, get_authentication_mode  # noqa: PLC0415

        return {
            **super().facts(),
            "authenticated": get_authentication_mode() == AuthenticationMode.TOKEN,
        }


class RayNodes:
    """Agents as actors of Ray, which are never restarted, and whose calls are never repeated."""

    def __init__(self, agents: list[Any]) -> None:
        self._agents = agents

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self._agents)

    def ask(self, number: int, method: str, *arguments: Any) -> Future[Any]:
        """Call a method of a node's agent, and return at once: see `uncork.cluster.ports.Nodes`."""
        answer: Future[Any] = Future()
        try:
            asked = getattr(self._agents[number - 1], method).remote(*arguments).future()
        except Exception as error:  # noqa: BLE001 -- Ray raises many kinds; all mean that nobody answers
            answer.set_exception(_translated(error))
            return answer

        def pass_on(done: Future[Any]) -> None:
            error = done.exception()
            if error is None:
                answer.set_result(done.result())
            else:
                answer.set_exception(_translated(error))

        asked.add_done_callback(pass_on)
        return answer


def _translated(error: BaseException) -> BaseException:
    from ray import exceptions  # noqa: PLC0415

    if isinstance(error, exceptions.RayTaskError):
        cause = getattr(error, "cause", None)
        return cause if isinstance(cause, Exception) else error
    if isinstance(error, exceptions.ActorUnavailableError):
        return ConnectionError(str(error))
    if isinstance(error, exceptions.RayActorError):
        return NodeLost(_reason(str(error)))
    return error


def _reason(text: str) -> str:
    if "No module named 'uncork'" in text:
        return "uncork is not installed there: install the same build on all nodes"
    if "node" in text.lower() and ("node failed" in text.lower() or "node has died" in text.lower()):
        return "its machine does not answer any more"
    return "the process of its agent has ended"
