"""The JSON report: the result itself, with its version, and the schema that describes it."""

from __future__ import annotations

from typing import Any


def json_text(value: Any) -> str:
    """Return a dataclass as JSON, ending with a newline; infinities and NaN become null."""
    return json_bytes(value).decode()


def json_bytes(value: Any) -> bytes:
    """Return the JSON of `json_text` in UTF-8."""
    from pydantic_core import to_json  # noqa: PLC0415 -- loaded after the terminal has its summary

    return to_json(value, indent=1, inf_nan_mode="null") + b"\n"


def schema_of(kind: type, title: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a dataclass in its JSON form."""
    from pydantic import TypeAdapter  # noqa: PLC0415 -- slow to load, and only schemas need it

    found = TypeAdapter(kind).json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **{key: value for key, value in found.items() if key != "title"},
    }
