"""Flame graphs, drawn by the Rust core: as a standalone file, or for a page."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork import _native
from uncork.errors import UsageError

_LEAST: Final = 0.0005
"""Minimum share of a frame in a standalone file: half a pixel of a thousand."""
_LEAST_IN_PAGE: Final = 0.001


def labelled(stacks: pa.Table) -> pa.Table:
    """Return stacks and values, with the owner of each stack, if known, as its first frame."""
    backend, application, process = (
        pc.fill_null(stacks[name], "") for name in ("backend", "application", "process")
    )
    both = pc.binary_join_element_wise(backend, application, ", ")
    session = pc.if_else(pc.equal(application, ""), backend, both)
    label = pc.if_else(pc.equal(backend, ""), process, session)
    label = pc.replace_substring(pc.replace_substring(label, ";", ","), "\n", " ")
    stack = stacks["stack"]
    with_label = pc.binary_join_element_wise(label, stack, ";")
    # The stacks of sessions already begin with the label.
    bare = pc.or_(pc.equal(label, ""), pc.equal(stacks["measure"], "sessions"))
    return pa.table({"stack": pc.if_else(bare, stack, with_label), "value": stacks["value"]})


def flame_svg(stacks: pa.Table, *, title: str, subtitle: str, unit: str, alone: bool) -> str:
    """Return stacks as a flame graph in SVG; with a column `before`, colours show the change.

    With `alone`, the drawing has its own search and zoom; otherwise the page provides them.

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
