"""The nodes of a Ray cluster. Ray places one agent on each, and says when one has ended; nothing else."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

from uncork.cluster.agent import NodeAgent
from uncork.cluster.attach import attached
from uncork.errors import NodeLost, UsageError
from uncork.model.extras import install_extra
from uncork.model.load import ClusterRequest
from uncork.model.units import count_words

__all__ = ["RayNodes", "check_installed", "reserved"]

_PLACE_S: Final = 60.0
"""How long to wait for a free processor on each node."""


def check_installed() -> None:
    """Raise UsageError if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError(f"--nodes requires Ray: {install_extra('cluster')}")


@contextmanager
def reserved(request: ClusterRequest, notify: Callable[[str], None]) -> Iterator[RayNodes]:
    """Reserve nodes, and release them afterwards; a cluster of its own is started and ended.

    Raises:
        UsageError: if the cluster cannot be reached, requires no token, or has too few nodes.
    """
    with attached(request, notify):
        import ray  # noqa: PLC0415 -- only where a cluster is used
        from ray.util.placement_group import placement_group, remove_placement_group  # noqa: PLC0415
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: PLC0415

        _check_number(request)
        # On this machine, all nodes share one raylet.
        spread = "PACK" if request.own else "STRICT_SPREAD"
        group = placement_group([{"CPU": 1}] * request.nodes, strategy=spread)
        agents: list[Any] = []
        try:
            if not group.wait(_PLACE_S):
                raise UsageError(
                    f"no processor became free on {count_words(request.nodes, 'node')} within "
                    f"{_PLACE_S:.0f} s: wait until other work has ended, or use fewer nodes"
                )
            remote = ray.remote(RayAgent)
            agents += [
                remote.options(
                    num_cpus=1,
                    max_restarts=0,
                    max_task_retries=0,
                    scheduling_strategy=PlacementGroupSchedulingStrategy(
                        group, placement_group_bundle_index=place
                    ),
                ).remote()
                for place in range(request.nodes)
            ]
            yield RayNodes(agents)
        finally:
            for agent in agents:
                ray.kill(agent)
            remove_placement_group(group)


def _check_number(request: ClusterRequest) -> None:
    import ray  # noqa: PLC0415

    usable = sum(one["Alive"] and one["Resources"].get("CPU", 0) >= 1 for one in ray.nodes())
    if not request.own and usable < request.nodes:
        raise UsageError(
            f"the cluster has {count_words(usable, 'node')} with a processor for Ray, but --nodes asks for "
            f"{request.nodes}: each part needs a machine of its own; start Ray on more machines (`ray start "
            "--address=...`)"
        )


class RayAgent(NodeAgent):
    """The agent of a node of Ray, which knows whether the cluster requires a token."""

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
    """Return what an exception of Ray means for the coordinator."""
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
    """Return in a few words why Ray says that an actor is dead."""
    if "No module named 'uncork'" in text:
        return "uncork is not installed there: install the same build on all nodes"
    if "node" in text.lower() and ("node failed" in text.lower() or "node has died" in text.lower()):
        return "its machine does not answer any more"
    return "the process of its agent has ended"
