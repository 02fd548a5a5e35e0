"""Resources that gave out, as lines: a table would cut their evidence off."""

from __future__ import annotations

from collections.abc import Iterable

from uncork.report.blocks import Bullets

__all__ = ["bottleneck_lines"]


def bottleneck_lines(found: Iterable[tuple[str, str, str, str]]) -> Bullets:
    """Return a line for each: the resource, where it gave out (or nothing), the evidence, the remedy."""
    return Bullets(
        tuple(
            f"{resource[:1].upper()}{resource[1:]}{f' at {where}' if where else ''}: {sentence}. "
            f"What would raise it: {remedy}."
            for resource, where, sentence, remedy in found
        )
    )
