"""The JSON report: the result itself, with its version, and the schema that describes it."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring
from typing import Any, Final

__all__ = ["json_bytes", "json_text", "schema_of"]

_PACKED: Final = 10_000
"""Pieces of text to keep before they are packed."""
_WORDS: Final = {None: "null", True: "true", False: "false"}


def json_text(value: Any) -> str:
    """Return a dataclass as JSON, ending with a newline; infinities and NaN become null."""
    return json_bytes(value).decode()


def json_bytes(value: Any) -> bytes:
    """Return the JSON of `json_text` in UTF-8, which takes a fraction of the memory of a text.

    The text is what `json.dumps` writes with an indent of 1. Large results are never in memory as
    dictionaries, nor as a list of all pieces.
    """
    writer = _Writer()
    writer.write(value, "\n")
    return writer.end()


def schema_of(kind: type, title: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a dataclass in its JSON form."""
    from pydantic import TypeAdapter  # noqa: PLC0415 -- slow to load, and only schemas need it

    found = TypeAdapter(kind).json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **{key: value for key, value in found.items() if key != "title"},
    }


class _Writer:
    """Writes values as JSON, and packs what was written from time to time."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._packed = io.BytesIO()
        self._fields: dict[type, tuple[str, ...]] = {}

    def end(self) -> bytes:
        """Return everything that was written."""
        self._pieces.append("\n")
        self._pack()
        return self._packed.getvalue()

    def write(self, value: Any, line: str) -> None:
        """Write a value; `line` begins a line with the indentation of the value."""
        if isinstance(value, str):
            self._pieces.append(encode_basestring(value))
        elif value is None or value is True or value is False:
            self._pieces.append(_WORDS[value])
        elif isinstance(value, int):
            self._pieces.append(int.__repr__(value))
        elif isinstance(value, float):
            self._pieces.append(float.__repr__(value) if math.isfinite(value) else "null")
        elif isinstance(value, (list, tuple)):
            self._write_list(value, line)
        elif isinstance(value, dict):
            self._write_items(((_key(key), item) for key, item in value.items()), line)
        else:
            names = self._names(type(value))
            self._write_items(((name, getattr(value, name)) for name in names), line)

    def _write_list(self, values: Sequence[Any], line: str) -> None:
        before = f"[{line} "
        for value in values:
            self._pieces.append(before)
            self.write(value, f"{line} ")
            before = f",{line} "
        self._pieces.append(f"{line}]" if values else "[]")
        if len(self._pieces) > _PACKED:
            self._pack()

    def _write_items(self, items: Iterable[tuple[str, Any]], line: str) -> None:
        first = before = f"{{{line} "
        for name, value in items:
            self._pieces.append(f"{before}{encode_basestring(name)}: ")
            self.write(value, f"{line} ")
            before = f",{line} "
        self._pieces.append("{}" if before == first else f"{line}}}")
        if len(self._pieces) > _PACKED:
            self._pack()

    def _names(self, kind: type) -> tuple[str, ...]:
        names = self._fields.get(kind)
        if names is None:
            names = self._fields[kind] = tuple(field.name for field in dataclasses.fields(kind))
        return names

    def _pack(self) -> None:
        self._packed.write("".join(self._pieces).encode())
        self._pieces.clear()


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)
