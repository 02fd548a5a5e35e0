"""Lay out the nodes of a graph: each island by its edges, and the islands next to each other. Pure.

Within an island, nodes repel each other and edges attract (Fruchterman and Reingold, Graph drawing by
force-directed placement, 1991). The start is fixed, so the same graph always has the same layout. Overlapping
boxes are then pushed apart. Islands are placed in rows, the largest first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Box", "Layout", "Place", "lay_out"]

_ROUNDS: Final = 200
_WORK: Final = 1_500_000
"""Maximum number of pairs of nodes to process: a large island gets fewer rounds."""
_GAP: Final = 14.0
"""Pixels between boxes."""
_FRAME: Final = 16.0
"""Pixels between an island's boxes and its frame, in addition to its title."""
_TITLE: Final = 22.0
_CLOSE: Final = 0.65
"""Preferred distance between connected nodes, in diagonals of their boxes."""


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a node, in pixels."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Place:
    """The centre of a node."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The centres of nodes by key, and the frame of each island (left, top, width, height)."""

    places: Mapping[int, Place]
    frames: tuple[tuple[float, float, float, float], ...]
    width: float
    height: float


def lay_out(
    islands: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]], boxes: Mapping[int, Box], width: float
) -> Layout:
    """Place islands of nodes in rows up to `width` pixels wide, or wider if an island is wider."""
    drawn = [_island(members, edges, boxes) for members in islands]
    places: dict[int, Place] = {}
    frames: list[tuple[float, float, float, float]] = []
    left, top, row_height, reach = 0.0, 0.0, 0.0, 0.0
    for inner in drawn:
        wide, high = _extent(inner, boxes)
        wide, high = wide + 2 * _FRAME, high + 2 * _FRAME + _TITLE
        if left and left + wide > width:
            left, top, row_height = 0.0, top + row_height + _GAP, 0.0
        corner_x = min(place.x - boxes[key].width / 2 for key, place in inner.items())
        corner_y = min(place.y - boxes[key].height / 2 for key, place in inner.items())
        for key, place in inner.items():
            x = left + _FRAME + place.x - corner_x
            places[key] = Place(x, top + _FRAME + _TITLE + place.y - corner_y)
        frames.append((left, top, wide, high))
        reach, row_height, left = max(reach, left + wide), max(row_height, high), left + wide + _GAP
    return Layout(places, tuple(frames), reach, top + row_height)


def _extent(places: Mapping[int, Place], boxes: Mapping[int, Box]) -> tuple[float, float]:
    xs = [place.x + side * boxes[key].width / 2 for key, place in places.items() for side in (-1, 1)]
    ys = [place.y + side * boxes[key].height / 2 for key, place in places.items() for side in (-1, 1)]
    return max(xs) - min(xs), max(ys) - min(ys)


def _island(
    members: Sequence[int], edges: Sequence[tuple[int, int]], boxes: Mapping[int, Box]
) -> dict[int, Place]:
    """Return the centres of the nodes of one island; edges to other islands are ignored."""
    number = len(members)
    far = _CLOSE * sum(math.hypot(boxes[key].width, boxes[key].height) for key in members) / number
    inside = set(members)
    pulls = {tuple(sorted(edge)) for edge in edges if inside.issuperset(edge) and edge[0] != edge[1]}
    circle = far * max(1.0, number / math.tau)
    spots = {
        key: [
            circle * math.cos(math.tau * turn / number) * 1.3,
            circle * math.sin(math.tau * turn / number),
        ]
        for turn, key in enumerate(members)
    }
    rounds = max(10, min(_ROUNDS, _WORK // max(1, number * number)))
    for passed in range(rounds):
        _settle(spots, pulls, far, far * (1 - passed / rounds))
    _lie_down(spots)
    _push_apart(spots, boxes)
    return {key: Place(x, y) for key, (x, y) in spots.items()}


def _settle(spots: dict[int, list[float]], pulls: set[tuple[int, ...]], far: float, most: float) -> None:
    """Move every node once by the forces on it, at most by `most` pixels."""
    moves = {key: [0.0, 0.0] for key in spots}
    keys = list(spots)
    for place, one in enumerate(keys):
        for other in keys[place + 1 :]:
            x, y = spots[one][0] - spots[other][0], spots[one][1] - spots[other][1]
            force = far * far / max(1.0, x * x + y * y)
            for key, sign in ((one, 1.0), (other, -1.0)):
                moves[key][0] += sign * x * force
                moves[key][1] += sign * y * force
    for one, other in pulls:
        x, y = spots[one][0] - spots[other][0], spots[one][1] - spots[other][1]
        force = math.hypot(x, y) / far
        for key, sign in ((one, -1.0), (other, 1.0)):
            moves[key][0] += sign * x * force
            moves[key][1] += sign * y * force
    for key, (x, y) in moves.items():
        length = math.hypot(x, y) or 1.0
        step = min(length, most)
        spots[key][0] += x / length * step
        spots[key][1] += y / length * step


def _lie_down(spots: dict[int, list[float]]) -> None:
    """Rotate an island so that its longest extent is horizontal, as names are."""
    number = len(spots)
    middle_x, middle_y = (sum(spot[axis] for spot in spots.values()) / number for axis in (0, 1))
    around = [(x - middle_x, y - middle_y) for x, y in spots.values()]
    across = sum(2 * x * y for x, y in around)
    angle = 0.5 * math.atan2(across, sum(x * x - y * y for x, y in around))
    for key, (x, y) in zip(spots, around, strict=True):
        spots[key] = [
            x * math.cos(angle) + y * math.sin(angle),
            y * math.cos(angle) - x * math.sin(angle),
        ]


def _push_apart(spots: dict[int, list[float]], boxes: Mapping[int, Box]) -> None:
    """Push overlapping boxes apart along the shorter way until none overlaps."""
    keys = sorted(spots)
    for _ in range(max(10, min(_ROUNDS, _WORK // max(1, len(keys) ** 2)))):
        moved = False
        for place, key in enumerate(keys):
            for other in keys[place + 1 :]:
                x, y = spots[other][0] - spots[key][0], spots[other][1] - spots[key][1]
                over_x = (boxes[key].width + boxes[other].width) / 2 + _GAP - abs(x)
                over_y = (boxes[key].height + boxes[other].height) / 2 + _GAP - abs(y)
                if over_x <= 0 or over_y <= 0:
                    continue
                axis, over, way = (0, over_x, x) if over_x < over_y else (1, over_y, y)
                half = math.copysign(over / 2 + 0.5, way)
                spots[key][axis] -= half
                spots[other][axis] += half
                moved = True
        if not moved:
            return
