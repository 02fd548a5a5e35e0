"""Bottlenecks as a list: a table would cut off their evidence."""

from __future__ import annotations

from collections.abc import Iterable

from uncork.report.blocks import Bullets

__all__ = ["bottleneck_lines"]


def bottleneck_lines(found: Iterable[tuple[str, str, str, str]]) -> Bullets:
    """Return one item per (resource, level or "", evidence, remedy)."""
    return Bullets(
        tuple(
            f"{resource[:1].upper()}{resource[1:]}{f' at {where}' if where else ''}: {sentence}. "
            f"Remedy: {remedy}."
            for resource, where, sentence, remedy in found
        )
    )
