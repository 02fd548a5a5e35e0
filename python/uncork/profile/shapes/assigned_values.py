"""Read the constants that an UPDATE assigns to columns from a text of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from uncork.profile.shapes.nodes import kind_of, parsed

_NUMBERS: Final = {"ival": "ival", "fval": "fval"}


def assigned_values(text: str) -> Mapping[str, str | None]:
    """Return the value of each column that an UPDATE sets, None for NULL, booleans as ``t`` and ``f``.

    The result is empty if the text is no UPDATE, or if it sets a column to anything but a constant.
    """
    tree = parsed(text)
    if tree is None or len(tree.stmts) != 1 or kind_of(tree.stmts[0].stmt) != "update_stmt":
        return {}
    found: dict[str, str | None] = {}
    for target in tree.stmts[0].stmt.update_stmt.target_list:
        value = target.res_target.val
        if kind_of(value) == "type_cast":
            value = value.type_cast.arg
        if kind_of(value) != "a_const" or target.res_target.indirection:
            return {}
        found[target.res_target.name] = _constant(value.a_const)
    return found


def _constant(value: Any) -> str | None:
    if value.isnull:
        return None
    kind = value.WhichOneof("val")
    if kind == "boolval":
        return "t" if value.boolval.boolval else "f"
    inner = getattr(value, kind)
    return str(getattr(inner, _NUMBERS.get(kind, kind)))
