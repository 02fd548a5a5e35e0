"""Read the constants with which a statement always compares columns from its texts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from uncork.profile.statement_shape import statement_shape

_READ: Final = 12
_AGREE: Final = 3
"""Texts to read, and how many different ones without a parameter must agree: their values may all be
parameters that the client writes into the text."""


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
