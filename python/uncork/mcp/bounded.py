"""Cut a JSON document to a size that a language model can read, and say what was cut. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from uncork.errors import UsageError
from uncork.model.units import format_count

LIMIT: Final = 50_000
"""Characters of a result as JSON, about 15 000 tokens."""
_STEPS: Final = (
    *((4000, 300), (2000, 150), (1000, 80), (500, 40), (300, 20), (200, 10)),
    *((150, 6), (100, 4), (80, 3), (60, 2), (40, 1)),
)
"""Characters of a text and entries of a list to keep: the first step that is short enough is taken."""
_CUTS: Final = 20


@dataclass(slots=True)
class Bounded:
    """A document, and its lists that were cut: the part, the entries that are left, and how many there were.

    `value` is None if even the shortest form is too long. Texts that were cut say so at their end.
    """

    value: Any
    cut: list[dict[str, Any]] = field(default_factory=list)


def bounded(value: Any, limit: int = LIMIT) -> Bounded:
    """Return a JSON value whose text has at most `limit` characters, or about: see `Bounded`."""
    if _length(value) <= limit:
        return Bounded(value)
    for characters, entries in _STEPS:
        found = Bounded(None)
        found.value = _cut(value, characters, entries, "", found.cut)
        if _length(found.value) <= limit:
            del found.cut[_CUTS:]
            return found
    return Bounded(None)


def part_of(value: Any, part: str) -> Any:
    """Return a part of a document, such as ``plans.0.text``. Raises UsageError that lists what exists."""
    found, passed = value, ""
    for word in filter(None, part.split(".")):
        where = f'"{passed}"' if passed else "the result"
        if isinstance(found, Mapping):
            if word not in found:
                raise UsageError(f'{where} has no part "{word}"; it has {", ".join(found) or "none"}')
            found = found[word]
        elif isinstance(found, list):
            if not found:
                raise UsageError(f"{where} has no entries")
            if not word.isdecimal() or int(word) >= len(found):
                many = f"{format_count(len(found))} {'entry' if len(found) == 1 else 'entries'}"
                raise UsageError(f"{where} has {many}, numbered from 0; there is no {word}")
            found = found[int(word)]
        else:
            raise UsageError(f"{where} is a single value and has no parts")
        passed = f"{passed}.{word}" if passed else word
    return found


def plain(value: Any) -> Any:
    """Return a value of a database as one of JSON; bytes, such as histograms, only with their length."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)  # NaN is not below it either
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({format_count(len(value))} bytes)"
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    return str(value)


def _length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _cut(value: Any, characters: int, entries: int, part: str, cut: list[dict[str, Any]]) -> Any:
    if isinstance(value, str):
        if len(value) <= characters:
            return value
        return f"{value[:characters]}… (cut: {format_count(len(value))} characters)"
    if isinstance(value, Mapping):
        return {key: _cut(one, characters, entries, _below(part, key), cut) for key, one in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > entries:
            cut.append({"part": part, "shown": entries, "of": len(value)})
        kept = enumerate(value[:entries])
        return [_cut(one, characters, entries, _below(part, place), cut) for place, one in kept]
    return value


def _below(part: str, name: object) -> str:
    return f"{part}.{name}" if part else str(name)
