"""Flame graphs, drawn by the Rust core: as a file of its own, or to stand in a page."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork import _native
from uncork.errors import UsageError

__all__ = ["flame_svg", "labelled"]

_LEAST: Final = 0.0005
"""Share of the whole below which a frame is not drawn alone: half a pixel of a thousand."""
_LEAST_IN_PAGE: Final = 0.001


def labelled(stacks: pa.Table) -> pa.Table:
    """Return stacks and values, with whose they are as the first frame where that is told."""
    backend, application, process = (
        pc.fill_null(stacks[name], "") for name in ("backend", "application", "process")
    )
    both = pc.binary_join_element_wise(backend, application, ", ")
    session = pc.if_else(pc.equal(application, ""), backend, both)
    label = pc.if_else(pc.equal(backend, ""), process, session)
    label = pc.replace_substring(pc.replace_substring(label, ";", ","), "\n", " ")
    stack = stacks["stack"]
    with_label = pc.binary_join_element_wise(label, stack, ";")
    # The stacks of sessions begin with the label already.
    bare = pc.or_(pc.equal(label, ""), pc.equal(stacks["measure"], "sessions"))
    return pa.table({"stack": pc.if_else(bare, stack, with_label), "value": stacks["value"]})


def flame_svg(stacks: pa.Table, *, title: str, subtitle: str, unit: str, alone: bool) -> str:
    """Draw stacks as SVG: frames by width; with a column `before`, by colour what changed since.

    `alone` gives the drawing its own search and zoom; else it stands still, for a page that moves it.

    Raises:
        UsageError: if there is nothing to draw.
    """
    options = {
        "title": title,
        "subtitle": subtitle,
        "unit": unit,
        "least": _LEAST if alone else _LEAST_IN_PAGE,
        "difference": "before" in stacks.column_names,
        "width": None,
        "alone": alone,
    }
    try:
        return _native.draw_stacks(stacks, json.dumps(options).encode()).decode()
    except ValueError as error:
        raise UsageError(f"no flame graph of {title}: {error}") from error
