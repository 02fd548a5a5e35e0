"""Name the bottleneck of a load, from what was seen of all components at the same time. Pure.

Limits that refuse requests (of connections, files, ports) come first: they show as errors. Saturated
resources follow. Each saturated resource claims the requests in flight that wait for it, and the largest
claim is named. A claim needs a queue: requests that are being served wait for nothing, so a healthy run has
no bottleneck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from uncork.advise import limits, saturation
from uncork.model.bottleneck import Bottleneck, Seen

_RULES: tuple[Callable[[Seen], Bottleneck | None], ...] = (
    limits.ephemeral_ports,
    limits.file_descriptors,
    limits.connection_limit,
    limits.listen_backlog,
    saturation.generator,
    saturation.quota,
    saturation.pool,
    saturation.locks,
    saturation.commit,
    saturation.storage,
    saturation.internal_locks,
    saturation.threads,
    saturation.processors,
)


def find_bottlenecks(seen: Seen) -> tuple[Bottleneck, ...]:
    """Return the bottlenecks, the gravest first. A healthy run has none."""
    return tuple(sorted(_found(seen), key=lambda one: -one.weight))


def _found(seen: Seen) -> Iterator[Bottleneck]:
    for rule in _RULES:
        found = rule(seen)
        if found is not None:
            yield found
