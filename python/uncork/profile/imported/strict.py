"""Read JSON of other tools strictly: a wrong value is reported with its place, and what was expected."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final

from uncork.model.records import Record

_SHOWN: Final = 40


def shown(found: object) -> str:
    """Return a value as JSON, shortened, for a message."""
    text = json.dumps(found, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class Value(Record):
    """A value of a JSON document, and the path to it, such as ``results[2].mean``.

    All methods raise ValueError if the value has another type; the message names the path.
    """

    found: Any
    path: str = ""

    def __getitem__(self, key: str) -> Value:
        """Return a member of an object; raises ValueError if it is missing."""
        members = self._members()
        if key not in members:
            raise ValueError(f'"{self._at(key)}" is missing')
        return Value(members[key], self._at(key))

    def get(self, key: str) -> Value | None:
        """Return a member of an object; None if it is missing or null."""
        found = self._members().get(key)
        return None if found is None else Value(found, self._at(key))

    def items(self) -> Iterator[tuple[str, Value]]:
        """Yield the members of an object."""
        return ((key, Value(found, self._at(key))) for key, found in self._members().items())

    def elements(self) -> list[Value]:
        """Return the elements of a list."""
        if not isinstance(self.found, list):
            raise self.wrong("a list")
        return [Value(found, f"{self.path}[{place}]") for place, found in enumerate(self.found)]

    def number(self, least: float = -math.inf) -> float:
        """Return a finite number of at least `least`."""
        found = self.found
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self.wrong("a number")
        try:
            number = float(found)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong("a finite number")
        if number < least:
            raise self.wrong(f"a number of at least {least:g}")
        return number

    def count(self) -> int:
        """Return a whole number of at least 0."""
        number = self.number(0.0)
        if number != int(number):
            raise self.wrong("a whole number")
        return int(number)

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.found, str):
            raise self.wrong("a text")
        return self.found

    def wrong(self, expected: str) -> ValueError:
        """Return the error that something else was expected here."""
        return ValueError(f'"{self.path or "the document"}" is {shown(self.found)}; expecting {expected}')

    def _members(self) -> dict[str, Any]:
        if not isinstance(self.found, dict):
            raise self.wrong("an object")
        return self.found

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key
