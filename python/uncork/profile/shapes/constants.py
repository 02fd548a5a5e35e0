"""Read the constants that a statement assigns to columns, or compares them with, from its texts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from uncork.profile.shapes.nodes import constant_text, kind_of, only_statement, uncast
from uncork.profile.statement_shape import statement_shape

_READ: Final = 12
_AGREE: Final = 3
"""Texts to read, and how many different ones without a parameter must agree: their values may all be
parameters that the client writes into the text."""


def assigned_values(text: str) -> Mapping[str, str | None]:
    """Return the value of each column that an UPDATE sets, None for NULL, booleans as ``t`` and ``f``.

    The result is empty if the text is no UPDATE, or if it sets a column to anything but a constant.
    """
    node = only_statement(text)
    if node is None or kind_of(node) != "update_stmt":
        return {}
    found: dict[str, str | None] = {}
    for target in node.update_stmt.target_list:
        value = uncast(target.res_target.val)
        if kind_of(value) != "a_const" or target.res_target.indirection:
            return {}
        written = constant_text(value.a_const)
        boolean = value.a_const.WhichOneof("val") == "boolval"
        found[target.res_target.name] = written[:1] if written and boolean else written
    return found


def compared_values(texts: Sequence[str], columns: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """Return the constant with which all texts of a statement compare each column for equality.

    A constant beside a parameter (``state = 'new' AND id > $1``) is part of the client's code.
    """
    read = list(dict.fromkeys(texts))[:_READ]
    if not any("$1" in text for text in read) and len(read) < _AGREE:
        return {}
    found: dict[str, str] | None = None
    for text in read:
        shape = statement_shape(text, columns)
        if shape is None:
            continue
        known = {
            predicate.column: predicate.literal
            for predicate in shape.predicates
            if predicate.operator == "="
            and predicate.value == "constant"
            and predicate.column
            and predicate.literal
            if not (predicate.alternative or predicate.cast or predicate.level)
        }
        found = known if found is None else {key: found[key] for key in found if known.get(key) == found[key]}
    return found or {}
