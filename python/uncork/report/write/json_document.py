"""The JSON report: the result itself, with its version, and the schema that describes it."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from typing import Any

__all__ = ["json_text", "schema_of"]


def json_text(value: Any) -> str:
    """Return a dataclass as JSON, ending with a newline; infinities and NaN become null."""
    text = io.StringIO()
    encoder = json.JSONEncoder(ensure_ascii=False, indent=1, allow_nan=False, default=_fields)
    # In pieces, and each dataclass when its turn comes: large results are never in memory as dictionaries.
    for piece in encoder.iterencode(_finite(value)):
        text.write(piece)
    text.write("\n")
    return text.getvalue()


def schema_of(kind: type, title: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a dataclass in its JSON form."""
    from pydantic import TypeAdapter  # noqa: PLC0415 -- slow to load, and only schemas need it

    found = TypeAdapter(kind).json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **{key: value for key, value in found.items() if key != "title"},
    }


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass; the encoder calls this for what it does not know."""
    return {field.name: _finite(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
