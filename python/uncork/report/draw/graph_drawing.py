"""Draw a graph as SVG, for a page or standalone: circles with areas by size, arrows, framed islands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Final

from uncork.report.blocks import Graph, GraphEdge, GraphNode
from uncork.report.draw.graph_layout import Box, Place, lay_out

__all__ = ["draw_graph", "graph_file"]

_WIDTH: Final = 1000.0
_LEAST_RADIUS: Final = 7.0
_MOST_RADIUS: Final = 34.0
_LETTER: Final = 7.2
"""Upper bound of the mean width of a letter, in pixels, at a height of 13 pixels."""
_LINES: Final = 34.0
"""Height of the name and note below a circle, in pixels."""
_COLOURS: Final = 7
_ARROW: Final = 8.0
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #565d66; --line: #dcdcd6; --card: #ffffff;
  --slower: #7a2d00; --v1: #0068a8; --v2: #c24e00; --v3: #00805d; --v4: #a5447f; --v5: #946800;
  --v6: #1d8fc4; --v7: #6b4fb3; background: var(--card); }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e9e6; --soft: #a7aeb6; --line: #343a41;
  --card: #1b1f23; --slower: #ffc09a; --v1: #56b4e9; --v2: #ff8f4d; --v3: #2bc49a; --v4: #e08fc0;
  --v5: #e6b422; --v6: #9ad4f5; --v7: #b6a1f0; } }
text { font-family: system-ui, "Segoe UI", Roboto, "Liberation Sans", "DejaVu Sans", sans-serif; }
"""
"""The colours of the page, for a standalone drawing."""


def draw_graph(graph: Graph, id: str) -> str:
    """Return the graph as an `<svg>` element for an HTML page; `id` must be unique in it."""
    return _svg(graph, id, "")


def graph_file(graph: Graph) -> str:
    """Return the graph as a standalone SVG file, in light and dark."""
    return _svg(graph, "graph", f"<style>{_STYLE}</style>") + "\n"


def _svg(graph: Graph, id: str, style: str) -> str:
    radii = _radii(graph)
    boxes = {
        node.key: Box(
            max(2 * radii[node.key], _LETTER * max(len(node.name), len(node.note))),
            2 * radii[node.key] + _LINES,
        )
        for node in graph.nodes
    }
    islands = [
        [node.key for node in graph.nodes if node.island == number] for number in range(len(graph.islands))
    ]
    layout = lay_out(islands, [(edge.source, edge.target) for edge in graph.edges], boxes, _WIDTH)
    middles = {key: Place(place.x, place.y - _LINES / 2) for key, place in layout.places.items()}
    parts = [
        *_frames(graph, layout.frames),
        *(_edge(edge, middles, radii, id) for edge in graph.edges),
        *(_node(node, middles[node.key], radii[node.key]) for node in graph.nodes),
    ]
    width, height = math.ceil(layout.width), math.ceil(layout.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-labelledby="{id}" '
        f'width="{width}" height="{height}" viewBox="-2 -2 {width + 4} {height + 4}">'
        f'<title id="{id}">{escape(graph.title)}. {escape(graph.description)}</title>{style}'
        f"<defs>{_marker(f'{id}-arrow', 'soft')}{_marker(f'{id}-marked', 'slower')}</defs>"
        f"{''.join(parts)}</svg>"
    )


def _radii(graph: Graph) -> dict[int, float]:
    """Return the radius of each circle: its area is proportional to the size, above a minimum."""
    most = max((node.size for node in graph.nodes), default=0) or 1.0
    return {node.key: max(_LEAST_RADIUS, _MOST_RADIUS * math.sqrt(node.size / most)) for node in graph.nodes}


def _marker(id: str, colour: str) -> str:
    return (
        f'<marker id="{id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="{_ARROW:g}" '
        f'markerHeight="{_ARROW:g}" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0.5L8 4L0 7.5z" fill="var(--{colour})"/></marker>'
    )


def _frames(graph: Graph, frames: tuple[tuple[float, float, float, float], ...]) -> Iterator[str]:
    for title, (left, top, width, height) in zip(graph.islands, frames, strict=True):
        yield (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="8" '
            f'fill="none" stroke="var(--line)"/><text x="{left + 10:.1f}" y="{top + 19:.1f}" font-size="12" '
            f'fill="var(--soft)">{escape(title)}</text>'
        )


def _edge(edge: GraphEdge, middles: dict[int, Place], radii: dict[int, float], id: str) -> str:
    one, other = middles[edge.source], middles[edge.target]
    colour, arrow = ("slower", "marked") if edge.marked else ("soft", "arrow")
    dash = ' stroke-dasharray="5 4"' if edge.marked else ""
    if edge.source == edge.target:
        radius = radii[edge.source]
        path = (
            f"M{one.x - radius * 0.6:.1f} {one.y - radius * 0.8:.1f}"
            f"C{one.x - radius - 14:.1f} {one.y - radius - 22:.1f} {one.x + radius + 14:.1f} "
            f"{one.y - radius - 22:.1f} {one.x + radius * 0.6:.1f} {one.y - radius * 0.8:.1f}"
        )
    else:
        length = math.hypot(other.x - one.x, other.y - one.y) or 1.0
        x, y = (other.x - one.x) / length, (other.y - one.y) / length
        start, end = radii[edge.source] + 1, length - radii[edge.target] - 3
        path = f"M{one.x + x * start:.1f} {one.y + y * start:.1f}L{one.x + x * end:.1f} {one.y + y * end:.1f}"
    return (
        f'<path d="{path}" fill="none" stroke="var(--{colour})" stroke-width="1.4"{dash} '
        f'marker-end="url(#{id}-{arrow})"><title>{escape(edge.label)}</title></path>'
    )


def _node(node: GraphNode, middle: Place, radius: float) -> str:
    colour = f"var(--v{1 + node.island % _COLOURS})"
    below = middle.y + radius
    return (
        f"<g><title>{escape(node.name)}, {escape(node.note)}</title>"
        f'<circle cx="{middle.x:.1f}" cy="{middle.y:.1f}" r="{radius:.1f}" fill="{colour}" '
        f'stroke="var(--card)" stroke-width="1.5"/>'
        f"{_label(node.name, middle.x, below + 14, 13, 'ink')}"
        f"{_label(node.note, middle.x, below + 28, 11, 'soft')}</g>"
    )


def _label(text: str, x: float, y: float, size: int, colour: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle" fill="var(--{colour})" '
        f'stroke="var(--card)" stroke-width="3" paint-order="stroke">{escape(text)}</text>'
    )
