"""Bottlenecks as a list: a table would cut off their evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from uncork.report.blocks import Bullets
from uncork.report.words import capitalised

_LIMITS: Final = {
    "generator": "the load generator",
    "listen backlog": "the listen backlog",
    "connection limit": "the connection limit",
    "cpu quota": "the CPU quota",
    "pool": "the connection pool",
    "commit": "commits",
    "database cpu": "the database's CPU",
    "service cpu": "the service's CPU",
    "machine cpu": "the machine's CPU",
}


def limit_words(resource: str) -> str:
    """Return a resource as it follows *limited by*: ``the connection pool``, ``locks``."""
    return _LIMITS.get(resource, resource)


def resource_title(resource: str) -> str:
    """Return a resource as the head of a line: ``Machine CPU``."""
    shown = resource.replace("cpu", "CPU")
    return capitalised(shown)


def bottleneck_lines(found: Iterable[tuple[str, str, str, str]]) -> Bullets:
    """Return one item per (resource, level or "", evidence, remedy)."""
    return Bullets(
        tuple(
            f"{resource_title(resource)}{f' at {where}' if where else ''}: {sentence}. Remedy: {remedy}."
            for resource, where, sentence, remedy in found
        )
    )
