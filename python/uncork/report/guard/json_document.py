"""A guard as JSON, and the schema that describes it."""

from __future__ import annotations

from typing import Any

from uncork.model.results.guard import GUARD_VERSION, GuardResult
from uncork.report.write.json_document import json_text, schema_of

__all__ = ["guard_json", "guard_schema"]


def guard_json(result: GuardResult) -> str:
    """Return the guard as a JSON object that `guard_schema` describes, ending with a newline."""
    return json_text(result)


def guard_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a guard, made from the dataclasses of `model.results.guard`."""
    return schema_of(GuardResult, f"uncork guard, version {GUARD_VERSION}")
